import { type Context, OutputClosedError } from '../context.ts'
import { CliError, Exit, type ExitCode } from '../errors.ts'
import { withGivenOptions } from '../settings/suggested-commands.ts'
import { writeLabeled } from '../terminal/notices.ts'
import { sanitizeLines, stringifyJson } from '../terminal/sanitize.ts'

/** Prints an error as JSON or for people, and returns its exit code. */
export async function report(
  error: unknown,
  argv: readonly string[],
  context: Pick<Context, 'stderr' | 'environment'>,
): Promise<ExitCode> {
  if (error instanceof OutputClosedError) return Exit.done
  const { stderr } = context
  const expected = error instanceof CliError
  const failure = withOptions(expected ? error : bug(error), argv)
  try {
    if (asksForJson(argv)) await stderr.write(`${stringifyJson(failure)}\n`)
    else if (!failure.silent) {
      const colorOption = argv.includes('--no-color') ? false : undefined
      await writeLabeled('error', failure.message, context, colorOption)
      if (failure.hint !== undefined) await writeLabeled('hint', failure.hint, context, colorOption)
      if (!expected && argv.includes('--verbose') && error instanceof Error) {
        await stderr.write(`${sanitizeLines(error.stack ?? '')}\n`)
      }
      // The terminal shows ^C, and the prompt follows.
    } else if (stderr.isTTY) await stderr.write('\n')
  } catch (closed) {
    if (!(closed instanceof OutputClosedError)) throw closed
  }
  return failure.exit
}

/** The error with commands that can be pasted as they are. */
function withOptions(error: CliError, argv: readonly string[]): CliError {
  const { code, exit, message, hint } = error
  return new CliError(code, exit, message, { ...error, hint: hint && withGivenOptions(hint, argv) })
}

function bug(error: unknown): CliError {
  const message = error instanceof Error ? error.message : String(error)
  return new CliError('bug', Exit.bug, `this is a bug in mailclaim: ${message}`, {
    hint: 'run it again with --verbose and report the output',
    cause: error,
  })
}

/** Whether errors are printed as JSON. It takes the raw words, because an unreadable command line is an error too. */
export function asksForJson(argv: readonly string[]): boolean {
  const end = argv.indexOf('--')
  const line = end < 0 ? argv : argv.slice(0, end)
  const format = line
    .findLast((word, at) => line[at - 1] === '--format' || word.startsWith('--format='))
    ?.replace(/^--format=/, '')
  return line.some((word) => /^--json(=|$)/.test(word)) || format === 'json' || format === 'jsonl'
}
