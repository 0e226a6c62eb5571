import { type Context, OutputClosedError, type Prompts } from '../context.ts'
import type { Settings } from '../settings/settings.ts'
import { type Column, type Item, jsonLinesOf } from './columns.ts'
import { hint, note, warn, withWaitingNote } from './notices.ts'
import { createListWriter, isToldOnStderr, type ListWriter, writeJson, writeObject } from './output.ts'
import { createScreen, type Progress, withWrite } from './progress.ts'
import { sanitizeLine } from './sanitize.ts'

/**
 * What a command gets: the effects, the settings in force, and how it talks. Everything that would take `context, settings`
 * side by side takes this instead.
 */
export interface Io extends Context {
  readonly settings: Settings
  /** Asks a person; undefined where nothing may be asked (`Settings.interactive`): what is missing is then exit 2. */
  readonly ask: Prompts | undefined
  /** The step in progress. Whatever else is written meanwhile appears above it. */
  readonly progress: Progress
  /** Says what happens, on stderr; nothing with `--quiet` or where a program reads. */
  note(text: string): Promise<void>
  /** Warns on stderr of a problem that doesn't stop the command; nothing with `--quiet`. */
  warn(text: string): Promise<void>
  /** Suggests a next step, on stderr; nothing with `--quiet`. */
  hint(text: string): Promise<void>
  /** Says what the work waits for, once, if it takes longer than two seconds. */
  waiting<T>(text: string, work: Promise<T>): Promise<T>
  /** One object on stdout, in the chosen format. */
  write(item: Item, columns: readonly Column[]): Promise<void>
  /** What a command did, which it also says on stderr: nothing for a person at a terminal. */
  writeOutcome(outcome: Item, columns: readonly Column[]): Promise<void>
  /** A list on stdout, page by page. @param nothing what a person reads if it is empty */
  list(columns: readonly Column[], nothing?: string): ListWriter
  /** One JSON document on stdout. */
  writeJson(value: unknown): Promise<void>
  /** One line of JSON on stdout: an item or an event. */
  writeLine(item: Item): Promise<void>
  /** Text and nothing else on stdout, on one line. */
  writeValue(text: string): Promise<void>
}

export function createIo(outer: Context, settings: Settings): Io {
  const { stdout, stderr, ...progress } = createScreen(outer, settings)
  const context: Context = { ...outer, stdout, stderr }
  return {
    ...context,
    settings,
    get ask() {
      return settings.interactive ? outer.prompts : undefined
    },
    progress,
    note: (text) => note(text, context, settings),
    warn: (text) => warn(text, context, settings),
    hint: (text) => hint(text, context, settings),
    waiting: (text, work) => withWaitingNote(text, context, settings, work),
    write: (item, columns) => writeObject(context, settings, item, columns),
    async writeOutcome(outcome, columns) {
      if (!isToldOnStderr(settings)) await writeObject(context, settings, outcome, columns)
    },
    list: (columns, nothing) => createListWriter({ context, settings, columns, nothing }),
    writeJson: (value) => writeJson(context, value),
    writeLine: (item) => stdout.write(jsonLinesOf([item])),
    writeValue: (text) => stdout.write(`${sanitizeLine(text)}\n`),
  }
}

/** For a command that changes something: its work goes on, with a warning, when nobody reads the output anymore. */
export function untilClosed(context: Context, settings: Settings): Context {
  const { stdout } = context
  let isOpen = true
  const write = async (text: string) => {
    try {
      if (isOpen) await stdout.write(text)
    } catch (error) {
      isOpen = false
      if (!(error instanceof OutputClosedError)) throw error
      await warn('nobody reads the output anymore; the work goes on without it', context, settings)
    }
  }
  return { ...context, stdout: withWrite(stdout, write) }
}
