import { shellQuote } from '../shell-quote.ts'
import { DEFAULT_PROFILE } from './profiles.ts'

export interface LoginCommandOptions {
  readonly profile: string
  /** Where the secret is kept. The keychain is where a login puts it by itself, so it needs no option. */
  readonly store?: 'keychain' | 'file' | undefined
  readonly baseUrl?: string | undefined
  readonly clientId?: string | undefined
  readonly issuer?: string | undefined
}

/** `mailclaim login` as it has to be typed to sign in to the same profile, store and service again: for hints. */
export function loginCommand({ profile, store, baseUrl, clientId, issuer }: LoginCommandOptions): string {
  const options = {
    '--profile': profile === DEFAULT_PROFILE ? undefined : profile,
    '--store': store === 'file' ? store : undefined,
    '--base-url': baseUrl,
    '--client-id': clientId,
    '--issuer': issuer,
  }
  const words = Object.entries(options).flatMap(([option, value]) =>
    value === undefined ? [] : [option, shellQuote(value, process.platform)],
  )
  return ['mailclaim login', ...words].join(' ')
}
