import { type Context, OutputClosedError } from '../context.ts'
import type { Settings } from '../settings/settings.ts'
import { NOTICE_DELAY_MS } from '../timeout.ts'
import type { Column, Item } from './columns.ts'
import { writeLabeled, writeLines } from './notices.ts'
import { createListWriter, isForPeople, type ListWriter, type OutputContext, writeObject } from './output.ts'
import { createScreen, type Progress, replaceWrite } from './progress.ts'
import { sanitizeLine, stringifyJson } from './sanitize.ts'

/**
 * What a command gets: the effects, the settings in force, and how it talks. Everything that would take `context, settings`
 * side by side takes this instead.
 */
export interface Io extends Context, OutputContext {
  /** The step in progress. Whatever else is written meanwhile appears above it. */
  readonly progress: Progress
  /** Warns on stderr of a problem that doesn't stop the command; nothing with `--quiet`. */
  warn(text: string): Promise<void>
  /** Says what the work waits for, once, if it takes longer than two seconds. */
  waiting<T>(text: string, work: Promise<T>): Promise<T>
  /** One object on stdout, in the chosen format. */
  write(item: Item, columns: readonly Column[]): Promise<void>
  /** What a command did, which it also says on stderr: nothing where that is for a person. */
  writeOutcome(outcome: Item, columns: readonly Column[]): Promise<void>
  /** A list on stdout, page by page. @param nothing what a person reads if it is empty */
  list(columns: readonly Column[], nothing?: string): ListWriter
  /** An event as a line of JSON on stdout, with the time. */
  writeEvent(event: string, fields: object): Promise<void>
  /** Text and nothing else on stdout, on one line. */
  writeValue(text: string): Promise<void>
}

export function createIo(outer: Context, settings: Settings): Io {
  const { stdout, stderr, ...progress } = createScreen(outer, settings)
  const context: Context = { ...outer, stdout, stderr }
  const io: Io = {
    ...context,
    settings,
    progress,
    async say(...lines) {
      if (!settings.quiet) await writeLines(lines, context)
    },
    warn: (text) => warn(text, context, settings),
    async hint(text) {
      if (!settings.silent) await writeLabeled('hint', text, context, settings.colorOption)
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
      if (!isForPeople(settings)) await io.write(outcome, columns)
    },
    list: (columns, nothing) => createListWriter(columns, nothing, io),
    writeEvent(event, fields) {
      const at = new Date(context.clock.now()).toISOString()
      return stdout.write(`${stringifyJson({ event, at, ...fields })}\n`)
    },
    writeValue: (text) => stdout.write(`${sanitizeLine(text)}\n`),
  }
  return io
}

async function warn(text: string, context: Context, { silent, colorOption }: Settings): Promise<void> {
  if (!silent) await writeLabeled('warning', text, context, colorOption)
}

/** For a command that changes something: its work goes on, with a warning, when nobody reads the output anymore. */
export function continueWithoutReader(context: Context, settings: Settings): Context {
  const { stdout } = context
  let isOpen = true
  const write = async (text: string) => {
    try {
      if (isOpen) await stdout.write(text)
    } catch (error) {
      isOpen = false
      if (!(error instanceof OutputClosedError)) throw error
      await warn('the output has no reader left; the work continues without it', context, settings)
    }
  }
  return { ...context, stdout: replaceWrite(stdout, write) }
}
