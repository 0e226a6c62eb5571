import { shellQuote } from '../shell-quote.ts'
import { DEFAULT_PROFILE } from './profiles.ts'
import type { StoreKind } from './table.ts'

export interface LoginCommandOptions {
  readonly profile: string
  /** Where the secret is kept. The keychain is the default and needs no option. */
  readonly store?: StoreKind | undefined
  readonly baseUrl?: string | undefined
  readonly clientId?: string | undefined
  readonly issuer?: string | undefined
}

/** The `mailclaim login` that signs in to the same profile, store and service again, for hints. */
export function loginCommand(
  { profile, store, baseUrl, clientId, issuer }: LoginCommandOptions,
  platform: NodeJS.Platform = process.platform,
): string {
  const options = {
    '--profile': profile === DEFAULT_PROFILE ? undefined : profile,
    '--store': store === 'file' ? store : undefined,
    '--base-url': baseUrl,
    '--client-id': clientId,
    '--issuer': issuer,
  }
  const words = Object.entries(options).flatMap(([option, value]) =>
    value === undefined ? [] : [option, shellQuote(value, platform)],
  )
  return ['mailclaim login', ...words].join(' ')
}
