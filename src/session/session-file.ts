import { join } from 'node:path'
import type { Context } from '../context.ts'
import { CliError } from '../errors.ts'
import type { AccessToken } from '../oauth/token-endpoint.ts'
import { parseProfileName } from '../settings/profiles.ts'
import { type Settings, settingValue } from '../settings/settings.ts'
import type { StoreKind } from '../settings/table.ts'
import { realDisk } from '../storage/atomic-file.ts'
import { ensurePrivateDirectory } from '../storage/private-directory.ts'
import type { Io } from '../terminal/io.ts'
import { serviceMismatchError, signInHint } from './messages.ts'

/** One sign-in, as `session.json` and etcd store it. */
export interface Session {
  /**
   * `session`: OAuth tokens, renewed by their refresh token. `api_key`: a key from `login --with-api-key`, kept in `refreshToken`
   * and never renewed.
   */
  readonly kind: 'session' | 'api_key'
  readonly profile: string
  /** Random id of the sign-in: 12 hex digits. */
  readonly id: string
  /** Number of the current refresh token within the sign-in, from 1. The generations of two sign-ins are unrelated. */
  readonly generation: number
  readonly store: StoreKind
  /** Base URL of the service that issued the tokens; null for an API key stored without one. */
  readonly service: string | null
  /** OAuth client id; null for an API key. */
  readonly client: string | null
  /** Scope of the grant; null if neither the request nor the response named a scope. */
  readonly scope: string | null
  readonly resource: string | null
  /** Time of the sign-in in wall-clock milliseconds. */
  readonly signedInAt: number
  /** Time of the response with the current refresh token, in wall-clock milliseconds. */
  readonly issuedAt: number
  /** Refresh token. Absent if the keychain or etcd holds the token, and after the end of the session. */
  readonly refreshToken?: string
  readonly access?: AccessToken
  /** End of the session (`invalid_grant` or sign-out): its time in wall-clock milliseconds, and the service's reason. */
  readonly ended?: { readonly at: number; readonly why: string | null }
}

const FORMAT = 1
/**
 * Number of bytes reserved on the disk for the next session before the current refresh token is sent, so that a full disk can't
 * lose the new token.
 */
export const SESSION_BYTES = 16 * 1024
/** Seconds for which a reused access token must still be valid: a request sent later could arrive after the expiry. */
const MARGIN_SECONDS = 60

/** Returns the directory that has a subdirectory for each profile that was ever signed in. */
export function profilesDirectory(context: Pick<Context, 'directories'>): string {
  return join(context.directories.state, 'profiles')
}

/**
 * Returns the paths of a profile's session, and the disk to access them with.
 *
 * @throws CliError exit 2 if the name, which becomes a directory name, is invalid
 */
export function profileFiles(context: Pick<Context, 'directories'>, profile: string) {
  const directory = join(profilesDirectory(context), parseProfileName(profile))
  return {
    profile,
    directory,
    session: join(directory, 'session.json'),
    /** Lock file: its kernel lock is held from reading the session to storing the next one. */
    lock: join(directory, 'lock'),
    disk: realDisk,
    /** Creates the profile's directory (0700). @throws CliError `cannot_write`, exit 1 */
    async prepare() {
      await ensurePrivateDirectory(context.directories.state, 'leave')
      await ensurePrivateDirectory(profilesDirectory(context))
      await ensurePrivateDirectory(directory)
    },
  }
}

/** Paths of a profile's session, and the disk to access them with. */
export type ProfileFiles = ReturnType<typeof profileFiles>

/** Returns the store that holds the secret: the chosen one, or the file if the chosen keychain refused the last secret. */
export function effectiveStore({ store, refreshToken }: Session): StoreKind {
  return store === 'keychain' && refreshToken !== undefined ? 'file' : store
}

/**
 * Whether an access token is valid for another minute, or for a quarter of its lifetime if that is shorter.
 *
 * @param now wall-clock milliseconds
 * @param minLifetime seconds to require instead, if more than a minute; capped at what a new token of this lifetime can fulfill
 */
export function isFresh(token: AccessToken | undefined, now: number, minLifetime = 0): boolean {
  if (token === undefined) return false
  const { expiresAt, lifetimeSeconds } = token
  const margin = Math.min(MARGIN_SECONDS, lifetimeSeconds / 4)
  const least = Math.max(margin, Math.min(minLifetime, lifetimeSeconds - margin))
  return expiresAt - now >= 1000 * least
}

/**
 * Refuses to use a session with another service or OAuth client than the session was issued for, whatever options and variables
 * say.
 *
 * @throws CliError `session_elsewhere`, exit 4
 */
export function requireSameService(
  { service, client, profile }: Pick<Session, 'service' | 'client' | 'profile'>,
  { settings }: { readonly settings: Pick<Settings, 'chosen'> },
): void {
  const asked = settingValue('base_url', settings)
  const clientId = settingValue('client_id', settings)
  if (asked !== undefined && service !== null && asked !== service)
    throw serviceMismatchError('service', service, asked, profile)
  if (clientId !== undefined && client !== null && clientId !== client)
    throw serviceMismatchError('client', client, clientId, profile)
}

/** Request for an access token, stored or new. */
export interface RenewOptions {
  /** Whether to renew even if the stored access token is still valid. */
  readonly always?: boolean
  /** Access token not to be reused: it is about to expire, or the service rejected it with 401. */
  readonly outdated?: string | undefined
  /** Seconds for which the access token must be valid, if more than a minute; capped by the lifetime that the service grants. */
  readonly minLifetime?: number
  /** Scope that narrows the new access token (RFC 6749 section 6). The session doesn't store a narrowed access token. */
  readonly scope?: string | undefined
  /** Whether to send a refresh token whose last use has no known outcome (`auth refresh --retry-interrupted`). */
  readonly retryInterrupted?: boolean
}

/** Returns the stored access token if it fulfills the request without a renewal. @throws CliError `session_elsewhere`, exit 4 */
export function findReusableToken(
  session: Session | undefined,
  io: Pick<Io, 'clock' | 'settings'>,
  { always, outdated, scope, minLifetime }: RenewOptions,
): AccessToken | undefined {
  if (session === undefined || session.ended !== undefined || always || scope !== undefined) return undefined
  const { access } = session
  if (access?.value === outdated || !isFresh(access, io.clock.now(), minLifetime)) return undefined
  // Check the service again: during the wait for the lock, a sign-in at another service may have replaced the session.
  requireSameService(session, io)
  return access
}

/**
 * Encodes a session for the disk: a line of JSON, then a line with its checksum. Leaves out the access token if the text would
 * exceed `SESSION_BYTES`.
 */
export function encodeSession(session: Session): string {
  const line = JSON.stringify({ format: FORMAT, ...session })
  const text = `${line}\n${checksumOf(line)}\n`
  const { access, ...rest } = session
  return access === undefined || Buffer.byteLength(text) <= SESSION_BYTES ? text : encodeSession(rest)
}

/**
 * Returns the 32-bit FNV-1a hash (draft-eastlake-fnv) of a text, in hex digits: enough to detect a torn write; forgery isn't a
 * concern. Written by hand, because every command reads a session, and loading `node:crypto` takes a third of a bare start.
 */
function checksumOf(text: string): string {
  let hash = 0x811c9dc5
  for (const byte of Buffer.from(text)) hash = Math.imul(hash ^ byte, 0x01000193)
  return (hash >>> 0).toString(16)
}

/**
 * Decodes the text of `session.json`, or of this machine's copy of a session in etcd.
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
 * Reads `session.json`, and returns the session with the text that it was decoded from; undefined if the profile isn't signed in.
 *
 * @throws CliError `file_unusable`, exit 4; `session_elsewhere`, exit 4, for a copy of another profile's file: with two holders of
 *   one refresh token, the second to use it would revoke the grant
 */
export function readSession(files: ProfileFiles) {
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

/** Reads `session.json`; undefined if it is missing, damaged or a copy. */
export function findSession(files: ProfileFiles): Session | undefined {
  try {
    return readSession(files)?.session
  } catch (error) {
    if (error instanceof CliError) return undefined
    throw error
  }
}
