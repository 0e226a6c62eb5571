import { createReadStream } from 'node:fs'
import { addAbortSignal, type Readable } from 'node:stream'
import { CliError, usageError } from '../errors.ts'
import { isUuid } from '../service/claims.ts'
import { CLAIM_REGIONS } from '../service/types.ts'
import { reasonOf } from '../storage/file-errors.ts'
import type { Io } from '../terminal/io.ts'
import { clip } from '../terminal/sanitize.ts'
import { parseDomain } from './load.ts'
import { parseClaimTxtValue } from './record.ts'

/** A domain of a run over several, with the value and region from its line in the `--from` list. */
export interface BatchDomain {
  /** Domain name in its ASCII form, or the `domain_id` of a claim. */
  readonly domain: string
  /** The complete TXT value to expect, `prefix=token`. */
  readonly value?: string | undefined
  readonly region?: string | undefined
}

/**
 * Headings of the column with the domains in a `--from` list, in lower case without blanks. Of several such columns, the one whose
 * heading comes first here is used.
 */
const DOMAIN_HEADINGS: readonly string[] = ['domain', 'domainname', 'name']
const VALUE_HEADINGS: readonly string[] = ['value', 'txtvalue', 'record.value']
const REGION_HEADINGS: readonly string[] = ['region']
/**
 * Matches headings of columns with domains, or with web or mail addresses. In a list with such a column, a column `name` isn't
 * read as domains, because it may have customers' names.
 */
const ADDRESS = /domain(?!_id)|url|web|www|site|page|host|link|mail|internet/
/** Columns of a `--from` list without a header row. */
const DEFAULT_COLUMNS = ['domain', 'value']
const ENCODING_HINT = 'save it as CSV UTF-8, with a column named domain'
const FORMAT_HINT = 'give a domain, or domain,value, on each line'
/** Maximum number of unusable lines of a `--from` list that are named on stderr. */
const MAX_NAMED_LINES = 10
/** Maximum bytes of a `--from` list: enough for a hundred thousand domains with long values. */
const MAX_SIZE_BYTES = 32 * 1024 * 1024

/**
 * Returns the ASCII form of a domain name, or a UUID unchanged if the command takes ids.
 *
 * @throws CliError exit 2 for any other text
 */
export function parseDomainOrId(text: string, takesIds: boolean): string {
  return takesIds && isUuid(text) ? text : parseDomain(text)
}

/**
 * Reads the list of domains of `--from`: lines `domain[,value]`, or CSV whose header row names columns domain, value or region.
 * Warns about unusable lines and skips them. Reads to the end before it returns, so that an unusable list changes nothing.
 *
 * @param from a path, or `-` for standard input
 * @returns the domains, and the number of unusable lines
 * @throws CliError exit 2 for a file that can't be read or isn't a list of domains; the reason of the interrupt signal
 */
export async function readUsableDomains(from: string, takesIds: boolean, io: Io) {
  if (from === '-' && io.stdin.isTTY)
    throw usageError('--from - reads standard input, which is a terminal', 'pipe the domains into it')
  const name = from === '-' ? '<stdin>' : from
  const text = await readText(from, io)
  if (/[\0\ufffd]/.test(text)) throw usageError(`${name} isn't text in UTF-8`, ENCODING_HINT)
  const rows = await parseRows(text, name)
  const [{ cells: first } = { cells: [] }] = rows
  const header = first.map((cell) => cell.toLowerCase().replace(/\s/g, ''))
  const usable = header.some((cell) => ADDRESS.test(cell)) ? DOMAIN_HEADINGS.slice(0, -1) : DOMAIN_HEADINGS
  const hasHeader = header.some((cell) => usable.includes(cell))
  // Brackets in the first row suggest JSON or HTML. Some lines of such a file may be valid domains, which must not be claimed, so
  // one unusable line makes `readUsableDomains` refuse the complete file.
  const isOtherFormat = !hasHeader && /[[\]{}<>]/.test(first.join(''))
  if (!hasHeader && !isOtherFormat && first.length > 1 && first[0] !== '' && !first[0]?.includes('.'))
    throw usageError(`${name} has no column "domain"`, `rename one to domain: ${clip(first.join(', '), 200)}`)
  const headings = ['', ...DOMAIN_HEADINGS, ...VALUE_HEADINGS, ...REGION_HEADINGS]
  const ignored = first.filter((_, at) => hasHeader && !headings.includes(header[at] ?? '')).join(', ')
  if (ignored !== '') await io.warn(`ignored columns of ${name}: ${ignored.toLowerCase()}`)
  const inputs = new Map<string, BatchDomain>()
  const badLines: CliError[] = []
  for (const { cells, line } of rows.slice(hasHeader ? 1 : 0)) {
    try {
      const input = parseRow(cells, hasHeader ? header : DEFAULT_COLUMNS, takesIds)
      inputs.set(input.domain, mergeInputs(input, inputs.get(input.domain)))
    } catch (error) {
      if (!(error instanceof CliError)) throw error
      badLines.push(error.with({ message: `${name}:${line}: ${error.message}` }))
    }
  }
  if (badLines[0] !== undefined && (isOtherFormat || (!hasHeader && inputs.size === 0)))
    throw usageError(`${name} isn't a list of domains: ${badLines[0].message}`, FORMAT_HINT)
  for (const { message, hint } of badLines.slice(0, MAX_NAMED_LINES))
    await io.warn(hint === undefined ? message : `${message} (${hint})`)
  if (badLines.length > MAX_NAMED_LINES)
    await io.warn(
      `lines of ${name} that can't be used: ${badLines.length}, of which the first ${MAX_NAMED_LINES} are named`,
    )
  if (inputs.size + badLines.length === 0) throw usageError(`${name} has no domain`, FORMAT_HINT)
  return { inputs: [...inputs.values()], badLines: badLines.length }
}

/**
 * Reads the UTF-8 text of a file, or of standard input for `-`, without its byte order mark; invalid bytes become U+FFFD.
 *
 * @throws CliError exit 2 if the text can't be read or is too large; the reason of the interrupt signal
 */
async function readText(from: string, { stdin, interrupts }: Io): Promise<string> {
  const { signal } = interrupts
  const input: Readable = from === '-' ? stdin.stream : createReadStream(from)
  const chunks: Buffer[] = []
  let size = 0
  try {
    for await (const chunk of addAbortSignal(signal, input)) {
      chunks.push(Buffer.from(chunk))
      size += chunk.length
      if (size > MAX_SIZE_BYTES) throw usageError(`--from: ${from} is larger than ${MAX_SIZE_BYTES} bytes`)
    }
  } catch (error) {
    signal.throwIfAborted()
    if (error instanceof CliError) throw error
    throw usageError(`--from: couldn't read ${from}: ${reasonOf(error)}`)
  }
  return new TextDecoder().decode(Buffer.concat(chunks))
}

/**
 * Parses CSV (RFC 4180), also with semicolons or tabs, and with quotation marks in unquoted cells. Skips blank rows, lines that
 * begin with `#`, and Excel's first line `sep=…`.
 *
 * @returns the trimmed cells of each row, and the number of the row's first line in the file
 * @throws CliError exit 2 if a quoted cell isn't closed, or a row with line breaks in a cell has a stray quotation mark
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
    // Parse a row of several lines once more, strictly, to refuse a stray quotation mark: it could swallow the next lines, and
    // their domains, into one cell.
    if (lineBreaks > 0) parse(raw, options)
    // Skip a first line such as `sep=;`, with which Excel names the delimiter.
    if (rows.length > 0 || !/^sep=/i.test(record[0] ?? ''))
      rows.push({ cells: record.map((cell) => cell.trim()), line: lines - lineBreaks })
    return null
  }
  try {
    // The parser counts CRLF in a quoted cell as two lines, so normalize line breaks: otherwise messages would have wrong line
    // numbers.
    const lines = text.replace(/\r\n?/g, '\n')
    parse(lines, { ...options, relax_quotes: true, raw: true, on_record: addRow })
    return rows
  } catch (error) {
    if (!(error instanceof CsvError)) throw error
    throw usageError(`${name}: a quotation mark isn't closed after line ${rows.at(-1)?.line ?? 0}`)
  }
}

/**
 * Merges two lines of the `--from` list with the same domain.
 *
 * @throws CliError exit 2 if they have different values or regions
 */
function mergeInputs(input: BatchDomain, earlier: BatchDomain = input): BatchDomain {
  const { domain, value = earlier.value, region = earlier.region } = input
  const other =
    value !== (earlier.value ?? value) ? 'value' : region !== (earlier.region ?? region) && 'region'
  if (other) throw usageError(`"${domain}" has another ${other} on an earlier line`)
  return { domain, value, region }
}

/**
 * Parses a row of the `--from` list into a domain (or, with `takesIds`, a `domain_id`), its value and its region.
 *
 * @throws CliError exit 2 for an unusable row
 */
function parseRow(cells: readonly string[], columns: readonly string[], takesIds: boolean): BatchDomain {
  if (cells.length > columns.length) throw usageError(`columns: ${cells.length} instead of ${columns.length}`)
  const [domain, value, region] = [DOMAIN_HEADINGS, VALUE_HEADINGS, REGION_HEADINGS].map((texts) => {
    const column = texts.find((text) => columns.includes(text))
    return (column && cells[columns.indexOf(column)]) || undefined
  })
  if (domain === undefined) throw usageError('the domain is missing')
  if (region !== undefined && !(CLAIM_REGIONS as readonly string[]).includes(region))
    throw usageError(`"${region}" is not a region (${CLAIM_REGIONS.join(', ')})`)
  return { domain: parseDomainOrId(domain, takesIds), value: value && parseClaimTxtValue(value), region }
}
