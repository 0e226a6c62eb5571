import { createReadStream } from 'node:fs'
import { stat } from 'node:fs/promises'
import { checkName } from '../../dns/wire/name.ts'
import { CliError, usageError } from '../../errors.ts'
import { looksLikeId } from '../../service/claims.ts'
import { readValue } from '../read-value.ts'
import { domainToClaim } from '../resolve.ts'
import { readLines } from './lines.ts'

/** One domain of a run over several, with what its line says beside the name. */
export interface Subject {
  /** In its ASCII form; or a placeholder domain id. */
  readonly domain: string
  /** The complete TXT value to expect. */
  readonly value?: string
  /** Options of its own, by the names that commander gives them: `customReturnPath`. */
  readonly options: Readonly<Record<string, unknown>>
}

/** A domain to work on, or what is wrong with a line or an argument. */
export type SubjectReading =
  | { readonly kind: 'subject'; readonly subject: Subject }
  /** `where`: FILE:LINE, or nothing for an argument. */
  | { readonly kind: 'problem'; readonly where: string | undefined; readonly why: string }
  /** The same domain again. */
  | { readonly kind: 'repeated' }

/** A column of a file besides `domain` and `value`, by its name: an option of one domain. */
export interface OptionColumn {
  /** As commander names it. */
  readonly key: string
  /** @throws CliError exit 2 */
  readonly parse: (text: string) => unknown
}

export interface SubjectSource {
  readonly domains: readonly string[]
  /** A path, or `-` for standard input. */
  readonly from: string | undefined
  /** By the name of the column. */
  readonly columns: ReadonlyMap<string, OptionColumn>
  /** Whether a placeholder domain id may stand for a domain. */
  readonly takesIds: boolean
  readonly stdin: () => AsyncIterable<Uint8Array | string>
}

/**
 * Reads the domains one by one, those that were typed first, so that a list of any length takes little memory. A line holds
 * a domain; or `domain,value`; or what the header says (RFC 4180, and with tabs or semicolons in place of the commas); or a
 * JSON object. Blank lines, and those that begin with `#`, are skipped.
 *
 * @throws CliError exit 2 if the file can't be read, or its header isn't usable
 */
export async function* readSubjects(source: SubjectSource): AsyncGenerator<SubjectReading, void, void> {
  const seen = new Map<string, string>()
  const once = (subject: Subject, where: string | undefined): SubjectReading => {
    const { domain, ...rest } = subject
    const details = JSON.stringify(rest) === '{"options":{}}' ? '' : JSON.stringify(rest)
    const before = seen.get(domain)
    if (before === undefined) {
      seen.set(domain, details)
      return { kind: 'subject', subject }
    }
    return before === details
      ? { kind: 'repeated' }
      : { kind: 'problem', where, why: `${domain} was there before with another value or other options` }
  }
  const read = (make: () => Subject, where: string | undefined): SubjectReading => {
    try {
      return once(make(), where)
    } catch (error) {
      if (!(error instanceof CliError)) throw error
      const hint =
        error.hint === undefined ? '' : `; ${error.hint.charAt(0).toLowerCase()}${error.hint.slice(1)}`
      return { kind: 'problem', where, why: `${error.message}${hint}` }
    }
  }

  for (const domain of source.domains)
    yield read(() => ({ domain: readArgument(domain, source.takesIds), options: {} }), undefined)
  if (source.from === undefined) return

  const name = source.from === '-' ? 'standard input' : source.from
  const stream = source.from === '-' ? source.stdin() : openList(source.from)
  let header: Header | undefined
  let isFirst = true
  for await (const line of readLines(stream)) {
    const where = `${source.from === '-' ? '<stdin>' : source.from}:${line.number}`
    const text = line.kind === 'text' ? line.text : ''
    if (line.kind === 'text' && (text.trim() === '' || text.startsWith('#'))) continue
    const wasFirst = isFirst
    isFirst = false
    if (line.kind === 'unreadable') {
      yield { kind: 'problem', where, why: line.why }
      continue
    }
    if (wasFirst && !text.trimStart().startsWith('{')) {
      header = readHeader(text, name, source.columns)
      if (header !== undefined) continue
    }
    yield read(() => subjectOf(fieldsOf(text, header), source), where)
  }
}

/** How many domains a list has, roughly: for a bar. Undefined if it can be read only once. */
export async function countLines(path: string): Promise<number | undefined> {
  let count = 0
  try {
    if (!(await stat(path)).isFile()) return undefined
    for await (const line of readLines(openList(path)))
      if (line.kind === 'unreadable' || (line.text.trim() !== '' && !line.text.startsWith('#'))) count += 1
  } catch {
    return undefined
  }
  return count
}

async function* openList(path: string): AsyncGenerator<Uint8Array, void, void> {
  try {
    yield* createReadStream(path)
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    const why: Record<string, string> = {
      ENOENT: "it doesn't exist",
      EACCES: 'permission denied',
      EISDIR: 'it is a directory',
    }
    throw usageError(`--from: couldn't read ${path}: ${why[code ?? ''] ?? message}`)
  }
}

interface Header {
  readonly columns: readonly string[]
  readonly separator: string
}

/** @throws CliError exit 2 for a column that no command knows: an option must not be ignored */
function readHeader(
  text: string,
  name: string,
  known: ReadonlyMap<string, OptionColumn>,
): Header | undefined {
  const separator = separatorOf(text, ['\t', ',', ';'])
  const cells = splitCells(text, separator).map((cell) => columnName(cell))
  if (!cells.includes('domain')) return undefined
  const wrong = cells.find((cell) => cell !== 'domain' && cell !== 'value' && !known.has(cell))
  const allowed = `the columns are ${['domain', 'value', ...known.keys()].join(', ')}`
  if (wrong !== undefined)
    throw usageError(`${name}: unknown column ${JSON.stringify(wrong)} in the header`, allowed)
  const twice = cells.find((cell, index) => cells.indexOf(cell) !== index)
  if (twice !== undefined) throw usageError(`${name}: the column ${twice} is in the header twice`)
  return { columns: cells, separator }
}

const columnName = (text: string) => text.trim().toLowerCase().replace(/^--/, '').replaceAll('-', '_')

function separatorOf(text: string, candidates: readonly string[]): string {
  return candidates.find((candidate) => text.includes(candidate)) ?? ','
}

/** What a line says, by column. @throws CliError exit 2 */
function fieldsOf(text: string, header: Header | undefined): Map<string, unknown> {
  if (text.trimStart().startsWith('{')) return jsonFields(text)
  const cells = splitCells(text, header?.separator ?? separatorOf(text, ['\t', ',']))
  const columns = header?.columns ?? ['domain', 'value']
  const domain = cells[columns.indexOf('domain')] ?? ''
  if (/\s#/.test(domain)) throw usageError('a comment needs a line of its own')
  if (header === undefined && domain.trim() === '') throw usageError('the first column, the domain, is empty')
  if (cells.length > columns.length)
    throw usageError(
      `${cells.length} columns`,
      header === undefined
        ? 'without a header line that names them, there are only domain and value'
        : `the header has ${columns.length}`,
    )
  return new Map(cells.map((cell, index) => [columns[index] ?? '', cell.trim()]))
}

function jsonFields(text: string): Map<string, unknown> {
  let parsed: unknown
  try {
    parsed = JSON.parse(text)
  } catch {
    throw usageError('not a complete JSON object')
  }
  return new Map(Object.entries(parsed as object).map(([key, value]) => [columnName(key), value]))
}

/** The cells of one line (RFC 4180): a cell in quotation marks may hold separators and doubled quotation marks. */
function splitCells(line: string, separator: string): string[] {
  const cells: string[] = []
  for (let at = 0; ; ) {
    const quoted = /^\s*"/.exec(line.slice(at))
    if (quoted === null) {
      const end = line.indexOf(separator, at)
      cells.push(line.slice(at, end < 0 ? undefined : end))
      if (end < 0) return cells
      at = end + 1
      continue
    }
    let cell = ''
    at += quoted[0].length
    for (;;) {
      const end = line.indexOf('"', at)
      if (end < 0) throw usageError('a quotation mark is not closed')
      cell += line.slice(at, end)
      at = end + 1
      if (line[at] !== '"') break
      cell += '"'
      at += 1
    }
    const rest = line.slice(at)
    const gap = /^\s*/.exec(rest)?.[0].length ?? 0
    cells.push(cell)
    if (rest.length === gap) return cells
    if (rest[gap] !== separator && rest[0] !== separator)
      throw usageError('there is text after a closing quotation mark')
    at += rest[0] === separator ? 1 : gap + 1
  }
}

/** @throws CliError exit 2 */
function subjectOf(fields: ReadonlyMap<string, unknown>, { columns, takesIds }: SubjectSource): Subject {
  const options: Record<string, unknown> = {}
  let value: string | undefined
  for (const [name, given] of fields) {
    if (name === 'domain') continue
    const column = columns.get(name)
    if (name !== 'value' && column === undefined)
      throw usageError(
        `unknown field ${JSON.stringify(name)}`,
        `the fields are ${['domain', 'value', ...columns.keys()].join(', ')}`,
      )
    const text = textOf(given, name)
    if (text === '') continue
    if (column === undefined && text.includes('.') && checkName(text).ok)
      throw usageError(`the value ${JSON.stringify(text)} is a domain name`, 'give one domain on each line')
    if (column === undefined) value = readValue(text, 'the value')
    else options[column.key] = column.parse(text)
  }
  const domain = textOf(fields.get('domain'), 'domain')
  if (domain === '') throw usageError('the domain is missing')
  return {
    // In a list, any other single word is more likely a mistake.
    domain: readDomain(domain, takesIds && looksLikeId(domain)),
    ...(value === undefined ? {} : { value }),
    options,
  }
}

function textOf(given: unknown, name: string): string {
  if (given === undefined || given === null) return ''
  if (typeof given === 'boolean') return String(given)
  if (typeof given !== 'string') throw usageError(`"${name}" isn't a string`)
  return given.trim()
}

/** The domain in its ASCII form, or the placeholder domain id. @throws CliError exit 2 for an argument that is neither */
export function readArgument(text: string, takesIds: boolean): string {
  return readDomain(text, takesIds && /^[\w-]{1,128}$/.test(text))
}

function readDomain(text: string, isId: boolean): string {
  return isId && !checkName(text).ok ? text : domainToClaim(text)
}
