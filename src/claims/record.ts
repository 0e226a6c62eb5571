import type { ExpectedTxt } from '../dns/check.ts'
import { hasPrefixTokenForm, parseTxtValueFromUser } from '../dns/value.ts'
import { isWithin } from '../dns/wire/name.ts'
import { CliError, usageError } from '../errors.ts'
import { invalidResponseError } from '../service/problems.ts'
import type { DomainClaim } from '../service/types.ts'
import { clip, sanitizeLine } from '../terminal/sanitize.ts'
import { toComparableDomain } from './ledger.ts'
import { domainArg } from './lifecycle.ts'

/** The TXT record that proves ownership of a claim's domain. */
export interface TxtRecord {
  readonly name: string
  readonly value: string
  /** TTL in seconds; undefined if the service sent no usable number, for example `Auto`. */
  readonly ttl: number | undefined
}

/** TTL in zone files and for `--publish`, if no other TTL is known. */
export const DEFAULT_TTL_SECONDS = 300
/** Maximum TTL (RFC 2181 section 8). */
const MAX_TTL_SECONDS = 2 ** 31 - 1
/**
 * Labels of names at which certificate authorities, mail servers and other services trust TXT records. A record name with such a
 * label is refused: a malicious service could ask for the record, and the user would publish it. See
 * https://www.iana.org/assignments/dns-parameters, Underscored and Globally Scoped DNS Node Names.
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
 * Matches a record name without special characters: labels of letters, combining marks, digits, underscores and hyphens, none of
 * which begins with a hyphen or a mark. Other names are refused.
 */
const RECORD_NAME = /^[\p{L}\p{Nd}_][\p{L}\p{M}\p{Nd}_-]*(\.[\p{L}\p{Nd}_][\p{L}\p{M}\p{Nd}_-]*)*\.?$/u

/**
 * Reads and validates a claim's TXT record. A record without a name is at the claim's domain.
 *
 * @param domain the requested domain in its ASCII form; by default the claim's own name
 * @throws CliError exit 7: `record_missing` without a TXT record, its value or any name; `unexpected_answer` if the record isn't
 *   safe to publish, or its name isn't within the domain
 */
export function requireRecord(claim: DomainClaim, domain = toComparableDomain(claim.name ?? '')): TxtRecord {
  const { record } = claim
  const name = record?.name || claim.name
  if (!record?.value || !name || (record.type ?? 'TXT').toUpperCase() !== 'TXT') {
    throw new CliError('record_missing', 'the claim has no TXT record', {
      hint: `to fetch it again: mailclaim claims get${domainArg(claim)}`,
    })
  }
  // Refuse special characters: zone files, and maybe a user's shell command, get the name unquoted. `sanitizeLine` finds
  // invisible letters that `RECORD_NAME` allows, such as U+3164.
  if (!RECORD_NAME.test(name) || sanitizeLine(name) !== name)
    throw invalidResponseError(`${JSON.stringify(name.slice(0, 300))} is not a valid record name`)
  const shown = clip(name, 300)
  const within = toComparableDomain(name)
  if (domain === '' || !isWithin(within, domain))
    throw invalidResponseError(`the record's name ${shown} isn't within ${domain || 'a domain'}`)
  const reserved = within.split('.').find((label) => RESERVED_LABELS.has(label))
  if (reserved !== undefined)
    throw invalidResponseError(`the record's name ${shown} is reserved: ${reserved} proves other things`)
  // Refuse a value that isn't of the form `prefix=token`: it proves no ownership, and a `--publish` script that doesn't quote
  // the value could execute parts of it.
  if (!hasPrefixTokenForm(record.value))
    throw invalidResponseError(
      `the value ${JSON.stringify(clip(record.value, 100))} isn't of the form prefix=token`,
    )
  const seconds = /^\d+$/.test(record.ttl ?? '') ? Number(record.ttl) : undefined
  const ttl = seconds !== undefined && seconds > 0 && seconds <= MAX_TTL_SECONDS ? seconds : undefined
  // Return the name in lower case, because `watchDns` compares names as text to detect that the service has changed the record.
  return { name: name.replace(/\.$/, '').toLowerCase(), value: record.value, ttl }
}

/** Returns the name and value that a DNS check of the claim expects. @throws CliError as `requireRecord` */
export function requireExpectedTxt(claim: DomainClaim, requestedDomain?: string): ExpectedTxt {
  const { name, value: expected } = requireRecord(claim, requestedDomain)
  return { name, expected }
}

/**
 * Reads the TXT value that a user gave, without surrounding quotation marks, spaces and invisible characters.
 *
 * @param valueName the value's name in the message, such as `--value`
 * @throws CliError exit 2 if the rest isn't of the form `prefix=token`
 */
export function parseClaimTxtValue(given: string, valueName = 'the value'): string {
  const value = parseTxtValueFromUser(given)
  if (value !== undefined) return value
  throw usageError(`${valueName} isn't a complete value: prefix=token, with nothing before or after it`)
}

/**
 * Formats the character strings of a TXT record for a zone file (RFC 1035 section 5.1): quoted, separated by spaces, and with
 * bytes other than printable ASCII as `\DDD`, quotation marks and backslashes after a backslash.
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

export const toZoneFileLine = (record: TxtRecord): string =>
  `${record.name}.\t${record.ttl ?? DEFAULT_TTL_SECONDS}\tIN\tTXT\t${quoteTxtValue(record.value)}`
