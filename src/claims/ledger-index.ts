/**
 * The ledger's index: which claims there are, without opening their files. It finds the claims of a domain, the domains that
 * begin with what a person has typed, and the order of a list.
 *
 * It is a directory with one text file for each month, to which claims are appended before their own files are written. So
 * no process waits for another, and one that is killed leaves at most a line without a claim. The index is complete, and
 * says so with an empty file, once a process has compared it with all files of the ledger. Nothing is ever rewritten: the
 * line of a forgotten claim is marked, and a past month is removed when all of its lines are.
 */
import { closeSync, constants, openSync, readFileSync, writeSync } from 'node:fs'
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
  /** All lines, each with a line break before and after it. */
  readonly text: string
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

/** An index that can't be read is one that isn't complete. @param ledger the ledger's directory */
export function readIndex(ledger: string): Index {
  const directory = indexDirectory(ledger)
  try {
    const names = namesIn(directory)
    const months = names.filter((name) => MONTH.test(name)).sort()
    const text = months.map((name) => readFileSync(join(directory, name), 'latin1')).join('')
    return { text: `\n${text}`, isComplete: names.includes(COMPLETE) }
  } catch {
    return { text: '\n', isComplete: false }
  }
}

/** @throws CliError `cannot_write` or `directory_unusable`, exit 1 */
export async function appendToIndex(ledger: string, lines: readonly NewLine[], now: number): Promise<void> {
  await ensurePrivateDirectory(indexDirectory(ledger))
  if (lines.length > 0) appendDurable(join(indexDirectory(ledger), currentMonth(now)), textOf(lines))
}

export function textOf(lines: readonly NewLine[]): string {
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
export function claimsIn({ text }: Index, issuer?: string): IndexedClaim[] {
  const field = issuer === undefined ? '' : `\t${escaped(issuer)}\t`
  const found = new Map<string, IndexedClaim>()
  for (const line of text.split('\n')) {
    const isWhole = line.endsWith('"') && LIVE.test(line.slice(0, 32))
    if (isWhole && line.includes(field)) found.set(line.slice(0, 32), claimOf(line))
  }
  return [...found.values()]
}

/** The services that the claims belong to. */
export function issuersIn({ text }: Index): string[] {
  const fields = new Set(text.split('\n').map((line) => line.split('\t', 3)[2] ?? ''))
  return [...fields].filter((field) => field !== '').map((field) => String(JSON.parse(`"${field}"`)))
}

/** The claims of a domain, each once. @param name in lower case */
export function claimsNamed(name: string, { text }: Index, issuer?: string): IndexedClaim[] {
  const found = new Map<string, IndexedClaim>()
  const field = nameField(issuer, `${escaped(name)}"\n`)
  for (let at = text.indexOf(field); at >= 0; at = text.indexOf(field, at + 1)) {
    const claim = claimOf(text.slice(text.lastIndexOf('\n', at) + 1, at + 1))
    if (LIVE.test(claim.file)) found.set(claim.file, claim)
  }
  return [...found.values()]
}

/**
 * The domains whose names begin like this, with their claims. Of more than `most`, it's the last ones that were added, with
 * the first and the last of all by the alphabet: what a shell completes, the beginning that they share, then is what all of
 * them share.
 */
export function domainsBeginning(
  prefix: string,
  { text }: Index,
  issuer: string | undefined,
  most: number,
): Map<string, IndexedClaim[]> {
  const found = new Map<string, IndexedClaim[]>()
  let first: [string, IndexedClaim] | undefined
  let last: [string, IndexedClaim] | undefined
  const start = nameField(issuer, '')
  const field = nameField(issuer, escaped(prefix))
  for (let at = text.lastIndexOf(field); at >= 0; at = text.lastIndexOf(field, at - 1)) {
    const name = text.slice(at + start.length, text.indexOf('"\n', at + start.length))
    const isFirst = first === undefined || name < first[0]
    const isLast = last === undefined || name > last[0]
    // There may be a hundred thousand others.
    if (!isFirst && !isLast && found.size >= most && !found.has(name)) continue
    const claim = claimOf(text.slice(text.lastIndexOf('\n', at) + 1, at + 1))
    if (!LIVE.test(claim.file) || !SAFE.test(name)) continue
    if (isFirst) first = [name, claim]
    if (isLast) last = [name, claim]
    const claims = found.get(name)
    if (claims !== undefined) claims.push(claim)
    else if (found.size < most) found.set(name, [claim])
  }
  for (const [name, claim] of [first, last].filter((end) => end !== undefined))
    if (!found.has(name)) found.set(name, [claim])
  return found
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

function nameField(issuer: string | undefined, rest: string): string {
  return `${issuer === undefined ? '' : `\t${escaped(issuer)}`}\t"${rest}`
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
