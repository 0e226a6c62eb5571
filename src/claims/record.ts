import type { WantedRecord } from '../dns/check.ts'
import { isCompleteValue, readGivenValue } from '../dns/value.ts'
import { isWithin } from '../dns/wire/name.ts'
import { CliError, usageError } from '../errors.ts'
import { unexpectedAnswer } from '../service/problems.ts'
import type { DomainClaim } from '../service/types.ts'
import { clip, sanitizeLine } from '../terminal/sanitize.ts'
import { asciiName } from './ledger.ts'
import { asArgument } from './lifecycle.ts'

/** The TXT record that a claim requires. */
export interface TxtRecord {
  readonly name: string
  readonly value: string
  /** Seconds; undefined if the service leaves it to the provider (`Auto`) or the number is unusable. */
  readonly ttl: number | undefined
}

/** Seconds, if a provider requires a TTL and the service names none. */
export const DEFAULT_TTL = 300
/** Seconds (RFC 2181 section 8). */
const MAX_TTL = 2 ** 31 - 1
/**
 * Labels at which TXT records mean something to certificate authorities, mail servers or other services, whatever a claim says
 * about them (https://www.iana.org/assignments/dns-parameters, Underscored and Globally Scoped DNS Node Names).
 */
const RESERVED_LABELS = new Set([
  '_acme-challenge',
  '_atproto',
  '_bimi',
  '_dmarc',
  '_dnsauth',
  '_domainkey',
  '_mta-sts',
  '_pki-validation',
  '_tls',
  '_validation-contactemail',
  '_validation-contactphone',
  '_validation-persist',
])
/** Labels separated by dots, none empty, none with a leading hyphen. */
const RECORD_NAME = /^[\p{L}\p{Nd}_][\p{L}\p{M}\p{Nd}_-]*(\.[\p{L}\p{Nd}_][\p{L}\p{M}\p{Nd}_-]*)*\.?$/u

/**
 * The claim's record; without a name of its own it has the domain's.
 *
 * @param domain what was typed, in its ASCII form; the claim's own name if nobody knows it
 * @throws CliError exit 7: `record_missing` if the claim has no TXT record with a value, `unexpected_answer` if its name isn't
 *   valid in DNS, is neither the domain nor below it, or has a reserved label, or if the value isn't one prefix and one token
 */
export function recordOf(claim: DomainClaim, domain = asciiName(claim.name ?? '')): TxtRecord {
  const { record } = claim
  const name = record?.name || claim.name
  if (!record?.value || !name || (record.type ?? 'TXT').toUpperCase() !== 'TXT') {
    throw new CliError('record_missing', 'the claim has no TXT record', {
      hint: `to fetch it again: mailclaim claims get${asArgument(claim)}`,
    })
  }
  // Zone files and shell commands contain the name as it is, so it must not have special characters, such as the hyphen
  // that begins an option, or invisible ones. Some Unicode letters are invisible (U+3164).
  if (!RECORD_NAME.test(name) || sanitizeLine(name) !== name)
    throw unexpectedAnswer(`${JSON.stringify(name.slice(0, 300))} is not a valid record name`)
  const within = asciiName(name)
  if (domain === '' || !isWithin(within, domain))
    throw unexpectedAnswer(`the record's name ${clip(name, 300)} isn't within ${domain || 'a domain'}`)
  const reserved = within.split('.').find((label) => RESERVED_LABELS.has(label))
  if (reserved !== undefined)
    throw unexpectedAnswer(
      `the record's name ${clip(name, 300)} is reserved: ${reserved} proves other things`,
    )
  // A service that asks for anything else isn't asking for a proof, and a command that is written carelessly would run it.
  if (!isCompleteValue(record.value))
    throw unexpectedAnswer(
      `the value ${JSON.stringify(clip(record.value, 100))} isn't of the form prefix=token`,
    )
  const seconds = /^\d+$/.test(record.ttl ?? '') ? Number(record.ttl) : undefined
  const ttl = seconds !== undefined && seconds > 0 && seconds <= MAX_TTL ? seconds : undefined
  // DNS ignores case, but the zone is compared as text.
  return { name: name.replace(/\.$/, '').toLowerCase(), value: record.value, ttl }
}

/** What a check of DNS looks for, for the record of a claim. @throws CliError as `recordOf` */
export function wantedBy(claim: DomainClaim, domain?: string): WantedRecord {
  const { name, value: expected } = recordOf(claim, domain)
  return { name, expected }
}

/**
 * The value to expect, from what a person gave, without what can't belong to it.
 *
 * @param what what the messages call it: `--value`
 * @throws CliError exit 2 if it can't be a complete value
 */
export function readValue(given: string, what: string): string {
  const value = readGivenValue(given)
  if (value !== undefined) return value
  throw usageError(`${what} isn't a complete value: prefix=token, with nothing before or after it`)
}

/**
 * The strings of one value as in a zone file (RFC 1035 section 5.1): in quotation marks and separated by spaces, with quotation
 * marks and backslashes escaped, and bytes that are not printable ASCII as `\DDD`.
 */
export function quoteStrings(strings: readonly Uint8Array[]): string {
  return strings.map((bytes) => `"${Array.from(bytes, escapeByte).join('')}"`).join(' ')
}

function escapeByte(byte: number): string {
  const character = String.fromCharCode(byte)
  if (character === '"' || character === '\\') return `\\${character}`
  return byte < 0x20 || byte > 0x7e ? `\\${String(byte).padStart(3, '0')}` : character
}

/** The value, which is ASCII, as in a zone file: quoted strings of at most 255 bytes (RFC 1035 section 3.3), separated by spaces. */
export const quoteValue = (value: string): string =>
  quoteStrings((value.match(/.{1,255}/gs) ?? []).map((string) => Buffer.from(string)))

/** A line of a zone file. */
export const zoneLine = (record: TxtRecord): string =>
  `${record.name}.\t${record.ttl ?? DEFAULT_TTL}\tIN\tTXT\t${quoteValue(record.value)}`
