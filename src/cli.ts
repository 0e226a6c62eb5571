import { runCommandLine } from './cli/parse.ts'
import { report } from './cli/report.ts'
import type { Context } from './context.ts'
import { Exit, type ExitCode } from './errors.ts'

/**
 * Runs the program: runs the command that the words name and maps its end to an exit code. The one place where errors
 * become exit codes.
 *
 * @param argv the words after the program's name.
 */
export async function run(argv: readonly string[], context: Context): Promise<ExitCode> {
  try {
    const [first] = argv
    if (first === '--version' || first === '-V') {
      await context.stdout.write(`${context.program.version}\n`)
      return Exit.done
    }
    if (first === '__complete') {
      const { answerShell } = await import('./cli/complete.ts')
      return await answerShell(argv.slice(1), context)
    }
    const code = await runCommandLine(argv, context)
    // A signal that came while nothing could be cut short (a refresh on its way): the work is done and printed, but a
    // shell has to see the Ctrl-C, or its loop goes on.
    const { signal } = context.interrupts
    return code === Exit.done && signal.aborted ? await report(signal.reason, argv, context) : code
  } catch (error) {
    return report(error, argv, context)
  }
}
