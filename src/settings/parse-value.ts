import { usageError } from '../errors.ts'

/** Maximum `--timeout`, in seconds (31 days), of the commands that wait for a claim, a TXT record or an import. */
export const MAX_TIMEOUT_OPTION_SECONDS = 31 * 24 * 3600

/**
 * Parses a number of seconds, whole or decimal, from 0.1 to `maxSeconds`.
 *
 * @param name name of the option, variable or setting, for the error message
 * @throws CliError `usage`, exit 2
 */
export function parseSeconds(text: string, name: string, maxSeconds = 3600): number {
  const seconds = /^\d+(\.\d+)?$/.test(text) ? Number(text) : Number.NaN
  if (seconds >= 0.1 && seconds <= maxSeconds) return seconds
  throw usageError(
    `${name}: ${JSON.stringify(text)} is not a number of seconds between 0.1 and ${maxSeconds}`,
    'give it in seconds: ten minutes are 600',
  )
}

export const MAX_PORT = 65_535

/** Parses a whole number from `least` to `most`. @throws CliError `usage`, exit 2 */
export function parseInteger(text: string, name: string, least = 0, most = 999_999_999): number {
  const count = /^\d+$/.test(text) ? Number(text) : Number.NaN
  if (count >= least && count <= most) return count
  throw usageError(`${name}: ${JSON.stringify(text)} is not a whole number between ${least} and ${most}`)
}

/** Returns the choice that equals the text. @throws CliError `usage`, exit 2, if none does */
export function parseChoice<T extends string>(text: string, name: string, choices: readonly T[]): T {
  const choice = choices.find((candidate) => candidate === text)
  if (choice !== undefined) return choice
  throw usageError(`${name}: ${JSON.stringify(text)} is not one of ${choices.join(', ')}`)
}

/**
 * Splits scopes at white space; a comma is part of a scope (RFC 6749 section 3.3).
 *
 * @throws CliError `usage`, exit 2, without a scope, or for a character that a scope can't have
 */
export function parseScopes(text: string, name: string): string[] {
  const scopes = parseList(text, name, /\s+/)
  const wrong = scopes.find((scope) => !/^[\x21\x23-\x5b\x5d-\x7e]+$/.test(scope))
  if (wrong !== undefined)
    throw usageError(`${name}: ${JSON.stringify(wrong)} is not a scope (RFC 6749 section 3.3)`)
  return scopes
}

/** Splits dotted field paths at commas: `id,client.name`. @throws CliError `usage`, exit 2 */
export function parseFieldPaths(text: string, name: string): string[] {
  const fields = text.split(',').map((field) => field.trim())
  if (!fields.some((field) => field === '' || field.split('.').includes(''))) return fields
  throw usageError(
    `${name}: ${JSON.stringify(text)} is not a list of fields`,
    `separate them with commas alone, without spaces: ${name} id,client.name`,
  )
}

/**
 * Splits a list, by default at spaces and commas. Rejects an empty list: an empty `scope` would let the service choose the scopes.
 *
 * @throws CliError `usage`, exit 2
 */
export function parseList(text: string, name: string, separator = /[\s,]+/): string[] {
  const words = text.split(separator).filter((word) => word !== '')
  if (words.length === 0) throw usageError(`${name}: ${JSON.stringify(text)} is an empty list`)
  return words
}

/**
 * Whether a text consists of visible ASCII characters, which are safe in an `Authorization` header. RFC 6750 section 2.1 allows
 * fewer, but services may issue other tokens.
 */
export function canBeBearerToken(text: string): boolean {
  return /^[\x21-\x7e]+$/.test(text)
}
