import { createReadStream } from 'node:fs'
import { addAbortSignal, type Readable } from 'node:stream'
import { CliError, usageError } from '../errors.ts'
import { isUuid } from '../service/claims.ts'
import { REGIONS } from '../service/types.ts'
import { reason } from '../storage/file-errors.ts'
import type { Io } from '../terminal/io.ts'
import { clip } from '../terminal/sanitize.ts'
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

/** Texts that a header has for each column, in lower case and without blanks; the first of them wins. */
const DOMAIN: readonly string[] = ['domain', 'domainname', 'name']
const VALUE: readonly string[] = ['value', 'txtvalue', 'record.value']
const REGION: readonly string[] = ['region']
const NO_HEADER = ['domain', 'value']
/** Hint for a file that isn't a readable list. */
const SAVE_AS = 'save it as CSV UTF-8, with a column named domain'
const WRITE_AS = 'give a domain, or domain,value, on each line'
/** Bad lines that are named, of a file that may not even be a list. */
const MOST_NAMED = 10
/** Bytes: a hundred thousand domains with long values fit. */
const MAX_SIZE = 32 * 1024 * 1024

/** The domain that was typed, or the placeholder domain id if the command takes ids. @throws CliError exit 2 */
export function readDomain(text: string, takesIds: boolean): string {
  return takesIds && isUuid(text) ? text : parseDomain(text)
}

/**
 * Reads the whole list, so that one that can't be used is refused before anything has begun: `domain[,value]` lines, or CSV with
 * a header, whose columns besides domain, value and region are ignored, with one warning. A domain can be listed several times if
 * its lines agree.
 *
 * @param from a path, or `-` for standard input
 * @throws CliError exit 2 if it can't be read; the reason of the interrupt signal
 */
export async function readList(from: string, takesIds: boolean, io: Io): Promise<DomainList> {
  if (from === '-' && io.stdin.isTTY)
    throw usageError('--from - reads standard input, which is a terminal', 'pipe the domains into it')
  const name = from === '-' ? '<stdin>' : from
  const text = await readText(from, io)
  if (/[\0\ufffd]/.test(text)) throw usageError(`${name} isn't text in UTF-8`, SAVE_AS)
  const rows = await parseRows(text, name)
  const [{ cells: first } = { cells: [] }] = rows
  const header = first.map((cell) => cell.toLowerCase().replace(/\s/g, ''))
  const hasHeader = header.some((cell) => DOMAIN.includes(cell))
  // JSON, HTML and the like begin with a bracket, and may have a line with nothing but a domain.
  const isOther = !hasHeader && /[[\]{}<>]/.test(first.join(''))
  if (!hasHeader && !isOther && first.length > 1 && first[0] !== '' && !first[0]?.includes('.'))
    throw usageError(`${name} has no column "domain"`, `call one domain: ${clip(first.join(', '), 200)}`)
  const known = ['', ...DOMAIN, ...VALUE, ...REGION]
  const ignored = first.filter((_, at) => hasHeader && !known.includes(header[at] ?? '')).join(', ')
  if (ignored !== '') await io.warn(`ignored columns of ${name}: ${ignored.toLowerCase()}`)
  const subjects = new Map<string, Subject>()
  const problems: CliError[] = []
  for (const { cells, line } of rows.slice(hasHeader ? 1 : 0)) {
    try {
      const subject = subjectOf(cells, hasHeader ? header : NO_HEADER, takesIds)
      subjects.set(subject.domain, mergeSubjects(subject, subjects.get(subject.domain)))
    } catch (error) {
      if (!(error instanceof CliError)) throw error
      problems.push(error.with({ message: `${name}:${line}: ${error.message}` }))
    }
  }
  if (problems[0] !== undefined && (isOther || (!hasHeader && subjects.size === 0)))
    throw usageError(`${name} isn't a list of domains: ${problems[0].message}`, WRITE_AS)
  for (const { message, hint } of problems.slice(0, MOST_NAMED))
    await io.warn(hint === undefined ? message : `${message} (${hint})`)
  if (problems.length > MOST_NAMED)
    await io.warn(
      `lines of ${name} that can't be used: ${problems.length}, of which the first ${MOST_NAMED} are named`,
    )
  if (subjects.size + problems.length === 0) throw usageError(`${name} has no domain`, WRITE_AS)
  return { subjects: [...subjects.values()], problems: problems.length }
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
 * Parses CSV (RFC 4180), separated by the first comma, semicolon or tab outside of comments and quotation marks. Blank rows and
 * lines that begin with `#` are left out. Unlike RFC 4180, an unquoted cell may have quotation marks in it, as in TSV.
 *
 * @returns the cells of each row, and the number of its first line in the file
 * @throws CliError exit 2 if a quoted cell doesn't end
 */
async function parseRows(text: string, name: string) {
  const { CsvError, parse } = await import('csv-parse/sync')
  const [delimiter = ','] = /[,;\t]/.exec(text.replace(/^#.*|"[^"]*"/gm, '')) ?? []
  const blank = { skip_records_with_empty_values: true, ltrim: true }
  const options = { ...blank, delimiter, comment: '#', comment_no_infix: true, relax_column_count: true }
  const rows: { cells: string[]; line: number }[] = []
  const addRow = (row: object, { lines }: { readonly lines: number }) => {
    const { record, raw } = row as { record: string[]; raw: string }
    const lineBreaks = record.join('').split('\n').length - 1
    // A stray quotation mark must not make the next lines, and their domains, part of a cell that is ignored.
    if (lineBreaks > 0) parse(raw, options)
    // A line for spreadsheet programs.
    if (rows.length > 0 || !/^sep=/i.test(record[0] ?? ''))
      rows.push({ cells: record.map((cell) => cell.trim()), line: lines - lineBreaks })
    return null
  }
  try {
    // The parser counts CRLF in a quoted cell as two lines.
    const lines = text.replace(/\r\n?/g, '\n')
    parse(lines, { ...options, relax_quotes: true, raw: true, on_record: addRow })
    return rows
  } catch (error) {
    if (!(error instanceof CsvError)) throw error
    throw usageError(`${name}: a quotation mark isn't closed after line ${rows.at(-1)?.line ?? 0}`)
  }
}

/** What the lines of one domain say together. @throws CliError exit 2 if they contradict each other */
function mergeSubjects(subject: Subject, earlier: Subject = subject): Subject {
  const merged = { ...earlier, ...subject }
  const other = (['value', 'region'] as const).find((key) => merged[key] !== (earlier[key] ?? merged[key]))
  if (other === undefined) return merged
  throw usageError(`"${subject.domain}" has another ${other} on an earlier line`)
}

/** @throws CliError exit 2 */
function subjectOf(cells: readonly string[], columns: readonly string[], takesIds: boolean): Subject {
  if (cells.length > columns.length) throw usageError(`columns: ${cells.length} instead of ${columns.length}`)
  const [domain, value, region] = [DOMAIN, VALUE, REGION].map((texts) => {
    const column = texts.find((text) => columns.includes(text))
    return (column && cells[columns.indexOf(column)]) || undefined
  })
  if (domain === undefined) throw usageError('the domain is missing')
  if (region !== undefined && !(REGIONS as readonly string[]).includes(region))
    throw usageError(`"${region}" is not a region (${REGIONS.join(', ')})`)
  return {
    domain: readDomain(domain, takesIds),
    ...(value === undefined ? {} : { value: readValue(value, 'the value') }),
    ...(region === undefined ? {} : { region }),
  }
}
