import type { Context } from '../context.ts'
import type { Settings } from '../settings/settings.ts'
import type { Column, Item } from './columns.ts'
import { hint, note, warn, withWaitingNote } from './notices.ts'
import { writeJson, writeJsonLine, writeObject, writeOutcome, writeValue } from './output.ts'

/**
 * What a command gets: the effects, the settings in force, and how it talks. Everything that would take `context, settings`
 * side by side takes this instead.
 */
export interface Io extends Context {
  readonly settings: Settings
  /** Says what happens, on stderr; nothing with `--quiet`. */
  note(text: string): Promise<void>
  /** Warns on stderr of a problem that doesn't stop the command. */
  warn(text: string): Promise<void>
  /** Suggests a next step, on stderr. */
  hint(text: string): Promise<void>
  /** Says what the work waits for, once, if it takes longer than two seconds. */
  waiting<T>(text: string, work: Promise<T>): Promise<T>
  /** One object on stdout, in the chosen format. */
  write(item: Item, columns: readonly Column[]): Promise<void>
  /** What a command did, which it also says on stderr: nothing for a person at a terminal. */
  writeOutcome(outcome: Item, columns: readonly Column[]): Promise<void>
  /** One JSON document on stdout. */
  writeJson(value: unknown): Promise<void>
  /** One line of JSON on stdout: an item or an event. */
  writeLine(item: Item): Promise<void>
  /** Text and nothing else on stdout, on one line. */
  writeValue(text: string): Promise<void>
}

export function createIo(context: Context, settings: Settings): Io {
  return {
    ...context,
    settings,
    note: (text) => note(text, context, settings),
    warn: (text) => warn(text, context, settings),
    hint: (text) => hint(text, context, settings),
    waiting: (text, work) => withWaitingNote(text, context, settings, work),
    write: (item, columns) => writeObject(context, settings, item, columns),
    writeOutcome: (outcome, columns) => writeOutcome(context, settings, outcome, columns),
    writeJson: (value) => writeJson(context, value),
    writeLine: (item) => writeJsonLine(context, settings, item),
    writeValue: (text) => writeValue(context, text),
  }
}
