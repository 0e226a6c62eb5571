import type { Context } from '../context.ts'
import type { Settings } from '../settings/settings.ts'
import { colorLevel, createPalette } from './color.ts'
import {
  type Column,
  chooseColumns,
  columnValue,
  type Item,
  jsonOf,
  pickFields,
  plainText,
  type RenderContext,
} from './columns.ts'
import { requireFields } from './fields.ts'
import { escapeCsv, escapeTsv, sanitizeLine } from './sanitize.ts'

/** What decides how data is written to stdout. */
export type OutputContext = Pick<Context, 'stdout' | 'stderr' | 'environment' | 'clock'>
export type OutputSettings = Pick<
  Settings,
  'format' | 'formatGiven' | 'fields' | 'knownFields' | 'quiet' | 'colorOption' | 'csvSafe' | 'argv'
>

/** Spaces per level of JSON on a terminal; elsewhere JSON is one line. */
const INDENT = 2

/** The palette for people's output on stdout. */
export function stdoutPalette({ environment, stdout }: OutputContext, { colorOption }: OutputSettings) {
  return createPalette(colorLevel(environment, colorOption, stdout))
}

/** How items are shown on stdout: on a terminal, in its width and with relative times. */
export async function renderContext(
  context: OutputContext,
  settings: OutputSettings,
): Promise<RenderContext> {
  const { stdout, clock } = context
  return {
    palette: await stdoutPalette(context, settings),
    width: stdout.columns ?? Number.POSITIVE_INFINITY,
    now: stdout.isTTY ? clock.now() : undefined,
  }
}

/** How separated values are written. */
export interface SeparatedStyle {
  readonly format: 'csv' | 'tsv'
  readonly terminal: boolean
  readonly defuse: boolean
}

export function separatedStyle(
  context: OutputContext,
  settings: OutputSettings,
  format: 'csv' | 'tsv',
): SeparatedStyle {
  return { format, terminal: context.stdout.isTTY, defuse: settings.csvSafe }
}

/** The line of headings in TSV or CSV. */
export function headingLine(columns: readonly Column[], style: SeparatedStyle): string {
  return separated(
    columns.map((column) => column.field),
    style,
  )
}

/** One record of TSV or CSV (RFC 4180: comma, CRLF), including its line end. */
export function recordLine(item: Item, columns: readonly Column[], style: SeparatedStyle): string {
  return separated(
    columns.map((column) => plainText(columnValue(column, item))),
    style,
  )
}

function separated(cells: readonly string[], style: SeparatedStyle): string {
  if (style.format === 'tsv') return `${cells.map((cell) => escapeTsv(cell)).join('\t')}\n`
  return `${cells.map((cell) => escapeCsv(cell, style)).join(',')}\r\n`
}

/** The item as JSON shows it: as the service sent it, or only the requested fields. */
export function jsonItem(item: Item, settings: Pick<OutputSettings, 'fields'>): unknown {
  return settings.fields === undefined ? item : pickFields(item, settings.fields)
}

/** One document on stdout: indented on a terminal, one line elsewhere. */
export async function writeJson(context: OutputContext, value: unknown): Promise<void> {
  await context.stdout.write(`${jsonOf(value, context.stdout.isTTY ? INDENT : undefined)}\n`)
}

/** An item, or an event, as one line of JSON on stdout. */
export async function writeJsonLine(
  context: Pick<OutputContext, 'stdout'>,
  settings: Pick<OutputSettings, 'fields'>,
  item: Item,
): Promise<void> {
  await context.stdout.write(`${jsonOf(jsonItem(item, settings))}\n`)
}

/** Text and nothing else on stdout, on one line. */
export async function writeValue(context: Pick<OutputContext, 'stdout'>, text: string): Promise<void> {
  await context.stdout.write(`${sanitizeLine(text)}\n`)
}

/** Whether a person at a terminal reads on stderr what was done, and needs no table of it. */
export function isToldOnStderr({ format, formatGiven, fields }: OutputSettings): boolean {
  return format === 'table' && !formatGiven && fields === undefined
}

/** Writes what a command did, which it also says on stderr. */
export async function writeOutcome(
  context: OutputContext,
  settings: OutputSettings,
  outcome: Item,
  columns: readonly Column[],
): Promise<void> {
  if (!isToldOnStderr(settings)) await writeObject(context, settings, outcome, columns)
}

/**
 * Writes one object in the chosen format: a detail view for people, a heading and a record in TSV and CSV, the service's own
 * object in JSON. A detail view ends with the fields that no column covers, so nothing the service adds stays hidden.
 *
 * @throws CliError `usage`, exit 2, for a field of `--fields` that is neither listed nor in the item.
 */
export async function writeObject(
  context: OutputContext,
  settings: OutputSettings,
  item: Item,
  columns: readonly Column[],
): Promise<void> {
  const { stdout } = context
  const { format } = settings
  requireFields([item], settings)
  if (format === 'json') return writeJson(context, jsonItem(item, settings))
  if (format === 'jsonl') return writeJsonLine(context, settings, item)
  if (format === 'csv' || format === 'tsv') {
    const shown = chooseColumns(columns, settings.fields, 'programs')
    const style = separatedStyle(context, settings, format)
    await stdout.write(headingLine(shown, style) + recordLine(item, shown, style))
    return
  }
  const shown = [...chooseColumns(columns, settings.fields, 'people')]
  if (settings.fields === undefined) shown.push(...uncovered(item, columns))
  const [{ renderDetailView }, rendering] = await Promise.all([
    import('./detail-view.ts'),
    renderContext(context, settings),
  ])
  await stdout.write(renderDetailView(item, shown, rendering))
}

function uncovered(item: Item, columns: readonly Column[]): Column[] {
  const covered = new Set(columns.map((column) => column.field.split('.', 1)[0]))
  return Object.keys(item)
    .filter((key) => key !== 'object' && !covered.has(key))
    .map((key) => ({ field: key, value: (whole) => (whole as Record<string, unknown>)[key] }))
}
