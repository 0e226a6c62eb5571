import Table from 'cli-table3'
import { type Column, DASH, humanText, type Item, paintOf, type RenderContext, titleOf } from './columns.ts'
import { renderDetailView } from './detail-view.ts'
import { widthOf, wrap } from './measure.ts'

const GAP = 2
/** Text is broken within words before it gets a narrower column. */
const NARROWEST_TEXT = 8
/** An optional column goes before a longer word than this would have to break. */
const LONGEST_WORD = 20

/** A column with what the items so far need of it. All numbers are columns of the terminal. */
interface Lane {
  readonly column: Column
  /** Its longest cell, heading included, and the longest word in them. */
  longest: number
  longestWord: number
  /** Whether it has something to show. */
  isFilled: boolean
  /** What it gets; 0 if there is no room for it. */
  width: number
}

/** One cell of an item. */
interface Cell {
  readonly lane: Lane
  readonly item: Item
  readonly text: string
}

/** Only text may be broken: ids, numbers and times keep what they need. */
const isText = ({ column }: Lane): boolean => (column.kind ?? 'text') === 'text'

/**
 * Renders a list page by page, so that nothing waits for the last one: each page has the widths that all of them so far need. If
 * not even the narrowest table fits the terminal, every item is a detail view.
 */
export function createTable(columns: readonly Column[], context: RenderContext) {
  const lanes = columns.map((column): Lane => {
    const lane = { column, longest: 0, longestWord: 0, isFilled: false, width: 0 }
    measure(lane, titleOf(column))
    return lane
  })
  let state: 'new' | 'table' | 'details' = 'new'
  return {
    /** @returns whole lines; nothing for an empty page */
    render(items: readonly Item[]): string {
      if (items.length === 0 || lanes.length === 0) return ''
      const isFirst = state === 'new'
      const rows = items.map((item) =>
        lanes.map((lane): Cell => ({ lane, item, text: humanText(lane.column, item, context) })),
      )
      for (const { lane, text } of rows.flat()) {
        measure(lane, text)
        lane.isFilled ||= text !== DASH
      }
      if (state !== 'details') state = fit(lanes, context.width) ? 'table' : 'details'
      if (state === 'table') return layOut(lanes, rows, isFirst, context)
      return (isFirst ? '' : '\n') + items.map((item) => renderDetailView(item, columns, context)).join('\n')
    },
    /** The columns that the terminal has no room for, and that would show something. */
    hiddenColumns: () =>
      lanes
        .filter((lane) => state === 'table' && lane.width === 0 && lane.isFilled)
        .map(({ column }) => column),
  }
}

function measure(lane: Lane, text: string): void {
  lane.longest = Math.max(lane.longest, widthOf(text))
  if (isText(lane)) lane.longestWord = Math.max(lane.longestWord, ...text.split(' ').map(widthOf))
}

/** How wide the columns that are shown are together. */
function widthTogether(lanes: readonly Lane[]): number {
  return lanes.reduce((sum, { width }) => sum + width + (width > 0 ? GAP : 0), -GAP)
}

/**
 * Gives each column its width. The widest text gives way first, until words would break; then optional columns go, the last one
 * first; then words break. @returns false if the terminal is too narrow for that
 */
function fit(lanes: readonly Lane[], terminalWidth: number): boolean {
  const optional = lanes.filter(({ column }) => column.optional).reverse()
  const fitsWithout = (gone: readonly Lane[], longestWord: number) => {
    for (const lane of lanes) lane.width = gone.includes(lane) ? 0 : lane.longest
    return shrink(lanes, longestWord, terminalWidth)
  }
  return (
    [...optional.keys(), optional.length].some((count) =>
      fitsWithout(optional.slice(0, count), LONGEST_WORD),
    ) || fitsWithout(optional, NARROWEST_TEXT)
  )
}

/** Narrows the widest text until all fit. @returns false if words would break that aren't longer than `longestWord` */
function shrink(lanes: readonly Lane[], longestWord: number, terminalWidth: number): boolean {
  const canGive = (lane: Lane) => isText(lane) && lane.width > Math.min(longestWord, lane.longestWord)
  for (let excess = widthTogether(lanes) - terminalWidth; excess > 0; excess--) {
    const givers = lanes.filter(canGive)
    if (givers.length === 0) return false
    givers.reduce((widest, lane) => (lane.width > widest.width ? lane : widest)).width--
  }
  return true
}

const NO_BORDERS = {
  ...{ top: '', 'top-mid': '', 'top-left': '', 'top-right': '' },
  ...{ bottom: '', 'bottom-mid': '', 'bottom-left': '', 'bottom-right': '' },
  ...{ left: '', 'left-mid': '', mid: '', 'mid-mid': '', right: '', 'right-mid': '' },
  middle: ' '.repeat(GAP),
}

/** The lines of a page. */
function layOut(
  lanes: readonly Lane[],
  rows: readonly (readonly Cell[])[],
  withHeading: boolean,
  context: RenderContext,
): string {
  const shown = lanes.filter(({ width }) => width > 0)
  const table = new Table({
    chars: NO_BORDERS,
    style: { 'padding-left': 0, 'padding-right': 0, head: [], border: [], compact: true },
    colWidths: shown.map(({ width }) => width),
    // For a debug message the library cuts each cell to 10 columns, a character at a time, unless this mark takes them.
    truncate: ' '.repeat(10),
    colAligns: shown.map(({ column }) => (column.kind === 'number' ? 'right' : 'left')),
  })
  const cell = (text: string, { width }: Lane, paint = (piece: string) => piece) =>
    wrap(text, width).map(paint).join('\n')
  if (withHeading) table.push(shown.map((lane) => cell(titleOf(lane.column), lane, context.palette.strong)))
  for (const row of rows)
    table.push(
      row
        .filter(({ lane }) => shown.includes(lane))
        .map(({ lane, item, text }) => cell(text, lane, paintOf(lane.column, item, context))),
    )
  const lines = table.toString().split('\n')
  return lines.map((line) => `${line.trimEnd()}\n`).join('')
}
