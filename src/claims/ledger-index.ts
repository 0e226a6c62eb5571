/**
 * The ledger's index: which claims there are, without opening their files. It finds the claims of a domain, the domains that
 * begin with what a person has typed, and the order of a list.
 *
 * It is a directory with one text file for each month, to which claims are appended before their own files are written. So
 * no process waits for another, and one that is killed leaves at most a line without a claim. The index is complete, and
 * says so with an empty file, once a process has compared it with all files of the ledger. Nothing is ever rewritten: the
 * line of a forgotten claim is marked, and a past month is removed when all of its lines are.
 */
import {
  closeSync,
  constants,
  fstatSync,
  openSync,
  readFileSync,
  readSync,
  statSync,
  writeSync,
} from 'node:fs'
import { join } from 'node:path'
import { appendDurable, createDurable, removeDurable } from '../storage/durable-file.ts'
import { closeQuietly } from '../storage/file-errors.ts'
import { ensurePrivateDirectory, namesIn } from '../storage/private-directory.ts'

/** What the index knows of a claim. */
export interface IndexedClaim {
  /** The name of its file in the ledger, without the extension: 32 hex digits. */
  readonly file: string
  /** Milliseconds since 1970; when the claim was first seen, if the service doesn't say. */
  readonly createdAt: number
}

export interface NewLine extends IndexedClaim {
  readonly issuer: string
  readonly name: string
}

export interface Index {
  readonly lines: Lines
  readonly isComplete: boolean
}

const COMPLETE = 'complete'
const MONTH = /^[-+]?\d+-\d\d\.tsv$/
const LIVE = /^[0-9a-f]{32}$/
/** Takes the place of the first digit in the line of a forgotten claim. */
const FORGOTTEN = '-'

const indexDirectory = (ledger: string) => join(ledger, 'index')

/** The current month's file, by the wall clock. That it jumps only means that months are mixed. */
function currentMonth(now: number): string {
  const date = new Date(now).toISOString()
  return `${date.slice(0, date.indexOf('T') - 3)}.tsv`
}

/** What this process has read, by directory: in a run over many domains, each of them asks. */
const readings = new Map<string, Lines>()

/**
 * Reads what the index has got since this process read it last. Lines are only appended, so these are the ends of its files;
 * if one has been removed or replaced, all are read again. An index that can't be read is one that isn't complete.
 *
 * @param ledger the ledger's directory
 */
export function readIndex(ledger: string): Index {
  const directory = indexDirectory(ledger)
  try {
    const names = namesIn(directory)
    const months = names.filter((name) => MONTH.test(name)).sort()
    const files = months.map((name) => describeFile(join(directory, name)))
    const known = readings.get(directory)
    const lines = known?.isBeginningOf(files) ? known : new Lines()
    readings.set(directory, lines)
    for (const file of files) lines.readOn(file)
    return { lines, isComplete: names.includes(COMPLETE) }
  } catch {
    return { lines: new Lines(), isComplete: false }
  }
}

/** An index with lines that are in no file. */
export function withLines({ lines }: Index, more: readonly NewLine[]): Index {
  return { lines: new Lines([...lines.texts, textOf(more)]), isComplete: true }
}

interface IndexFile {
  readonly path: string
  /** Another file in its place has another identity. */
  readonly identity: string
  /** Bytes. */
  readonly size: number
}

/** @throws the system's error */
function describeFile(path: string): IndexFile {
  const { ino, birthtimeMs, size } = statSync(path)
  return { path, identity: `${ino} ${birthtimeMs}`, size }
}

/** A process that asks for more domains than this gets a table of all names instead of a search for each. */
const SEARCHES = 10

/** The lines of an index, as far as they were read. */
class Lines {
  /** Whole lines, in the order in which they were appended, as far as that is known. */
  readonly texts: string[]
  readonly #ends = new Map<string, { readonly identity: string; readonly at: number }>()
  #searches = 0
  #byName: Map<string, string[]> | undefined

  constructor(texts: readonly string[] = []) {
    this.texts = [...texts]
  }

  isBeginningOf(files: readonly IndexFile[]): boolean {
    const found = new Map(files.map((one) => [one.path, one]))
    return [...this.#ends].every(([path, { identity, at }]) => {
      const file = found.get(path)
      return file?.identity === identity && file.size >= at
    })
  }

  /** @throws the system's error */
  readOn({ path, identity, size }: IndexFile): void {
    const from = this.#ends.get(path)?.at ?? 0
    if (from === size) return
    const text = readFrom(path, from)
    // What another process is writing may not be whole yet.
    const whole = text.slice(0, text.lastIndexOf('\n') + 1)
    this.texts.push(whole)
    if (this.#byName !== undefined) addByName(this.#byName, whole)
    this.#ends.set(path, { identity, at: from + whole.length })
  }

  /** Those of a domain. @param name in lower case */
  named(name: string): readonly string[] {
    const field = `\t"${escaped(name)}"`
    this.#searches += 1
    if (this.#byName === undefined && this.#searches > SEARCHES) {
      this.#byName = new Map()
      for (const text of this.texts) addByName(this.#byName, text)
    }
    if (this.#byName !== undefined) return this.#byName.get(field) ?? []
    return this.texts.flatMap((text) => linesWith(`${field}\n`, text))
  }
}

function linesWith(field: string, text: string): string[] {
  const found: string[] = []
  for (let at = text.indexOf(field); at >= 0; at = text.indexOf(field, at + 1))
    found.push(lineAround(at, text))
  return found
}

function addByName(byName: Map<string, string[]>, text: string): void {
  for (const line of text.split('\n')) {
    const field = line.slice(line.lastIndexOf('\t'))
    const lines = byName.get(field)
    if (lines === undefined) byName.set(field, [line])
    else lines.push(line)
  }
}

/** The ASCII text of a file from an offset in bytes. @throws the system's error */
function readFrom(path: string, from: number): string {
  if (from === 0) return readFileSync(path, 'latin1')
  const fd = openSync(path, 'r')
  try {
    const bytes = Buffer.alloc(Math.max(0, fstatSync(fd).size - from))
    return bytes.toString('latin1', 0, readSync(fd, bytes, 0, bytes.length, from))
  } finally {
    closeQuietly(fd)
  }
}

/** @throws CliError `cannot_write` or `directory_unusable`, exit 1 */
export async function appendToIndex(ledger: string, lines: readonly NewLine[], now: number): Promise<void> {
  await ensurePrivateDirectory(indexDirectory(ledger))
  if (lines.length > 0) appendDurable(join(indexDirectory(ledger), currentMonth(now)), textOf(lines))
}

function textOf(lines: readonly NewLine[]): string {
  return lines
    .map(
      ({ file, createdAt, issuer, name }) =>
        `${file}\t${createdAt}\t${escaped(issuer)}\t"${escaped(name.toLowerCase())}"\n`,
    )
    .join('')
}

/** To be called when every claim has a line. @throws CliError `cannot_write`, exit 1 */
export function markComplete(ledger: string): void {
  const fd = createDurable(join(indexDirectory(ledger), COMPLETE), '')
  if (fd !== undefined) closeSync(fd)
}

/** All claims, each once. @param issuer only those of this service; undefined: of every service */
export function claimsIn({ lines }: Index, issuer?: string): IndexedClaim[] {
  const field = issuerField(issuer)
  const found = new Map<string, IndexedClaim>()
  for (const text of lines.texts) {
    for (const line of text.split('\n')) {
      const isWhole = line.endsWith('"') && LIVE.test(line.slice(0, 32))
      if (isWhole && line.includes(field)) found.set(line.slice(0, 32), claimOf(line))
    }
  }
  return [...found.values()]
}

/** The services that the claims belong to. */
export function issuersIn({ lines }: Index): string[] {
  const fields = new Set(
    lines.texts.flatMap((text) => text.split('\n').map((line) => line.split('\t', 3)[2] ?? '')),
  )
  return [...fields].filter((field) => field !== '').map((field) => String(JSON.parse(`"${field}"`)))
}

/** The claims of a domain, each once. @param name in lower case */
export function claimsNamed(name: string, { lines }: Index, issuer?: string): IndexedClaim[] {
  const field = issuerField(issuer)
  const claims = lines.named(name).filter((line) => LIVE.test(line.slice(0, 32)) && line.includes(field))
  return [...new Map(claims.map((line) => [line.slice(0, 32), claimOf(line)])).values()]
}

/**
 * The domains whose names begin like this, with their claims, of each at least the newest. Of more than `most`, it's the last
 * ones that were added, and a few that keep the beginning right which all domains share: a shell types it.
 */
export function domainsBeginning(
  prefix: string,
  { lines }: Index,
  issuer: string | undefined,
  most: number,
): Map<string, IndexedClaim[]> {
  const found = new Map<string, IndexedClaim[]>()
  const start = nameField(issuer)
  let shared: string | undefined
  const add = (text: string, at: number) => {
    const name = text.slice(at + start.length, text.indexOf('"\n', at))
    const claim = claimOf(lineAround(at, text))
    if (!LIVE.test(claim.file) || !SAFE.test(name)) return
    found.set(name, [...(found.get(name) ?? []), claim])
    shared = sharedBeginning(shared ?? name, name)
  }
  const field = start + escaped(prefix)
  for (const text of lines.texts.toReversed()) {
    for (let at = text.lastIndexOf(field); at > 0 && found.size < most; at = text.lastIndexOf(field, at - 1))
      add(text, at)
    if (found.size < most) continue
    // Of the others, which may be a hundred thousand, only what begins differently matters; a pattern skips the rest.
    for (let at = 0; shared !== undefined && shared.length > prefix.length; at++) {
      const different = new RegExp(`${literally(start)}(?!${literally(shared)})${literally(prefix)}`, 'g')
      different.lastIndex = at
      const match = different.exec(text)
      if (match === null) break
      at = match.index
      add(text, at)
    }
  }
  return found
}

/** A pattern of this text. */
function literally(text: string): string {
  return text.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&')
}

function sharedBeginning(one: string, other: string): string {
  let length = 0
  while (length < one.length && one[length] === other[length]) length++
  return one.slice(0, length)
}

/** A domain that no shell misreads and that doesn't look like an option. */
const SAFE = /^[a-z0-9_][a-z0-9._-]*$/

/**
 * Marks the lines of claims whose files are gone, and removes past months without any others.
 *
 * @throws the system's error
 */
export function dropFromIndex(ledger: string, files: ReadonlySet<string>, now: number): void {
  const directory = indexDirectory(ledger)
  for (const name of namesIn(directory).filter((candidate) => MONTH.test(candidate))) {
    const fd = openSync(join(directory, name), constants.O_RDWR | (constants.O_NOFOLLOW ?? 0))
    try {
      let at = 0
      let isNeeded = name === currentMonth(now)
      for (const line of readFileSync(fd, 'latin1').split('\n')) {
        const file = line.slice(0, 32)
        // One byte in place disturbs nobody who appends at the same time.
        if (files.has(file)) writeSync(fd, FORGOTTEN, at)
        else if (LIVE.test(file)) isNeeded = true
        at += line.length + 1
      }
      if (!isNeeded) removeDurable(join(directory, name))
    } finally {
      closeQuietly(fd)
    }
  }
}

/** What a line has before its name. */
function nameField(issuer: string | undefined): string {
  return issuer === undefined ? '\t"' : `${issuerField(issuer)}"`
}

/** What every line of a service has. */
function issuerField(issuer: string | undefined): string {
  return issuer === undefined ? '' : `\t${escaped(issuer)}\t`
}

function lineAround(at: number, text: string): string {
  const end = text.indexOf('\n', at)
  return text.slice(text.lastIndexOf('\n', at) + 1, end < 0 ? undefined : end)
}

function claimOf(line: string): IndexedClaim {
  return { file: line.slice(0, 32), createdAt: Number(line.slice(33, line.indexOf('\t', 33))) }
}

/** Text from outside as ASCII without tabs, line breaks and quotation marks. */
function escaped(text: string): string {
  return JSON.stringify(text)
    .slice(1, -1)
    .replace(
      /[^\x20-\x7e]|\\"/g,
      (character) =>
        `\\u${character
          .charCodeAt(character.length - 1)
          .toString(16)
          .padStart(4, '0')}`,
    )
}
