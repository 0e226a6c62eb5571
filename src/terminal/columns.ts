import type { Palette } from './color.ts'
import { clip, sanitizeLine, stringifyJson } from './sanitize.ts'

/** UTF-16 units of a value for people: nobody reads a longer one to its end, and laying it out takes seconds. */
const MAX_TEXT_LENGTH = 4000

/** A thing from the service, as it was received. */
export type Item = object

/** How items are shown to a person. */
export interface RenderContext {
  readonly palette: Palette
  /** Columns of the terminal, where times are shown relative to now; infinite elsewhere, where they are in full. */
  readonly width: number
  /** Milliseconds since 1970. */
  readonly now: number
}

/** One field of an item, as tables, detail views and TSV show it. */
export interface Column {
  /** Dotted path into the item, and the heading in TSV. */
  readonly field: string
  /** Heading for people; made from the field if absent. */
  readonly title?: string
  /** An `id` is never wrapped or cut; a `number` or a `time` not in a table, and a number is aligned to the right. */
  readonly kind?: 'id' | 'number' | 'time' | 'text'
  /** Where the value comes from if it isn't simply the field. @param now milliseconds since 1970 */
  readonly value?: (item: Item, now: number) => unknown
  /** What a person reads instead of the plain value; undefined to show the plain value. */
  readonly text?: (value: unknown, context: RenderContext, item: Item) => string | undefined
  /** The color of the cell. */
  readonly paint?: (
    value: unknown,
    context: RenderContext,
    item: Item,
  ) => ((text: string) => string) | undefined
  /** Left out of a table that would otherwise have to break words, the last such column first. */
  readonly optional?: true
  /** A column that only people, or only programs, need; the others do not get it. */
  readonly only?: 'people' | 'programs'
}

/** Returns columns that show their fields as they are, in this order. */
export function plainColumns(...fields: readonly string[]): readonly Column[] {
  return fields.map((field) => ({ field }))
}

/** Shown for a value that is null or missing. */
export const DASH = '–'

/**
 * The value at a dotted path: `client.name`, `scopes.0`, and for a list of objects `findings.code`, the values of all of
 * them. A key that itself contains dots is found too.
 *
 * @returns undefined if there is nothing.
 */
export function valueAt(item: unknown, path: string): unknown {
  if (typeof item !== 'object' || item === null) return undefined
  if (Array.isArray(item) && !/^\d+(\.|$)/.test(path)) {
    const found = item.map((entry) => valueAt(entry, path)).filter((value) => value !== undefined)
    return found.length === 0 ? undefined : found
  }
  if (Object.hasOwn(item, path)) return (item as Record<string, unknown>)[path]
  const dot = path.indexOf('.')
  if (dot < 0) return undefined
  return valueAt(valueAt(item, path.slice(0, dot)), path.slice(dot + 1))
}

/** The columns that `--fields` asks for, or the command's own for this kind of reader. */
export function chooseColumns(
  columns: readonly Column[],
  fields: readonly string[] | undefined,
  reader: 'people' | 'programs',
): readonly Column[] {
  if (fields === undefined) return columns.filter((column) => (column.only ?? reader) === reader)
  return fields.map((field) => {
    // What the person asked for is shown, however narrow the terminal.
    const { optional: _, ...column } = columns.find((known) => known.field === field) ?? { field }
    return column
  })
}

/** @param now milliseconds since 1970 */
export function columnValue(column: Column, item: Item, now: number): unknown {
  return column.value === undefined ? valueAt(item, column.field) : column.value(item, now)
}

/**
 * A value as one cell of TSV, not yet escaped: null and missing are empty. A list is joined with commas, with `\,`
 * for a comma inside an entry and `\\` for a backslash; a list of objects or an object is JSON.
 */
export function cellText(value: unknown): string {
  if (value === null || value === undefined) return ''
  if (typeof value === 'string') return value
  if (typeof value !== 'object') return String(value)
  if (!Array.isArray(value) || value.some((entry) => typeof entry === 'object' && entry !== null)) {
    return stringifyJson(value)
  }
  return value.map((entry) => cellText(entry).replaceAll(/[\\,]/g, '\\$&')).join(',')
}

/** The first of many values, shortened to 80 characters, and the number of the others: for a cell of a table for people. */
export function summarizeValues([first = DASH, ...others]: readonly string[]): string {
  const shown = clip(first, 80)
  return others.length === 0 ? shown : `${shown} and ${others.length} more`
}

/** The value of a column as a person reads it, sanitized and on one line; an ellipsis stands for what is too long. */
export function humanText(column: Column, item: Item, context: RenderContext): string {
  const value = columnValue(column, item, context.now)
  if (value === null || value === undefined) return DASH
  const entries = Array.isArray(value) ? value : [value]
  const text = sanitizeLine(column.text?.(value, context, item) ?? entries.map(cellText).join(', '))
  return text.length <= MAX_TEXT_LENGTH ? text || DASH : `${text.slice(0, MAX_TEXT_LENGTH)}…`
}

export function paintOf(column: Column, item: Item, context: RenderContext) {
  return column.paint?.(columnValue(column, item, context.now), context, item) ?? ((text: string) => text)
}

export function titleOf(column: Column): string {
  if (column.title !== undefined) return column.title
  const words = sanitizeLine(column.field.replaceAll(/[._]/g, ' '))
  return words.charAt(0).toUpperCase() + words.slice(1)
}
