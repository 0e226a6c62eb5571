import { domainToASCII } from 'node:url'
import { isWithin } from '../dns/wire/name.ts'
import { CliError, Exit } from '../errors.ts'
import { unexpectedAnswer } from '../service/problems.ts'
import type { DomainClaim } from '../service/types.ts'
import { clip, sanitizeLine } from '../terminal/sanitize.ts'
import { asArgument } from './lifecycle.ts'

/** The TXT record that a claim requires. */
export interface TxtRecord {
  readonly name: string
  readonly value: string
  /** Seconds; undefined if the service leaves it to the provider (`Auto`) or the number is unusable. */
  readonly ttl: number | undefined
}

/** The additional formats of `claims record`. */
export const RECORD_FORMATS = ['zone', 'value'] as const

/** Seconds, if a provider requires a TTL and the service names none. */
export const DEFAULT_TTL = 300
/** The most bytes in a character-string (RFC 1035 section 3.3). */
const MAX_STRING_BYTES = 255
/** Seconds (RFC 2181 section 8). */
const MAX_TTL = 2 ** 31 - 1
/**
 * The most bytes in a value: the data of a record has at most 65,535, with a length byte for each character-string
 * (RFC 1035 sections 3.2.1 and 3.3.14).
 */
export const MAX_VALUE_BYTES = 65_279
/**
 * Labels below which TXT records mean something to certificate authorities or mail servers, whatever a claim says about them
 * (https://www.iana.org/assignments/dns-parameters, Underscored and Globally Scoped DNS Node Names).
 */
const RESERVED_LABELS = new Set([
  '_acme-challenge',
  '_validation-contactemail',
  '_validation-contactphone',
  '_validation-persist',
  '_dmarc',
  '_domainkey',
  '_mta-sts',
  '_tls',
])
/** Labels separated by dots, none empty, none with a leading hyphen. */
const RECORD_NAME = /^[\p{L}\p{N}_][\p{L}\p{M}\p{N}_-]*(\.[\p{L}\p{N}_][\p{L}\p{M}\p{N}_-]*)*\.?$/u

/**
 * The claim's record; without a name of its own it has the domain's.
 *
 * @throws CliError exit 7: `record_missing` if the claim has no TXT record with a value, `unexpected_answer` if its name is
 *   not valid in DNS, isn't within the claim's domain or has a reserved label, or if the value is too long
 */
export function recordOf(claim: DomainClaim): TxtRecord {
  const { record } = claim
  const name = record?.name || claim.name
  if (!record?.value || !name || (record.type ?? 'TXT').toUpperCase() !== 'TXT') {
    throw new CliError('record_missing', Exit.unavailable, 'the claim has no TXT record', {
      hint: `to fetch it again: mailclaim claims get${asArgument(claim)}; if that doesn't help, ask the service's support for the record`,
    })
  }
  // Zone files and shell commands contain the name as it is, so it must not have special characters, such as the hyphen
  // that begins an option, or invisible ones. Some Unicode letters are invisible (U+3164).
  if (!RECORD_NAME.test(name) || sanitizeLine(name) !== name) {
    throw unexpectedAnswer(`${JSON.stringify(name.slice(0, 300))} is not a valid record name`)
  }
  const domain = canonicalName(claim.name ?? '')
  const within = canonicalName(name)
  if (domain === '' || !isWithin(within, domain))
    throw unexpectedAnswer(`the record's name ${clip(name, 300)} isn't within the claim's domain`)
  const reserved = within
    .slice(0, -domain.length)
    .split('.')
    .find((label) => RESERVED_LABELS.has(label))
  if (reserved !== undefined)
    throw unexpectedAnswer(
      `the record's name ${clip(name, 300)} is reserved: records at ${reserved} prove or control other things than a claim`,
    )
  if (Buffer.byteLength(record.value) > MAX_VALUE_BYTES)
    throw unexpectedAnswer(`the record's value is longer than a TXT record can be (${MAX_VALUE_BYTES} bytes)`)
  const seconds = /^\d+$/.test(record.ttl ?? '') ? Number(record.ttl) : undefined
  const ttl = seconds !== undefined && seconds > 0 && seconds <= MAX_TTL ? seconds : undefined
  // DNS ignores case, but the zone is compared as text.
  return { name: name.replace(/\.$/, '').toLowerCase(), value: record.value, ttl }
}

/** The name in ASCII and lowercase, without a trailing dot; empty if it is not valid. */
function canonicalName(name: string): string {
  return domainToASCII(name.replace(/\.$/, '')).toLowerCase()
}

/** The value in strings of at most 255 bytes, split between characters. */
export function splitValue(value: string): Buffer[] {
  const strings: string[] = []
  let string = ''
  let bytes = 0
  for (const character of value) {
    const size = Buffer.byteLength(character)
    if (bytes + size > MAX_STRING_BYTES) {
      strings.push(string)
      string = ''
      bytes = 0
    }
    string += character
    bytes += size
  }
  return [...strings, string].map((text) => Buffer.from(text))
}

/**
 * A string as in a zone file (RFC 1035 section 5.1): in quotation marks, with quotation marks and backslashes escaped, and
 * bytes that are not printable ASCII as `\DDD`.
 */
function quoteString(bytes: Uint8Array, escapeByte: EscapeByte): string {
  const inner = Array.from(bytes, (byte) => {
    const character = String.fromCharCode(byte)
    if (character === '"' || character === '\\') return `\\${character}`
    return byte < 0x20 || byte > 0x7e ? escapeByte(byte) : character
  })
  return `"${inner.join('')}"`
}

type EscapeByte = (byte: number) => string

const decimal: EscapeByte = (byte) => `\\${String(byte).padStart(3, '0')}`
/** For Route 53, which reads escaped bytes as octal. */
export const octal: EscapeByte = (byte) => `\\${byte.toString(8).padStart(3, '0')}`

/** The strings of one value as in a zone file: quoted, and separated by spaces. */
export function quoteStrings(strings: readonly Uint8Array[], escapeByte = decimal): string {
  return strings.map((string) => quoteString(string, escapeByte)).join(' ')
}

/** The value as in a zone file: one or more quoted strings, separated by spaces. */
export function quoteValue(value: string, escapeByte = decimal): string {
  return quoteStrings(splitValue(value), escapeByte)
}

/** A line of a zone file. */
export function zoneLine(record: TxtRecord): string {
  return `${record.name}.\t${record.ttl ?? DEFAULT_TTL}\tIN\tTXT\t${quoteValue(record.value)}`
}
