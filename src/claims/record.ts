import type { ExpectedTxt } from '../dns/check.ts'
import { canBeExpectedValue, parseGivenValue } from '../dns/value.ts'
import { isWithin } from '../dns/wire/name.ts'
import { CliError, usageError } from '../errors.ts'
import { invalidResponseError } from '../service/problems.ts'
import type { DomainClaim } from '../service/types.ts'
import { clip, sanitizeLine } from '../terminal/sanitize.ts'
import { normalizeDomainName } from './ledger.ts'
import { domainArg } from './lifecycle.ts'

/** The TXT record that proves ownership of a claim's domain. */
export interface TxtRecord {
  readonly name: string
  readonly value: string
  /** TTL in seconds; undefined if the service sent no usable number, for example `Auto`. */
  readonly ttl: number | undefined
}

/** TTL of a record for which the service sent none: in zone files, and for `--publish` if the name has no TXT values yet. */
export const DEFAULT_TTL_SECONDS = 300
/** Maximum TTL (RFC 2181 section 8). */
const MAX_TTL_SECONDS = 2 ** 31 - 1
/**
 * Labels whose TXT records certificate authorities, mail servers and other services trust. A malicious service could name such a
 * record in a claim, and the user would publish it. See also https://www.iana.org/assignments/dns-parameters, Underscored and
 * Globally Scoped DNS Node Names.
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
/**
 * Matches a record name: labels of letters, combining marks, digits, underscores and hyphens, separated by dots. A label can't
 * begin with a hyphen or a mark.
 */
const RECORD_NAME = /^[\p{L}\p{Nd}_][\p{L}\p{M}\p{Nd}_-]*(\.[\p{L}\p{Nd}_][\p{L}\p{M}\p{Nd}_-]*)*\.?$/u

/**
 * Reads and validates a claim's record. A record without a name is at the domain itself.
 *
 * @param domain the requested domain in its ASCII form; by default the claim's own name
 * @throws CliError exit 7: `record_missing` if the claim has no TXT record with a value; `unexpected_answer` if the record's name
 *   isn't valid in DNS, isn't within the domain, or has a reserved label, or if the value isn't `prefix=token`
 */
export function extractRecord(claim: DomainClaim, domain = normalizeDomainName(claim.name ?? '')): TxtRecord {
  const { record } = claim
  const name = record?.name || claim.name
  if (!record?.value || !name || (record.type ?? 'TXT').toUpperCase() !== 'TXT') {
    throw new CliError('record_missing', 'the claim has no TXT record', {
      hint: `to fetch it again: mailclaim claims get${domainArg(claim)}`,
    })
  }
  // Zone files get the name unquoted, and a user's shell command may. So it must not have special characters, such as a leading
  // hyphen, which begins an option. `sanitizeLine` finds invisible letters, such as U+3164, which `RECORD_NAME` allows.
  if (!RECORD_NAME.test(name) || sanitizeLine(name) !== name)
    throw invalidResponseError(`${JSON.stringify(name.slice(0, 300))} is not a valid record name`)
  const shown = clip(name, 300)
  const within = normalizeDomainName(name)
  if (domain === '' || !isWithin(within, domain))
    throw invalidResponseError(`the record's name ${shown} isn't within ${domain || 'a domain'}`)
  const reserved = within.split('.').find((label) => RESERVED_LABELS.has(label))
  if (reserved !== undefined)
    throw invalidResponseError(`the record's name ${shown} is reserved: ${reserved} proves other things`)
  // Refuse a value of another form: it proves no ownership, and a `--publish` script that doesn't quote the value could execute
  // parts of it.
  if (!canBeExpectedValue(record.value))
    throw invalidResponseError(
      `the value ${JSON.stringify(clip(record.value, 100))} isn't of the form prefix=token`,
    )
  const seconds = /^\d+$/.test(record.ttl ?? '') ? Number(record.ttl) : undefined
  const ttl = seconds !== undefined && seconds > 0 && seconds <= MAX_TTL_SECONDS ? seconds : undefined
  // Lower case, because the name is later compared with the zone's name as text.
  return { name: name.replace(/\.$/, '').toLowerCase(), value: record.value, ttl }
}

/** Returns the name and value that a DNS check of the claim expects. @throws CliError as `extractRecord` */
export function toExpectedRecord(claim: DomainClaim, domain?: string): ExpectedTxt {
  const { name, value: expected } = extractRecord(claim, domain)
  return { name, expected }
}

/**
 * Reads the TXT value that a user gave, without surrounding quotation marks, spaces and invisible characters.
 *
 * @param what the value's name in the message, such as `--value`
 * @throws CliError exit 2 if the rest isn't of the form `prefix=token`
 */
export function parseTxtValue(given: string, what = 'the value'): string {
  const value = parseGivenValue(given)
  if (value !== undefined) return value
  throw usageError(`${what} isn't a complete value: prefix=token, with nothing before or after it`)
}

/**
 * Formats the character strings of a TXT record for a zone file (RFC 1035 section 5.1): in quotation marks, separated by spaces,
 * with quotation marks and backslashes escaped, and bytes other than printable ASCII as `\DDD`.
 */
export function quoteTxtStrings(strings: readonly Uint8Array[]): string {
  return strings.map((bytes) => `"${Array.from(bytes, escapeByte).join('')}"`).join(' ')
}

function escapeByte(byte: number): string {
  const character = String.fromCharCode(byte)
  if (character === '"' || character === '\\') return `\\${character}`
  return byte < 0x20 || byte > 0x7e ? `\\${String(byte).padStart(3, '0')}` : character
}

/** Formats an ASCII value for a zone file: quoted strings of at most 255 bytes (RFC 1035 section 3.3), separated by spaces. */
export const quoteTxtValue = (value: string): string =>
  quoteTxtStrings((value.match(/.{1,255}/gs) ?? []).map((string) => Buffer.from(string)))

export const formatZoneLine = (record: TxtRecord): string =>
  `${record.name}.\t${record.ttl ?? DEFAULT_TTL_SECONDS}\tIN\tTXT\t${quoteTxtValue(record.value)}`
