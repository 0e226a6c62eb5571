import { CliError, Exit } from '../errors.ts'
import { unexpectedAnswer } from '../service/answers.ts'
import type { DomainClaim } from '../service/types.ts'
import { sanitizeLine } from '../terminal/sanitize.ts'

/** The TXT record that a claim waits for. */
export interface TxtRecord {
  readonly name: string
  readonly value: string
  /** Seconds; undefined where the service leaves it to the provider (`Auto`), or names more than DNS can hold. */
  readonly ttl: number | undefined
}

/** The formats of `claims record` beside those that every command has. */
export const RECORD_FORMATS = ['zone', 'value'] as const

/** What is written where a provider wants a TTL and the service leaves it open. */
export const USUAL_TTL = 300
/** A character-string holds so many bytes (RFC 1035 section 3.3). */
const STRING_BYTES = 255
/** Seconds (RFC 2181 section 8). */
const LONGEST_TTL = 2 ** 31 - 1
/** Labels between dots, none empty and none with a hyphen in front. */
const RECORD_NAME = /^[\p{L}\p{N}_][\p{L}\p{M}\p{N}_-]*(\.[\p{L}\p{N}_][\p{L}\p{M}\p{N}_-]*)*\.?$/u

/**
 * The record out of a claim; where the service sends no name for it, it is the domain's.
 *
 * @throws CliError exit 7: `record_missing` where the claim has no TXT record with a value, `unexpected_answer` where
 *   its name is not one that DNS could have.
 */
export function recordOf(claim: DomainClaim): TxtRecord {
  const { record } = claim
  const name = record?.name || claim.name
  if (!record?.value || !name || (record.type ?? 'TXT').toUpperCase() !== 'TXT') {
    throw new CliError('record_missing', Exit.unavailable, 'the service’s claim holds no TXT record to add', {
      hint: 'ask again with: mailclaim claims get; if it stays so, the service has to say what to publish',
    })
  }
  // It goes into master files and shell commands as it is: nothing may be in it that means something there, such as the
  // hyphen that begins an option, or that cannot be seen. Some letters of Unicode cannot (U+3164).
  if (!RECORD_NAME.test(name) || sanitizeLine(name) !== name) {
    throw unexpectedAnswer(`${JSON.stringify(name.slice(0, 300))} is not the name of a DNS record`)
  }
  const seconds = /^\d+$/.test(record.ttl ?? '') ? Number(record.ttl) : undefined
  const ttl = seconds !== undefined && seconds <= LONGEST_TTL ? seconds : undefined
  // DNS knows no upper case, and what is cut off a name to get at its host field is compared as text.
  return { name: name.replace(/\.$/, '').toLowerCase(), value: record.value, ttl }
}

/** The value in pieces of at most 255 bytes, no character cut in two. */
export function splitValue(value: string): string[] {
  const pieces: string[] = []
  let piece = ''
  let bytes = 0
  for (const character of value) {
    const size = Buffer.byteLength(character)
    if (bytes + size > STRING_BYTES) {
      pieces.push(piece)
      piece = ''
      bytes = 0
    }
    piece += character
    bytes += size
  }
  return [...pieces, piece]
}

/**
 * One string as master files write it (RFC 1035 section 5.1): in quotation marks, which and the backslash are escaped,
 * and every byte that is not printable ASCII as `\DDD`.
 */
function quoteString(text: string, escapeByte: (byte: number) => string): string {
  const inner = Array.from(Buffer.from(text), (byte) => {
    const character = String.fromCharCode(byte)
    if (character === '"' || character === '\\') return `\\${character}`
    return byte < 0x20 || byte > 0x7e ? escapeByte(byte) : character
  })
  return `"${inner.join('')}"`
}

const decimal = (byte: number) => `\\${String(byte).padStart(3, '0')}`
const octal = (byte: number) => `\\${byte.toString(8).padStart(3, '0')}`

/** The value as a master file has it: one or more quoted strings, separated by spaces. */
export function quoteValue(value: string): string {
  return splitValue(value)
    .map((piece) => quoteString(piece, decimal))
    .join(' ')
}

/** As `quoteValue`, for Route 53, which writes bytes in octal. */
export function quoteValueOctal(value: string): string {
  return splitValue(value)
    .map((piece) => quoteString(piece, octal))
    .join(' ')
}

/** A line for a master file. */
export function zoneLine(record: TxtRecord): string {
  return `${record.name}.\t${record.ttl ?? USUAL_TTL}\tIN\tTXT\t${quoteValue(record.value)}`
}
