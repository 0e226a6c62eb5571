import { join } from 'node:path'
import type { Context } from '../context.ts'
import { CliError } from '../errors.ts'
import type { AccessToken } from '../oauth/token-endpoint.ts'
import { validateProfileName } from '../settings/profiles.ts'
import { getSetting, type Settings } from '../settings/settings.ts'
import type { StoreKind } from '../settings/table.ts'
import { realDisk } from '../storage/atomic-file.ts'
import { ensurePrivateDirectory } from '../storage/private-directory.ts'
import type { Io } from '../terminal/io.ts'
import { sessionSettingsMismatchError, signInHint } from './messages.ts'

/** One sign-in of a profile, with OAuth tokens or an API key, as stored in `session.json` or in etcd. */
export interface Session {
  /**
   * `session`: OAuth tokens, which are renewed. `api_key`: a key from `login --with-api-key`, stored in place of the refresh
   * token and never renewed.
   */
  readonly kind: 'session' | 'api_key'
  readonly profile: string
  /** Random id of the sign-in, 12 hex digits; kept by renewals. */
  readonly id: string
  /** Number of the current refresh token within the sign-in, counted from 1. The end of a session by the service adds 1. */
  readonly generation: number
  readonly store: StoreKind
  /** Base URL of the service to which the session belongs; null for an API key stored without a base URL. */
  readonly service: string | null
  readonly client: string | null
  /** Scope of the grant; null for an API key, or if neither the request nor the response named a scope. */
  readonly scope: string | null
  readonly resource: string | null
  /** Wall-clock time of the sign-in in milliseconds. */
  readonly signedInAt: number
  /** Wall-clock time in milliseconds of the login or renewal that got the current refresh token or API key. */
  readonly issuedAt: number
  /**
   * Refresh token or API key. Absent if the keychain holds it or the session has ended, and in the cached copy of a session in
   * etcd.
   */
  readonly refreshToken?: string
  readonly access?: AccessToken
  /**
   * Set once the session has ended, by `invalid_grant` or by a sign-out in etcd. `at`: wall-clock milliseconds; `why`: the reason,
   * null if the service gave none.
   */
  readonly ended?: { readonly at: number; readonly why: string | null }
}

const FORMAT = 1
/**
 * Size in bytes of a note file (`next.…`), allocated on the disk before a refresh token is sent: otherwise a full disk could lose
 * the new token.
 */
export const NOTE_BYTES = 16 * 1024
/**
 * Seconds for which a stored access token must still be valid to be used, but at most a quarter of its lifetime: a token that
 * expires earlier could expire on its way to the service.
 */
const MARGIN_SECONDS = 60

/** Returns the directory with a subdirectory for the session files of each profile. */
export function profilesDirectory(context: Pick<Context, 'directories'>): string {
  return join(context.directories.state, 'profiles')
}

/**
 * Returns the paths of a profile's session files, and the file operations for them (`disk`).
 *
 * @throws CliError as `validateProfileName`
 */
export function profileFiles(context: Pick<Context, 'directories'>, profile: string) {
  const directory = join(profilesDirectory(context), validateProfileName(profile))
  return {
    profile,
    directory,
    session: join(directory, 'session.json'),
    /** Lock file: processes that change the session wait for each other by its kernel lock. */
    lock: join(directory, 'lock'),
    disk: realDisk,
    /**
     * Ensures that the profile's directory exists, with mode 0700 (except on Windows).
     *
     * @throws CliError `cannot_write`, exit 1
     */
    async prepare() {
      await ensurePrivateDirectory(context.directories.state, 'leave')
      await ensurePrivateDirectory(profilesDirectory(context))
      await ensurePrivateDirectory(directory)
    },
  }
}

export type ProfileFiles = ReturnType<typeof profileFiles>

/** Returns the store of the secret: that chosen at login, or the file if the keychain couldn't store the newest secret. */
export function getSecretStoreKind({ store, refreshToken }: Session): StoreKind {
  return store === 'keychain' && refreshToken !== undefined ? 'file' : store
}

/**
 * Whether an access token is valid for another minute or, if its lifetime is below four minutes, for another quarter of the
 * lifetime; false without a token.
 *
 * @param nowMs wall-clock milliseconds
 * @param minSeconds seconds of validity to require instead if that is more; at most the lifetime minus that minute or quarter
 *   counts
 */
export function hasEnoughLifetime(token: AccessToken | undefined, nowMs: number, minSeconds = 0): boolean {
  if (token === undefined) return false
  const { expiresAt, lifetimeSeconds } = token
  const margin = Math.min(MARGIN_SECONDS, lifetimeSeconds / 4)
  const least = Math.max(margin, Math.min(minSeconds, lifetimeSeconds - margin))
  return expiresAt - nowMs >= 1000 * least
}

/**
 * Rejects a foreign session: one that was issued for another service or OAuth client than the settings name.
 *
 * @throws CliError `session_elsewhere`, exit 4, for such a session
 */
export function rejectForeignSession(
  { service, client, profile }: Pick<Session, 'service' | 'client' | 'profile'>,
  { settings }: { readonly settings: Pick<Settings, 'chosen'> },
): void {
  const asked = getSetting('base_url', settings)
  const clientId = getSetting('client_id', settings)
  if (asked !== undefined && service !== null && asked !== service)
    throw sessionSettingsMismatchError('service', service, asked, profile)
  if (clientId !== undefined && client !== null && clientId !== client)
    throw sessionSettingsMismatchError('client', client, clientId, profile)
}

/** Requirements for an access token, and how to renew if the stored one doesn't fulfill them. */
export interface RenewOptions {
  /** Renews even if the access token stored at the start of the renewal is still valid. */
  readonly always?: boolean
  /** Access token that must not be returned: it has expired or soon will, or the service rejected it with 401. */
  readonly outdated?: string | undefined
  /** Minimum seconds for which a stored access token must be valid to be used; capped as in `hasEnoughLifetime`. */
  readonly minSeconds?: number
  /** Scope to request for a narrowed access token (RFC 6749 section 6). The session doesn't store such a token. */
  readonly scope?: string | undefined
  /** Whether to send the refresh token even if it may have been sent before (`auth refresh --retry-interrupted`). */
  readonly retryInterrupted?: boolean
}

/**
 * Returns the session's access token if it fulfills the options, so that no renewal is needed; undefined otherwise.
 *
 * @throws CliError `session_elsewhere`, exit 4, if such a token belongs to another service or client than the settings name
 */
export function findFreshAccessToken(
  session: Session | undefined,
  io: Pick<Io, 'clock' | 'settings'>,
  { always, outdated, scope, minSeconds }: RenewOptions,
): AccessToken | undefined {
  if (session === undefined || session.ended !== undefined || always || scope !== undefined) return undefined
  const { access } = session
  if (access?.value === outdated || !hasEnoughLifetime(access, io.clock.now(), minSeconds)) return undefined
  // Check service and client here, because not every caller does: a session cached from etcd is unchecked, and a sign-in at another
  // service may have replaced the session while this process waited for the lock.
  rejectForeignSession(session, io)
  return access
}

/**
 * Encodes a session for the disk: a line of JSON, and a line with its checksum. Leaves out an access token with which the text
 * would exceed `NOTE_BYTES`.
 */
export function encodeSession(session: Session): string {
  const line = JSON.stringify({ format: FORMAT, ...session })
  const text = `${line}\n${checksumOf(line)}\n`
  const { access, ...rest } = session
  return access === undefined || Buffer.byteLength(text) <= NOTE_BYTES ? text : encodeSession(rest)
}

/**
 * Returns the 32-bit FNV-1a hash (draft-eastlake-fnv) of a text in hex digits, which detects torn writes but no forgery.
 * Written by hand, because most commands read a session, and loading `node:crypto` would delay their start.
 */
function checksumOf(text: string): string {
  let hash = 0x811c9dc5
  for (const byte of Buffer.from(text)) hash = Math.imul(hash ^ byte, 0x01000193)
  return (hash >>> 0).toString(16)
}

/**
 * Decodes the text of `session.json`, of a note file (`next.…`), or of a cached session.
 *
 * @throws Error naming the defect: a torn write, or another format
 */
export function decodeSession(text: string): Session {
  const [line = '', checksum, ...more] = text.trimEnd().split('\n')
  if (more.length > 0 || checksum !== checksumOf(line))
    throw new Error('it is damaged, or of an older build of mailclaim')
  const { format, ...session } = JSON.parse(line) as { format: unknown } & Session
  if (format !== FORMAT) throw new Error('it was written by a later version of mailclaim')
  return session
}

/**
 * Reads `session.json`.
 *
 * @returns the session, and the text that it was decoded from; undefined if there is no file
 * @throws CliError `file_unusable`, exit 4, if the file can't be read or decoded; `session_elsewhere`, exit 4, if the file was
 *   copied from another profile: the token would have two holders, and the second use would revoke the grant
 */
export function readSession(files: ProfileFiles): { session: Session; text: string } | undefined {
  const text = files.disk.read(files.session)
  if (text === undefined) return undefined
  let session: Session
  try {
    session = decodeSession(text)
  } catch (error) {
    const message = `the file ${files.session} can't be used: ${(error as Error).message}`
    throw new CliError('file_unusable', message, { hint: signInHint(files.profile) })
  }
  if (session.profile === files.profile) return { session, text }
  const message = `the session in ${files.directory} is a copy: it belongs to profile ${session.profile}, and is not sent`
  throw new CliError('session_elsewhere', message, { hint: signInHint(files.profile) })
}

/** Reads `session.json`; undefined if the file is missing, unusable or copied from another profile. */
export function tryReadSession(files: ProfileFiles): Session | undefined {
  try {
    return readSession(files)?.session
  } catch (error) {
    if (error instanceof CliError) return undefined
    throw error
  }
}
