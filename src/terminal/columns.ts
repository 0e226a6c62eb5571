import type { Paint, Palette } from './color.ts'
import { clip, sanitizeLine, stringifyJson } from './sanitize.ts'

/** Maximum length, in UTF-16 units, of a value in a table or a detail view: the layout of a huge value would take seconds. */
const MAX_TEXT_LENGTH = 4000

/** Colors, width and current time for the layout of items for people. */
export interface RenderContext {
  readonly palette: Palette
  /** Width of the terminal in columns. Infinity if unknown, as for a pipe: lines are then not wrapped, and times are absolute. */
  readonly width: number
  /** Current time in milliseconds since 1970, for relative times and for states such as "expired". */
  readonly now: number
}

/** Presentation of one value of an item (an object to print, usually as received) in tables, detail views and TSV. */
export interface Column {
  /** Dotted path of the value in the item, unless `value` computes it; also the heading in TSV and the name for `--fields`. */
  readonly field: string
  /** Heading in tables and detail views. Default: derived from `field`. */
  readonly title?: string
  /** Kind of the values; default: `text`. Tables wrap values of the kind `text` only; detail views don't wrap an `id`. */
  readonly kind?: 'id' | 'number' | 'time' | 'text'
  /** Computes the value. Default: the item's value at the path `field`. @param now milliseconds since 1970 */
  readonly value?: (item: object, now: number) => unknown
  /** Formats a value, other than null and undefined, for people; returns undefined to show the plain value. */
  readonly text?: (value: unknown, context: RenderContext, item: object) => string | undefined
  /** Returns the function that colors the cell; undefined for no color. */
  readonly paint?: (value: unknown, context: RenderContext, item: object) => Paint | undefined
  /** Whether the column may be left out: of a table too wide for the terminal; of a detail view if the field has no value. */
  readonly optional?: true
  /**
   * Readers to which the column is restricted, `people` (tables, detail views) or `programs` (TSV), unless `--fields` names it.
   * Default: both.
   */
  readonly only?: 'people' | 'programs'
}

/** Returns a column for each field, which shows the field's value without formatting. */
export function plainColumns(...fields: readonly string[]): readonly Column[] {
  return fields.map((field) => ({ field }))
}

/** Text in tables and detail views in place of a null, missing or empty value. */
export const ABSENT = '–'

/**
 * Returns the value at a dotted path, such as `client.name` or `scopes.0`; undefined if there is none. For a list, a path without
 * an index, such as `findings.code`, returns the values of its entries.
 */
export function getValueAtPath(item: unknown, path: string): unknown {
  if (typeof item !== 'object' || item === null) return undefined
  if (Array.isArray(item) && !/^\d+(\.|$)/.test(path)) {
    const found = item.map((entry) => getValueAtPath(entry, path)).filter((value) => value !== undefined)
    return found.length === 0 ? undefined : found
  }
  if (Object.hasOwn(item, path)) return (item as Record<string, unknown>)[path]
  const dot = path.indexOf('.')
  if (dot < 0) return undefined
  return getValueAtPath(getValueAtPath(item, path.slice(0, dot)), path.slice(dot + 1))
}

/**
 * Returns the columns that `--fields` names, with a plain column for a field that the command has no column for; without
 * `--fields`, the command's columns for this kind of reader, people or programs (see `Column.only`).
 */
export function chooseColumns(
  columns: readonly Column[],
  fields: readonly string[] | undefined,
  reader: 'people' | 'programs',
): readonly Column[] {
  if (fields === undefined) return columns.filter((column) => (column.only ?? reader) === reader)
  return fields.map((field) => {
    // Drop `optional`, so that a column that `--fields` names is shown however narrow the terminal is.
    const { optional: _, ...column } = columns.find((known) => known.field === field) ?? { field }
    return column
  })
}

/** Returns an item's value in a column, not yet formatted. @param nowMs milliseconds since 1970 */
export function getColumnValue(column: Column, item: object, nowMs: number): unknown {
  return column.value === undefined ? getValueAtPath(item, column.field) : column.value(item, nowMs)
}

/**
 * Formats a value as text, not yet escaped for TSV or a terminal. A list is joined with commas; commas and backslashes in its
 * entries get a backslash in front. An object, or a list with an object or a list in it, is JSON.
 */
export function formatCellValue(value: unknown): string {
  if (value === null || value === undefined) return ''
  if (typeof value === 'string') return value
  if (typeof value !== 'object') return String(value)
  if (!Array.isArray(value) || value.some((entry) => typeof entry === 'object' && entry !== null)) {
    return stringifyJson(value)
  }
  return value.map((entry) => formatCellValue(entry).replaceAll(/[\\,]/g, '\\$&')).join(',')
}

/** Returns the text of a table cell for a list: the first value, shortened to 80 characters, and the number of further values. */
export function summarizeValues([first = ABSENT, ...others]: readonly string[]): string {
  const shown = clip(first, 80)
  return others.length === 0 ? shown : `${shown} and ${others.length} more`
}

/** Returns an item's value in a column as text for people: sanitized for one line, cut at `MAX_TEXT_LENGTH`; `–` for no value. */
export function getCellText(column: Column, item: object, context: RenderContext): string {
  const value = getColumnValue(column, item, context.now)
  if (value === null || value === undefined) return ABSENT
  const entries = Array.isArray(value) ? value : [value]
  const text = sanitizeLine(column.text?.(value, context, item) ?? entries.map(formatCellValue).join(', '))
  return text.length <= MAX_TEXT_LENGTH ? text || ABSENT : `${text.slice(0, MAX_TEXT_LENGTH)}…`
}

/** Returns the function that colors a cell; without a color, that function returns its text unchanged. */
export function getCellPaint(column: Column, item: object, context: RenderContext): Paint {
  return column.paint?.(getColumnValue(column, item, context.now), context, item) ?? ((text: string) => text)
}

export function getTitle(column: Column): string {
  if (column.title !== undefined) return column.title
  const words = sanitizeLine(column.field.replaceAll(/[._]/g, ' '))
  return words.charAt(0).toUpperCase() + words.slice(1)
}
