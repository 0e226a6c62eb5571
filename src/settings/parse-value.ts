import { usageError } from '../errors.ts'

/** The longest `--timeout` of a command that waits for other people, in seconds: a claim stays open for a week. */
export const MAX_WAIT_SECONDS = 31 * 24 * 3600

/**
 * Reads seconds, whole or with a fraction, from 0.1 to `most`.
 *
 * @param name the option, variable or setting that the text belongs to.
 * @throws CliError `usage`, exit 2.
 */
export function parseSeconds(text: string, name: string, most = 3600): number {
  const seconds = /^\d+(\.\d+)?$/.test(text) ? Number(text) : Number.NaN
  if (seconds >= 0.1 && seconds <= most) return seconds
  throw usageError(
    `${name}: ${JSON.stringify(text)} is not a number of seconds between 0.1 and ${most}`,
    'give it in seconds: ten minutes are 600',
  )
}

/** The highest port of TCP and UDP. */
export const HIGHEST_PORT = 65_535

/** Reads a whole number. @throws CliError `usage`, exit 2, if it is not between `least` and `most`. */
export function parseCount(text: string, name: string, least = 0, most = 999_999_999): number {
  const count = /^\d+$/.test(text) ? Number(text) : Number.NaN
  if (count >= least && count <= most) return count
  throw usageError(`${name}: ${JSON.stringify(text)} is not a whole number between ${least} and ${most}`)
}

/** Reads one of a few words. @throws CliError `usage`, exit 2. */
export function parseChoice<T extends string>(text: string, name: string, choices: readonly T[]): T {
  const choice = choices.find((candidate) => candidate === text)
  if (choice !== undefined) return choice
  throw usageError(`${name}: ${JSON.stringify(text)} is not one of ${choices.join(', ')}`)
}

/**
 * Reads scopes, separated by spaces. A comma doesn't separate: it may be part of a scope (RFC 6749 section 3.3).
 *
 * @throws CliError `usage`, exit 2.
 */
export function parseScopes(text: string, name: string): string[] {
  const scopes = parseList(text, name, /\s+/)
  const wrong = scopes.find((scope) => !/^[\x21\x23-\x5b\x5d-\x7e]+$/.test(scope))
  if (wrong !== undefined)
    throw usageError(`${name}: ${JSON.stringify(wrong)} is not a scope (RFC 6749 section 3.3)`)
  return scopes
}

/** Reads a list of fields, dotted: `id,client.name`. @throws CliError `usage`, exit 2. */
export function parseFields(text: string, name: string): string[] {
  const fields = text.split(',').map((field) => field.trim())
  if (!fields.some((field) => field === '' || field.split('.').includes(''))) return fields
  throw usageError(
    `${name}: ${JSON.stringify(text)} is not a list of fields`,
    `separate them with commas alone, without spaces: ${name} id,client.name`,
  )
}

/**
 * The words of a list. An empty one is refused: to ignore it would ask servers that weren't meant, or for the whole scope.
 *
 * @throws CliError `usage`, exit 2.
 */
export function parseList(text: string, name: string, separator = /[\s,]+/): string[] {
  const words = text.split(separator).filter((word) => word !== '')
  if (words.length === 0) throw usageError(`${name}: ${JSON.stringify(text)} is an empty list`)
  return words
}

/** Whether a text can be the token of an Authorization header (RFC 6750 section 2.1): visible ASCII, no line break. */
export function isBearerToken(text: string): boolean {
  return /^[\x21-\x7e]+$/.test(text)
}
