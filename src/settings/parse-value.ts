import { usageError } from '../errors.ts'

/** The longest `--timeout` of a command that waits for other people, in seconds: a claim stays open for a week. */
export const A_MONTH_SECONDS = 31 * 24 * 3600

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
    secondsHint(text),
  )
}

const UNIT = /^(\d+(?:\.\d+)?) ?(ms|s|sec|seconds?|m|min|minutes?|h|hours?|d|days?)$/i
const UNIT_SECONDS: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3600, d: 86_400 }

/** What a duration with a unit is in seconds: `10m`, `2 hours`, `500ms`; for anything else an example. */
export function secondsHint(text: string): string {
  const [, amount, unit = ''] = UNIT.exec(text) ?? []
  const factor = UNIT_SECONDS[unit.charAt(0).toLowerCase()] ?? 0
  const seconds = /^ms$/i.test(unit) ? Number(amount) / 1000 : Number(amount) * factor
  return seconds > 0 ? `in seconds, that is ${seconds}` : 'give it in seconds: ten minutes are 600'
}

const MOST = 999_999_999

/** Reads a whole number. @throws CliError `usage`, exit 2, if it is not between `least` and 999,999,999. */
export function parseCount(text: string, name: string, least: number, hint?: string): number {
  const count = /^\d+$/.test(text) ? Number(text) : Number.NaN
  if (count >= least && count <= MOST) return count
  throw usageError(
    `${name}: ${JSON.stringify(text)} is not a whole number between ${least} and ${MOST}`,
    hint,
  )
}

/** Reads a port. @throws CliError `usage`, exit 2, if it is not between `lowest` and 65535. */
export function parsePort(text: string, name: string, lowest = 1): number {
  const port = /^\d{1,5}$/.test(text.trim()) ? Number(text) : Number.NaN
  if (port >= lowest && port <= 65535) return port
  throw usageError(`${name}: ${JSON.stringify(text)} is not a port between ${lowest} and 65535`)
}

/**
 * Reads one of a few words.
 *
 * @param otherNames what people call a choice elsewhere; only suggested, so that there is one name for each.
 * @throws CliError `usage`, exit 2.
 */
export function parseChoice<T extends string>(
  text: string,
  name: string,
  choices: readonly T[],
  otherNames: OtherNames = {},
): T {
  const choice = choices.find((candidate) => candidate === text)
  if (choice !== undefined) return choice
  const isList =
    text.includes(',') && splitList(text).every((part) => choices.some((known) => known === part))
  const typed = text.toLowerCase()
  const meant =
    meantWord(typed, choices) ?? choices.find((candidate) => otherNames[candidate]?.includes(typed))
  throw usageError(
    `${name}: ${JSON.stringify(text)} is not one of ${choices.join(', ')}`,
    isList
      ? `${name} takes one value; for several, run the command once for each`
      : meant && `did you mean ${name} ${meant}?`,
  )
}

/** The word that was probably meant: it differs in one letter that is missing, extra, wrong, or swapped with the next one. */
export function similarWord(name: string, known: readonly string[]): string | undefined {
  return known.find((other) => {
    const at = [...name].findIndex((letter, index) => letter !== other[index])
    const start = at < 0 ? name.length : at
    const [typed, meant] = [name.slice(start), other.slice(start)]
    const isSwapped = typed[0] === meant[1] && typed[1] === meant[0] && typed.slice(2) === meant.slice(2)
    const rests = [typed.slice(1) === meant.slice(1), typed.slice(1) === meant, typed === meant.slice(1)]
    return name !== other && (rests.includes(true) || isSwapped)
  })
}

/** The choice that was probably meant, as `similarWord` says, or the only one that has the letters of what was typed. */
export function meantWord(typed: string, choices: readonly string[]): string | undefined {
  const longer = choices.filter((candidate) => hasLettersOf(typed, candidate))
  return longer.find((candidate) => candidate === typed || longer.length === 1) ?? similarWord(typed, choices)
}

/** By choice, in lowercase. */
export type OtherNames = Readonly<Record<string, readonly string[]>>

/** Whether a word has the letters of a shorter one, in its order and from the first on: `markdown` those of `md`. */
function hasLettersOf(short: string, word: string): boolean {
  let at = -1
  return (
    short[0] === word[0] &&
    [...short].every((letter) => {
      at = word.indexOf(letter, at + 1)
      return at >= 0
    })
  )
}

/**
 * Reads scopes, separated by spaces. A comma doesn't separate: it may be part of a scope (RFC 6749 section 3.3). An empty
 * list is refused, because to a service it means the whole scope.
 *
 * @throws CliError `usage`, exit 2.
 */
export function parseScopes(text: string, name: string): string[] {
  const scopes = text.split(/\s+/).filter((scope) => scope !== '')
  if (scopes.length === 0) throw usageError(`${name}: ${JSON.stringify(text)} names no scope`)
  const wrong = scopes.find((scope) => !/^[\x21\x23-\x5b\x5d-\x7e]+$/.test(scope))
  if (wrong !== undefined)
    throw usageError(`${name}: ${JSON.stringify(wrong)} is not a scope (RFC 6749 section 3.3)`)
  return scopes
}

/** Reads a list of fields, dotted: `id,client.name`. @throws CliError `usage`, exit 2. */
export function parseFields(text: string, name: string): string[] {
  const fields = text.split(',').map((field) => field.trim())
  if (fields.some((field) => field === '' || field.split('.').includes(''))) {
    throw usageError(
      `${name}: ${JSON.stringify(text)} is not a list of fields`,
      `separate them with commas alone, without spaces: ${name} id,client.name`,
    )
  }
  return fields
}

/** The words of a list, separated by spaces or commas. */
export function splitList(text: string): string[] {
  return text.split(/[\s,]+/).filter((part) => part !== '')
}
