import { createReadStream } from 'node:fs'
import { addAbortSignal, type Readable } from 'node:stream'
import { CliError, usageError } from '../errors.ts'
import { looksLikeId } from '../service/claims.ts'
import { REGIONS } from '../service/types.ts'
import { reason } from '../storage/file-errors.ts'
import type { Io } from '../terminal/io.ts'
import { parseDomain } from './load.ts'
import { readValue } from './record.ts'

/** One domain of a run over several, with what its line says beside the name. */
export interface Subject {
  /** In its ASCII form; or a placeholder domain id. */
  readonly domain: string
  /** The complete TXT value to expect. */
  readonly value?: string | undefined
  readonly region?: string | undefined
}

/** What a list holds. */
export interface DomainList {
  readonly subjects: readonly Subject[]
  /** How many lines can't be used; the first ones have been named on stderr: `FILE:LINE: why`. */
  readonly problems: number
}

const COLUMNS: readonly string[] = ['domain', 'value', 'region']
/** What a spreadsheet program can do about a list that isn't one. */
const SAVE_AS = 'save it as CSV UTF-8, with a column named domain'
/** Bad lines that are named, of a file that may not even be a list. */
const MOST_NAMED = 10
/** Bytes: a hundred thousand domains with long values fit. */
const MAX_SIZE = 32 * 1024 * 1024

/** The domain that was typed, or the placeholder domain id if the command takes ids. @throws CliError exit 2 */
export function readDomain(text: string, takesIds: boolean): string {
  return takesIds && looksLikeId(text) ? text : parseDomain(text)
}

/**
 * Reads the whole list, so that one that can't be used is refused before anything has begun: `domain[,value]` lines (with a header
 * as its columns say), without blank ones and those that begin with `#`. Spreadsheets separate with commas, semicolons or tabs: what
 * is first in the list does. Columns of a header besides domain, value and region are ignored, said once.
 *
 * @param from a path, or `-` for standard input
 * @throws CliError exit 2 if it can't be read; the reason of the interrupt signal
 */
export async function readList(from: string, takesIds: boolean, io: Io): Promise<DomainList> {
  if (from === '-' && io.stdin.isTTY)
    throw usageError('--from - reads standard input, which is a terminal', 'pipe the domains into it')
  const name = from === '-' ? '<stdin>' : from
  const subjects: Subject[] = []
  let problems = 0
  let columns: readonly string[] | undefined
  let separator: string | undefined
  const text = await readText(from, io)
  if (/^[^\n]*\0|^\ufffd/.test(text)) throw usageError(`--from: ${from} isn't text in UTF-8`, SAVE_AS)
  for (const [index, line] of text.split(/\r?\n/).entries()) {
    const number = index + 1
    if (line.trim() === '' || line.startsWith('#')) continue
    separator ??= /[,;\t]/.exec(line)?.[0]
    // A line for spreadsheet programs.
    if (/^sep=.$/i.test(line)) continue
    const cells = cellsOf(line, separator)
    if (cells === undefined)
      throw usageError(`${name}:${number}: a cell has a line break`, 'remove the line breaks from cells')
    if (columns === undefined) {
      const header = cells.map((cell) => cell.toLowerCase())
      columns = header.includes('domain') ? header : COLUMNS.slice(0, 2)
      if (columns !== header && cells.length > 1 && !cells[0]?.includes('.') && cells[0] !== '')
        throw usageError(`${name} has no column "domain"`, SAVE_AS)
      const ignored = header.filter((cell) => columns === header && !COLUMNS.includes(cell))
      if (ignored.length > 0) await io.warn(`ignored columns of ${name}: ${ignored.join(', ')}`)
      if (columns === header) continue
    }
    try {
      subjects.push(subjectOf(cells, columns, takesIds))
    } catch (error) {
      if (!(error instanceof CliError)) throw error
      problems += 1
      if (problems <= MOST_NAMED) await io.warn(`${name}:${number}: ${error.message}`)
    }
  }
  if (problems > MOST_NAMED)
    await io.warn(
      `lines of ${name} that can't be used: ${problems}, of which the first ${MOST_NAMED} are named`,
    )
  if (subjects.length + problems === 0) throw usageError('--from: the list has no domain')
  return { subjects, problems }
}

/** Without a byte order mark. @throws CliError exit 2 if the stream can't be read */
async function readText(from: string, { stdin, interrupts }: Io): Promise<string> {
  const { signal } = interrupts
  const input: Readable = from === '-' ? stdin.stream : createReadStream(from)
  const chunks: Buffer[] = []
  let size = 0
  try {
    for await (const chunk of addAbortSignal(signal, input)) {
      chunks.push(Buffer.from(chunk))
      size += chunk.length
      if (size > MAX_SIZE) throw usageError(`--from: ${from} is larger than ${MAX_SIZE} bytes`)
    }
  } catch (error) {
    signal.throwIfAborted()
    if (error instanceof CliError) throw error
    throw usageError(`--from: couldn't read ${from}: ${reason(error)}`)
  }
  return new TextDecoder().decode(Buffer.concat(chunks))
}

/**
 * The cells of a line, with what spreadsheets put around them (RFC 4180): quotation marks, and doubled ones inside; undefined if
 * a quoted cell doesn't end.
 */
function cellsOf(line: string, separator = ','): string[] | undefined {
  const cell = `(?:"(?:[^"]|"")*" *(?=${separator}|$)|[^${separator}]*)`
  const cells = line.match(new RegExp(`(?:^|${separator}) *${cell}`, 'g')) ?? []
  const texts = cells.map((text, at) => text.slice(at === 0 ? 0 : 1).trim())
  const isQuoted = (text: string) => /^".*"$/.test(text)
  if (texts.some((text) => text.startsWith('"') && !isQuoted(text))) return undefined
  return texts.map((text) => (isQuoted(text) ? text.slice(1, -1).replaceAll('""', '"').trim() : text))
}

/** @throws CliError exit 2 */
function subjectOf(cells: readonly string[], columns: readonly string[], takesIds: boolean): Subject {
  if (cells.length > columns.length) throw usageError(`columns: ${cells.length} instead of ${columns.length}`)
  const at = (name: string) => cells[columns.indexOf(name)] || undefined
  const [domain, value, region] = [at('domain'), at('value'), at('region')]
  if (domain === undefined) throw usageError('the domain is missing')
  if (region !== undefined && !(REGIONS as readonly string[]).includes(region))
    throw usageError(`"${region}" is not a region (${REGIONS.join(', ')})`)
  return {
    domain: readDomain(domain, takesIds),
    ...(value === undefined ? {} : { value: readValue(value, 'the value') }),
    ...(region === undefined ? {} : { region }),
  }
}
