import { type Context, OutputClosedError } from '../context.ts'
import type { Settings } from '../settings/settings.ts'
import { NOTICE_DELAY_MS } from '../timeout.ts'
import type { Column } from './columns.ts'
import { writeLabeledMessage, writeStderrLines } from './notices.ts'
import { createListWriter, hasOwnLayout, type ListWriter, type OutputContext, writeObject } from './output.ts'
import { createProgressDisplay, type ProgressReporter, replaceWrite } from './progress.ts'
import { sanitizeLine, stringifyJson } from './sanitize.ts'

/** Everything that a running command uses: the `Context`, the resolved settings, and functions for output. */
export interface Io extends Context, OutputContext {
  /** Progress of the current step on stderr; other output to a terminal appears above animated progress. */
  readonly progress: ProgressReporter
  /** Writes a warning about a problem that doesn't stop the command to stderr, unless `--quiet`. */
  warn(text: string): Promise<void>
  /**
   * Returns the work's result. If the work takes longer than two seconds, calls `say` with the text, so that the user knows what
   * the command waits for.
   */
  waiting<T>(text: string, work: Promise<T>): Promise<T>
  /** Writes one object to stdout in the chosen format. */
  write(item: object, columns: readonly Column[]): Promise<void>
  /** Writes the result of a change to stdout, except as a table without `--fields`: the command's message on stderr suffices. */
  writeOutcome(outcome: object, columns: readonly Column[]): Promise<void>
  /** Creates a writer for a list on stdout, page by page. @param ifEmpty text on stderr if a table is empty */
  list(columns: readonly Column[], ifEmpty?: string): ListWriter
  /** Writes an event with the current time to stdout, as one line of JSON. */
  writeEvent(event: string, fields: object): Promise<void>
  /** Writes a single value to stdout as one line, without heading or quotes, for the format `value`. */
  writeValue(text: string): Promise<void>
}

export function createIo(outer: Context, settings: Settings): Io {
  const { stdout, stderr, ...progress } = createProgressDisplay(outer, settings)
  const context: Context = { ...outer, stdout, stderr }
  const io: Io = {
    ...context,
    settings,
    progress,
    async say(...lines) {
      if (!settings.quiet) await writeStderrLines(lines, context)
    },
    warn: (text) => warn(text, context, settings),
    async hint(text) {
      if (!settings.silent) await writeLabeledMessage('hint', text, context, settings.colorOption)
    },
    async waiting(text, work) {
      const cancel = context.clock.alarm(NOTICE_DELAY_MS, () => void io.say(text))
      try {
        return await work
      } finally {
        cancel()
      }
    },
    write: (item, columns) => writeObject(item, columns, io),
    async writeOutcome(outcome, columns) {
      if (!hasOwnLayout(settings)) await io.write(outcome, columns)
    },
    list: (columns, ifEmpty) => createListWriter(columns, ifEmpty, io),
    writeEvent(event, fields) {
      const at = new Date(context.clock.now()).toISOString()
      return stdout.write(`${stringifyJson({ event, at, ...fields })}\n`)
    },
    writeValue: (text) => stdout.write(`${sanitizeLine(text)}\n`),
  }
  return io
}

async function warn(text: string, context: Context, { silent, colorOption }: Settings): Promise<void> {
  if (!silent) await writeLabeledMessage('warning', text, context, colorOption)
}

/** Returns a context that, once stdout's reader is gone (EPIPE), warns and discards text for stdout, so that the work continues. */
export function ignoreClosedStdout(context: Context, warningSettings: Settings): Context {
  const { stdout } = context
  let isOpen = true
  const write = async (text: string) => {
    try {
      if (isOpen) await stdout.write(text)
    } catch (error) {
      isOpen = false
      if (!(error instanceof OutputClosedError)) throw error
      await warn('the output has no reader left; the work continues without it', context, warningSettings)
    }
  }
  return { ...context, stdout: replaceWrite(stdout, write) }
}
