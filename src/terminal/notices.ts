import type { Context } from '../context.ts'
import type { Settings } from '../settings/settings.ts'
import { sanitizeLine, sanitizeLines } from './sanitize.ts'

type Stderr = Pick<Context, 'stderr'>
type Quiet = Pick<Settings, 'quiet'>

/** Reports on stderr; nothing with `--quiet`. Line feeds in the text stay. */
export async function note(text: string, context: Stderr, settings: Quiet): Promise<void> {
  if (!settings.quiet) await context.stderr.write(`${sanitizeLines(text)}\n`)
}

/** Warns on stderr of a problem that doesn't stop the command; nothing with `--quiet`. */
export async function warn(text: string, context: Stderr, settings: Quiet): Promise<void> {
  if (!settings.quiet) await context.stderr.write(`warning: ${sanitizeLine(text)}\n`)
}

/** How long a person waits before a message says what for. */
const SILENT_MS = 2_000

/** Says what the work waits for, once, if it takes longer than two seconds. */
export async function withWaitingNote<T>(
  text: string,
  context: Stderr & Pick<Context, 'clock'>,
  settings: Quiet,
  work: Promise<T>,
): Promise<T> {
  const cancel = context.clock.alarm(SILENT_MS, () => void note(text, context, settings))
  try {
    return await work
  } finally {
    cancel()
  }
}

/** Suggests a next step on stderr; nothing with `--quiet`. */
export async function hint(text: string, context: Stderr, settings: Quiet): Promise<void> {
  if (!settings.quiet) await context.stderr.write(`hint: ${sanitizeLine(text)}\n`)
}
