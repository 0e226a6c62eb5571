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

/** Suggests a next step on stderr; nothing with `--quiet`. */
export async function hint(text: string, context: Stderr, settings: Quiet): Promise<void> {
  if (!settings.quiet) await context.stderr.write(`hint: ${sanitizeLine(text)}\n`)
}
