import type { Context } from '../context.ts'
import type { Settings } from '../settings/settings.ts'
import { sanitizeLine, sanitizeLines } from './sanitize.ts'

type Stderr = Pick<Context, 'stderr'>
type Quiet = Pick<Settings, 'quiet'>

/** Says on stderr how things go; nothing with `--quiet`. Line feeds in the text stay. */
export async function note(text: string, context: Stderr, settings: Quiet): Promise<void> {
  if (!settings.quiet) await context.stderr.write(`${sanitizeLines(text)}\n`)
}

/** Says on stderr what is wrong but does not stop the command; nothing with `--quiet`. */
export async function warn(text: string, context: Stderr, settings: Quiet): Promise<void> {
  if (!settings.quiet) await context.stderr.write(`warning: ${sanitizeLine(text)}\n`)
}

/** Says on stderr what the person may want to do next; nothing with `--quiet`. */
export async function hint(text: string, context: Stderr, settings: Quiet): Promise<void> {
  if (!settings.quiet) await context.stderr.write(`hint: ${sanitizeLine(text)}\n`)
}
