import type { Context } from '../context.ts'
import { CliError, Exit } from '../errors.ts'
import type { Authorizer, Credential } from '../service/authorizer.ts'
import type { Settings } from '../settings/settings.ts'
import { type AccessToken, isFresh, readAccessToken } from './access-token.ts'
import { sessionPaths } from './paths.ts'
import { readRecord, requireSameService } from './record.ts'

/**
 * The credential of a command: the API key of the environment, else the stored session or API key of the profile.
 */
export function createAuthorizer(context: Context, settings: Settings): Authorizer {
  return {
    credential: () => currentCredential(context, settings),
    refused: (credential) => nextCredential(context, settings, credential),
  }
}

/**
 * The hot path of scripts: an API key from the environment, or one read of one file. Everything else is loaded when it
 * is needed.
 *
 * @throws CliError as `renew` does.
 */
export async function currentCredential(context: Context, settings: Settings): Promise<Credential> {
  const fromEnvironment = environmentKey(context)
  if (fromEnvironment !== undefined) return fromEnvironment
  const token = await readAccessToken(sessionPaths(context, settings.profile.value))
  if (token !== undefined && isFresh(token, context.clock)) {
    requireBound(token, settings)
    return asCredential(token, settings)
  }
  // Only a sign-in leaves an access token, so where there is one, even a stale one, there is no API key to look for.
  if (token === undefined) {
    const { storedApiKey } = await import('./api-key.ts')
    const key = await storedApiKey(context, settings)
    if (key !== undefined) return key
  }
  const { renew } = await import('./refresh.ts')
  return asCredential(
    await renew(context, settings, {
      reason: 'stale',
      ...(token === undefined ? {} : { outdated: token.value }),
    }),
    settings,
  )
}

async function nextCredential(
  context: Context,
  settings: Settings,
  credential: Credential,
): Promise<Credential | undefined> {
  if (credential.kind === 'api_key') return undefined
  const { renew } = await import('./refresh.ts')
  const next = await renew(context, settings, { reason: 'refused', outdated: credential.value })
  const record = await readRecord(sessionPaths(context, settings.profile.value))
  return { ...asCredential(next, settings), ...(record === undefined ? {} : { store: record.store }) }
}

function environmentKey(context: Context): Credential | undefined {
  const value = context.environment.apiKey
  if (value === undefined) return undefined
  // RFC 6750 §2.1; a line break in it would otherwise become a header of its own.
  if (!/^[\x21-\x7e]+$/.test(value)) {
    throw new CliError(
      'api_key_unusable',
      Exit.notSignedIn,
      'MAILCLAIM_API_KEY is not an API key: it has to be one line of printable ASCII without spaces',
      { hint: 'set it again, or unset it to use the stored session' },
    )
  }
  return { kind: 'api_key', value, description: 'the API key in MAILCLAIM_API_KEY' }
}

function requireBound(token: AccessToken, settings: Settings): void {
  if (settings.baseUrl === undefined && settings.clientId === undefined) return
  requireSameService(token, settings)
}

function asCredential(token: AccessToken, settings: Settings): Credential {
  return {
    kind: 'access_token',
    value: token.value,
    description: `the access token of profile ${settings.profile.value}`,
  }
}
