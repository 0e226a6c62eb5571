import Table from 'cli-table3'
import { ABSENT, type Column, getCellPaint, getCellText, getTitle, type RenderContext } from './columns.ts'
import { renderDetailView } from './detail-view.ts'
import { displayWidth, wrapLine } from './measure.ts'

/** Number of terminal columns between two columns of the table. */
const GAP = 2
/** Width in terminal columns up to which a word isn't broken even in the narrowest table. */
const MAX_WHOLE_WORD_IF_NARROW = 8
/** Width in terminal columns up to which a word isn't broken, unless the table is too wide even without its optional columns. */
const MAX_WHOLE_WORD = 20

/** State of one table column: the measured contents so far, and the assigned width. Numbers are terminal columns. */
interface Lane {
  readonly column: Column
  /** Width of the column's widest cell, including the heading. */
  longest: number
  /** Width of the widest word of a text column, heading included; 0 for other columns. */
  longestWord: number
  isFilled: boolean
  /** Assigned width in terminal columns; 0 if the table leaves out this column. */
  width: number
}

interface Cell {
  readonly lane: Lane
  readonly item: object
  readonly text: string
}

/** Whether the column's cells may be wrapped: ids, numbers and times may not. */
const isText = ({ column }: Lane): boolean => (column.kind ?? 'text') === 'text'

/**
 * Creates a table that is rendered page by page. Column widths fit all pages so far, so a later page may be wider. From the first
 * page on for which the terminal is too narrow, items are rendered as detail views.
 */
export function createPagedTable(columns: readonly Column[], context: RenderContext) {
  const lanes = columns.map((column): Lane => {
    const lane = { column, longest: 0, longestWord: 0, isFilled: false, width: 0 }
    measure(lane, getTitle(column))
    return lane
  })
  let state: 'new' | 'table' | 'details' = 'new'
  return {
    /** Returns the lines of a page, each with a line feed; an empty text for an empty page. */
    render(items: readonly object[]): string {
      if (items.length === 0 || lanes.length === 0) return ''
      const isFirst = state === 'new'
      const rows = items.map((item) =>
        lanes.map((lane): Cell => ({ lane, item, text: getCellText(lane.column, item, context) })),
      )
      for (const { lane, text } of rows.flat()) {
        measure(lane, text)
        lane.isFilled ||= text !== ABSENT
      }
      if (state !== 'details') state = fit(lanes, context.width) ? 'table' : 'details'
      if (state === 'table') return layOut(lanes, rows, isFirst, context)
      return (isFirst ? '' : '\n') + items.map((item) => renderDetailView(item, columns, context)).join('\n')
    },
    /** Returns the columns that have values, but were left out because the terminal is too narrow. */
    hiddenColumns: () =>
      lanes
        .filter((lane) => state === 'table' && lane.width === 0 && lane.isFilled)
        .map(({ column }) => column),
  }
}

function measure(lane: Lane, text: string): void {
  lane.longest = Math.max(lane.longest, displayWidth(text))
  if (isText(lane)) lane.longestWord = Math.max(lane.longestWord, ...text.split(' ').map(displayWidth))
}

/** Returns the total width of the visible columns, including the gaps. */
function widthTogether(lanes: readonly Lane[]): number {
  return lanes.reduce((sum, { width }) => sum + width + (width > 0 ? GAP : 0), -GAP)
}

/**
 * Assigns a width to each column: shrinks text columns; if that isn't enough, also leaves out optional columns, the last one first;
 * as a last resort, also breaks words of more than `MAX_WHOLE_WORD_IF_NARROW` columns.
 *
 * @returns false if the terminal is still too narrow
 */
function fit(lanes: readonly Lane[], terminalWidth: number): boolean {
  const optional = lanes.filter(({ column }) => column.optional).reverse()
  const fitsWithout = (gone: readonly Lane[], longestWord: number) => {
    for (const lane of lanes) lane.width = gone.includes(lane) ? 0 : lane.longest
    return shrink(lanes, longestWord, terminalWidth)
  }
  return (
    [...optional.keys(), optional.length].some((count) =>
      fitsWithout(optional.slice(0, count), MAX_WHOLE_WORD),
    ) || fitsWithout(optional, MAX_WHOLE_WORD_IF_NARROW)
  )
}

/** Shrinks the widest text columns until the table fits; false if that would break words of up to `longestWord` columns. */
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

/** Lays out the rows of a page, below the heading if `withHeading`. */
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
    // cli-table3 would shorten each cell for a debug message, one character at a time; a truncation mark of 10 columns avoids this
    // slow loop.
    truncate: ' '.repeat(10),
    colAligns: shown.map(({ column }) => (column.kind === 'number' ? 'right' : 'left')),
  })
  const cell = (text: string, { width }: Lane, paint = (piece: string) => piece) =>
    wrapLine(text, width).map(paint).join('\n')
  if (withHeading) table.push(shown.map((lane) => cell(getTitle(lane.column), lane, context.palette.strong)))
  for (const row of rows)
    table.push(
      row
        .filter(({ lane }) => shown.includes(lane))
        .map(({ lane, item, text }) => cell(text, lane, getCellPaint(lane.column, item, context))),
    )
  const lines = table.toString().split('\n')
  return lines.map((line) => `${line.trimEnd()}\n`).join('')
}
