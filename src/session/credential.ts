import { CliError, usageError } from '../errors.ts'
import type { AccessToken } from '../oauth/token-endpoint.ts'
import type { Credential } from '../service/types.ts'
import { usesEtcdStore } from '../settings/settings.ts'
import type { Io } from '../terminal/io.ts'
import { sessionOverError } from './messages.ts'
import { requireSession } from './profiles.ts'
import {
  findFreshAccessToken,
  profileFiles,
  type RenewOptions,
  rejectForeignSession,
  type Session,
} from './session-file.ts'

/** Result in place of a credential: a renewal is needed. */
interface Outdated {
  readonly kind: 'outdated'
  /** The stored access token, which has expired or soon will; undefined if none is stored. */
  readonly value: string | undefined
}

/**
 * Returns the credential for a request: the API key in the environment, else the profile's API key or access token, renewed if
 * necessary.
 *
 * @param minSeconds as in `RenewOptions`
 * @throws CliError exit 4 if there is no usable credential; as `renewAccessToken`
 */
export async function getFreshCredential(io: Io, minSeconds = 0): Promise<Credential> {
  const found = await findCredentialWithoutRenewal(io, minSeconds)
  return found.kind === 'outdated' ? renewAccessToken(io, { outdated: found.value, minSeconds }) : found
}

/**
 * Returns the credential for a request, or `Outdated` if its access token must be renewed first. @throws CliError as
 * `getFreshCredential`
 */
export async function findCredentialWithoutRenewal(io: Io, minSeconds = 0): Promise<Credential | Outdated> {
  const fromEnvironment = readEnvironmentApiKey(io)
  if (fromEnvironment !== undefined) return fromEnvironment
  const files = profileFiles(io, io.settings.profile.value)
  if (usesEtcdStore(io.settings)) {
    const { listOutcomeFiles, readCachedSession } = await import('./shared/local.ts')
    // Use the cached access token while it is valid: otherwise every command would send etcd a request. So this machine notices a
    // sign-out on another machine only at its next renewal.
    const found = credentialOf(io, readCachedSession(files), minSeconds)
    if (found.kind === 'outdated' || listOutcomeFiles(files).length === 0) return found
    const etcd = await import('./shared/store.ts')
    // Try to deliver the outcomes of earlier renewals (`pending.…`), since other machines may be waiting in etcd for them. If
    // that fails, the access token is still valid.
    try {
      await etcd.deliverOutcomesAndRead(etcd.openEtcdStore(io, etcd.BEST_EFFORT_ETCD_TIMEOUT_MS))
    } catch {
      io.interrupts.signal.throwIfAborted()
    }
    return found
  }
  const { session } = requireSession(io, files)
  rejectForeignSession(session, io)
  if (session.kind === 'api_key') {
    const { readKeychainItem, requireNewestSecret } = await import('./secret.ts')
    const { value } = requireNewestSecret(files, session, await readKeychainItem(io, files, session))
    return { kind: 'api_key', value, description: `the stored API key of profile ${session.profile}` }
  }
  if (session.ended !== undefined) throw sessionOverError(session.profile, session.ended.why)
  return credentialOf(io, session, minSeconds)
}

function credentialOf(io: Io, session: Session | undefined, minSeconds: number): Credential | Outdated {
  const access = findFreshAccessToken(session, io, { minSeconds })
  return access === undefined ? { kind: 'outdated', value: session?.access?.value } : asCredential(io, access)
}

/**
 * Requests an access token narrowed to a scope (RFC 6749 section 6). The session doesn't store the token, so later commands keep
 * the full scope.
 *
 * @throws CliError `usage`, exit 2, with an API key; as `renewAccessToken`
 */
export async function requestNarrowedCredential(io: Io, scope: string): Promise<Credential> {
  if (readEnvironmentApiKey(io) !== undefined)
    throw usageError("an API key can't be narrowed", 'unset MAILCLAIM_API_KEY to use the session')
  return renewAccessToken(io, { scope })
}

/**
 * Renews the access token of the current profile, whose session is on this machine or in etcd.
 *
 * @throws CliError as `renewLocalSession` and `renewEtcdSession`
 */
export async function renewAccessToken(io: Io, options: RenewOptions): Promise<Credential & AccessToken> {
  const renew = usesEtcdStore(io.settings)
    ? (await import('./shared/renew.ts')).renewEtcdSession
    : (await import('./renew.ts')).renewLocalSession
  return asCredential(io, await renew(io, options))
}

/** Patterns of texts that can't be an API key, mostly pasting mistakes, each with the reason. */
const KEY_MISTAKES: readonly (readonly [pattern: RegExp, why: string])[] = [
  [/^$/, 'it is empty'],
  [/[\0\ufffd]/, 'it is in UTF-16 or the like, not in UTF-8'],
  [/^["'`\u2018-\u201f]|["'`\u2018-\u201f]$/, 'it has quotation marks around it'],
  [/^(\$[\w{(]|\{\{|%\w+%$)/, 'it is the name of a variable, which was not replaced'],
  [/^(export\s+)?[a-z_]\w*=[^=]/i, 'it has the form NAME=value: leave out the name'],
  [/^([*•]+|\[.*\]|<.*>|undefined|null|none|changeme|your[_-]?api[_-]?key)$/i, 'it is a placeholder'],
  [/\\[nrt]/, 'it has the characters \\n or the like in it'],
  [/[^\x21-\x7e]/, "it isn't one line of printable ASCII without spaces"],
]

/** Returns why a text can't be an API key, without quoting the text; undefined if it can. */
export function findApiKeyMistake(text: string): string | undefined {
  return KEY_MISTAKES.find(([pattern]) => pattern.test(text))?.[1]
}

/**
 * Reads the API key in `MAILCLAIM_API_KEY`; undefined if the variable is unset or empty.
 *
 * @throws CliError `credential_refused`, exit 4, if the value can't be a key
 */
export function readEnvironmentApiKey({ environment }: Pick<Io, 'environment'>): Credential | undefined {
  // Trim, because a key copied from a file may end with a line break.
  const value = environment.apiKey?.trim()
  if (value === undefined) return undefined
  const mistake = findApiKeyMistake(value)
  if (mistake !== undefined) {
    const hint = 'set it again, or unset it to use the stored session'
    throw new CliError('credential_refused', `MAILCLAIM_API_KEY can't be an API key: ${mistake}`, { hint })
  }
  return { kind: 'api_key', value, description: 'the API key in MAILCLAIM_API_KEY' }
}

function asCredential({ settings: { profile } }: Io, access: AccessToken): Credential & AccessToken {
  return { ...access, kind: 'access_token', description: `the access token of profile ${profile.value}` }
}
