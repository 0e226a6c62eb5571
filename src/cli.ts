import { runCommandLine } from './cli/parse.ts'
import { printError } from './cli/print-error.ts'
import type { Context } from './context.ts'
import { CliError, Exit, type ExitCode } from './errors.ts'

/**
 * Runs the command that the arguments name, prints its error, if any, and returns its exit code.
 *
 * @param argv the arguments after the program's name
 */
export async function runCli(argv: readonly string[], context: Context): Promise<ExitCode> {
  const { signal } = context.interrupts
  try {
    const [first] = argv
    if (first === '--version' || first === '-V') {
      await context.stdout.write(`${context.installation.version}\n`)
      return Exit.done
    }
    if (first === '__complete') {
      const { printCompletions } = await import('./cli/complete.ts')
      return await printCompletions(argv.slice(1), context)
    }
    const code = await runCommandLine(argv, context)
    // If a signal arrived but the command succeeded (shielded work, such as a token refresh, isn't interrupted), exit with the
    // signal's code: otherwise a loop in a shell script would continue after Ctrl-C.
    return code === Exit.done && signal.aborted ? await printError(signal.reason, argv, context) : code
  } catch (error) {
    // A terminal that hangs up sends SIGHUP and also makes writes fail: report the signal, which is the cause.
    const isLost = signal.aborted && error instanceof CliError && error.code === 'output_failed'
    return printError(isLost ? signal.reason : error, argv, context)
  }
}
