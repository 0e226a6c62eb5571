import { type Html, html, type Inserted } from '../../terminal/html.ts'
import { truncate, widthOf, wrap } from '../../terminal/measure.ts'
import { sanitizeLine } from '../../terminal/sanitize.ts'
import { type Piece, readablePiece } from '../diagnosis/characters.ts'

/** How good an answer is. */
type Tone = 'good' | 'bad' | 'warning' | 'neutral'

/** The widest that a character of 1 pixel may be, in any usual system font, on average. */
const ADVANCE = { mono: 0.61, sans: 0.6, strong: 0.68 } as const
type Font = keyof typeof ADVANCE

const columnsIn = (pixels: number, size: number, font: Font) =>
  Math.max(4, Math.floor(pixels / (size * ADVANCE[font])))

/** The most pixels that a text without wide characters may take. */
export const pixelsOf = (text: string, size: number, font: Font) => text.length * size * ADVANCE[font]

/** Lines of a text that fit the width, at most `most`. */
export function linesOf(text: string, pixels: number, size: number, font: Font, most: number): string[] {
  const columns = columnsIn(pixels, size, font)
  // What is cut off below needn't be wrapped.
  const lines = wrap(sanitizeLine(text.slice(0, columns * (most + 1) * 2)), columns)
  if (lines.length <= most) return lines
  return [...lines.slice(0, most - 1), truncate(`${lines.slice(most - 1).join(' ')} …`, columns)]
}

/** The beginning of a text that fits the width. */
export function fitting(text: string, pixels: number, size: number, font: Font): string {
  return truncate(sanitizeLine(text.slice(0, 1000)), columnsIn(pixels, size, font))
}

export function textAt(x: number, y: number, className: string, content: Inserted): Html {
  return html`<text x="${x}" y="${y}" class="${className}">${content}</text>`
}

/** A value on one line, with the differing pieces marked and always in sight. */
export function valueLine(pieces: readonly Piece[], pixels: number, size: number): Html[] {
  const columns = columnsIn(pixels, size, 'mono')
  return shortenedPieces(pieces, columns)
    .filter(({ text }) => text !== '')
    .map(({ text, differs }) =>
      differs ? html`<tspan class="differs">${text}</tspan>` : html`<tspan>${text}</tspan>`,
    )
}

/** Shortens what is the same first. */
function shortenedPieces(pieces: readonly Piece[], columns: number): readonly Piece[] {
  const readable = pieces.map((piece) => ({
    ...piece,
    // Far more than fits: sanitizing 64 kilobytes would be for nothing.
    text: readablePiece({
      ...piece,
      text:
        piece.differs || piece.text.length < 1000
          ? piece.text.slice(0, 1000)
          : `${piece.text.slice(0, 400)}…${piece.text.slice(-400)}`,
    }),
  }))
  const total = () => readable.reduce((sum, { text }) => sum + widthOf(text), 0)
  for (const [index, piece] of readable.entries()) {
    const excess = total() - columns
    if (excess <= 0) break
    const isStart = index === 0 && !piece.differs && readable.length > 1
    if (!isStart) continue
    const kept = Math.max(6, piece.text.length - excess - 1)
    if (kept < piece.text.length - 1) piece.text = `…${Array.from(piece.text).slice(-kept).join('')}`
  }
  let left = columns
  return readable.map((piece) => {
    const text = left <= 0 ? '' : truncate(piece.text, left)
    left -= widthOf(text)
    return { ...piece, text }
  })
}

const SHAPES = {
  check: 'M-4.2 .4 -1.4 3.2 4.4 -3',
  cross: 'M-3.4 -3.4 3.4 3.4M3.4 -3.4 -3.4 3.4',
  dash: 'M-4 0H4',
  question: 'M-2.7 -2.2a2.7 2.5 0 1 1 3.9 2.2q-1.2 .6 -1.2 1.9M0 4.3v.2',
  exclamation: 'M0 -4.4V1M0 4.2v.2',
  differs: 'M-4 -1.7H4M-4 1.7H4M2 -4.4 -2 4.4',
  info: 'M0 -.6V4.4M0 -4.2v.2',
} as const

/** Nothing is told by its color alone: each tone has shapes of its own. */
export interface Look {
  readonly tone: Tone
  readonly shape: keyof typeof SHAPES
}

/** A shape in a disc with a radius of 9 pixels, drawn around its center. */
export function symbol(x: number, y: number, { tone, shape }: Look): Html {
  return html`<g class="symbol ${tone}" transform="translate(${x} ${y})"><circle r="9"/><path d="${SHAPES[shape]}"/></g>`
}
