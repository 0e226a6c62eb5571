import { usageError } from '../../errors.ts'

/** A line of a list. */
export type LineReading =
  | { readonly kind: 'text'; readonly number: number; readonly text: string }
  | { readonly kind: 'unreadable'; readonly number: number; readonly why: string }

/** Bytes; a TXT value of the largest size fits. */
const MAX_LINE = 256 * 1024
const LF = 10

/**
 * The lines of a stream in UTF-8, without their ends (LF or CRLF) and without a byte order mark, one at a time.
 *
 * @throws CliError exit 2 for UTF-16, which spreadsheets also write, and for a file that isn't text
 */
export async function* readLines(
  stream: AsyncIterable<Uint8Array | string>,
): AsyncGenerator<LineReading, void, void> {
  const decoder = new TextDecoder('utf-8', { fatal: true })
  let number = 0
  let pieces: Buffer[] = []
  let length = 0
  const finish = (): LineReading => {
    number += 1
    const bytes = Buffer.concat(pieces)
    const isTooLong = length > MAX_LINE
    pieces = []
    length = 0
    if (isTooLong) return { kind: 'unreadable', number, why: `the line is longer than ${MAX_LINE} bytes` }
    if (number === 1 && (bytes[0] === 0xff || bytes[0] === 0xfe) && (bytes[1] === 0xfe || bytes[1] === 0xff))
      throw usageError('--from: the list is in UTF-16', 'save it as UTF-8')
    if (bytes.includes(0)) {
      // So is the first line of a spreadsheet or an archive; anywhere else it's only this line.
      if (number > 1) return { kind: 'unreadable', number, why: 'the line has a zero byte' }
      throw usageError(
        "--from: the list isn't text",
        'give a list with a domain on each line, CSV, or JSON lines',
      )
    }
    try {
      return { kind: 'text', number, text: decoder.decode(bytes).replace(/\r$/, '') }
    } catch {
      return { kind: 'unreadable', number, why: "the line isn't UTF-8" }
    }
  }
  for await (const chunk of stream) {
    const bytes = Buffer.from(chunk)
    for (let at = 0; at < bytes.length; ) {
      const end = bytes.indexOf(LF, at)
      const piece = bytes.subarray(at, end < 0 ? undefined : end)
      length += piece.length
      if (length <= MAX_LINE) pieces.push(piece)
      else pieces = []
      if (end < 0) break
      at = end + 1
      yield finish()
    }
  }
  if (length > 0) yield finish()
}
