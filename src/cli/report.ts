import { type Context, OutputClosedError } from '../context.ts'
import { CliError, Exit, type ExitCode } from '../errors.ts'
import { sanitizeLine, sanitizeLines, stringifyJson } from '../terminal/sanitize.ts'

/** Prints what went wrong as the contract says and tells the exit code. */
export async function report(error: unknown, argv: readonly string[], context: Context): Promise<ExitCode> {
  // The reader of our output went away, as in `mailclaim … | head -1`: nothing is wrong.
  if (error instanceof OutputClosedError) return Exit.done
  const expected = error instanceof CliError
  const failure = expected ? error : bug(error)
  try {
    if (asksForJson(argv)) await context.stderr.write(`${stringifyJson(failure)}\n`)
    else {
      const hint = failure.hint === undefined ? '' : `hint: ${sanitizeLines(failure.hint)}\n`
      await context.stderr.write(`error: ${sanitizeLine(failure.message)}\n${hint}`)
      if (!expected && argv.includes('--verbose') && error instanceof Error) {
        await context.stderr.write(`${sanitizeLines(error.stack ?? '')}\n`)
      }
    }
  } catch (closed) {
    if (!(closed instanceof OutputClosedError)) throw closed
  }
  return failure.exit
}

function bug(error: unknown): CliError {
  const message = error instanceof Error ? error.message : String(error)
  return new CliError('bug', Exit.bug, `this is a bug in mailclaim: ${message}`, {
    hint: 'run it again with --verbose and report what it prints',
    cause: error,
  })
}

/** Whether errors are to be printed as JSON: asked of the raw words, because a line that cannot be read errs too. */
export function asksForJson(argv: readonly string[]): boolean {
  const end = argv.indexOf('--')
  const line = end < 0 ? argv : argv.slice(0, end)
  const format = line
    .findLast((word, at) => line[at - 1] === '--format' || word.startsWith('--format='))
    ?.replace(/^--format=/, '')
  return line.includes('--json') || format === 'json' || format === 'jsonl'
}
