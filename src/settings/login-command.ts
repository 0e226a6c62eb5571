import { commandLine } from '../shell-quote.ts'
import { DEFAULT_PROFILE } from './profiles.ts'
import type { StoreKind } from './table.ts'

export interface LoginCommandOptions {
  readonly profile: string
  /** Where the secret is kept. The keychain is the default and needs no option. */
  readonly store?: StoreKind | undefined
  readonly baseUrl?: string | undefined
  readonly clientId?: string | undefined
  readonly issuer?: string | undefined
  /** The words of the login to repeat, after the program's name. */
  readonly typed?: readonly string[] | undefined
}

/** The `mailclaim login` that signs in to the same profile, store and service again, for hints. */
export function loginCommand(
  { profile, store, baseUrl, clientId, issuer, typed = ['login'] }: LoginCommandOptions,
  platform: NodeJS.Platform = process.platform,
): string {
  const options = {
    '--profile': profile === DEFAULT_PROFILE ? undefined : profile,
    '--store': store === 'file' ? store : undefined,
    '--base-url': baseUrl,
    '--client-id': clientId,
    '--issuer': issuer,
  }
  // If an option is there twice, the last one counts.
  const added = Object.entries(options).flatMap(([option, value]) =>
    value === undefined || hasOption(typed, option, value) ? [] : [option, value],
  )
  return commandLine([...typed, ...added], platform)
}

function hasOption(words: readonly string[], option: string, value: string): boolean {
  return words.some(
    (word, at) => word === `${option}=${value}` || (word === option && words[at + 1] === value),
  )
}
