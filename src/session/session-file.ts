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
import { bindingError, signInHint } from './messages.ts'

/** What is known about a sign-in: the one value, wherever it is kept. */
export interface Session {
  /** An `api_key` is never renewed: it has the key where a session has its refresh token. */
  readonly kind: 'session' | 'api_key'
  readonly profile: string
  /** Names the sign-in: 12 hex digits. Generations of different sign-ins are never compared. */
  readonly id: string
  /** Counts the refresh tokens of the sign-in, from 1. */
  readonly generation: number
  readonly store: StoreKind
  /** The base URL that it is bound to; null for an API key if none was configured. */
  readonly service: string | null
  /** Null for an API key. */
  readonly client: string | null
  /** The scope of the grant; null if nobody named any. */
  readonly scope: string | null
  readonly resource: string | null
  /** Wall-clock milliseconds of the sign-in, and of the receipt of this generation's refresh token. */
  readonly signedInAt: number
  readonly issuedAt: number
  /** Absent while the keychain has it, in this machine's copy of a session in etcd, and once the session is over. */
  readonly refreshToken?: string
  readonly access?: AccessToken
  /** The service no longer accepts the session; `why` is what it said. */
  readonly ended?: { readonly at: number; readonly why: string | null }
}

const FORMAT = 1
/** Enough for a value with any refresh token; taken from the disk before the token is sent. */
export const RESERVED_BYTES = 16 * 1024
/** An access token that expires within this time is renewed first, because the request takes time as well. */
const MARGIN_SECONDS = 60

/** It has a directory for each profile that ever had a session. */
export function profilesDirectory(context: Pick<Context, 'directories'>): string {
  return join(context.directories.state, 'profiles')
}

/** @throws CliError exit 2 if the profile's name, which becomes a directory, is not valid. */
export function profileFiles(context: Pick<Context, 'directories'>, profile: string) {
  const directory = join(profilesDirectory(context), parseProfileName(profile))
  return {
    profile,
    directory,
    session: join(directory, 'session.json'),
    /** A kernel lock, held from reading to storing. */
    lock: join(directory, 'lock'),
    disk: realDisk,
    /** Creates the directory, 0700. @throws CliError `cannot_write`, exit 1. */
    async prepare() {
      await ensurePrivateDirectory(context.directories.state, 'leave')
      await ensurePrivateDirectory(profilesDirectory(context))
      await ensurePrivateDirectory(directory)
    },
  }
}

/** The directory of a profile's session. */
export type ProfileFiles = ReturnType<typeof profileFiles>

/** Where the secret lies: in the file, if the keychain that was chosen refused the last one. */
export function effectiveStore({ store, refreshToken }: Session): StoreKind {
  return store === 'keychain' && refreshToken !== undefined ? 'file' : store
}

/**
 * Whether an access token is good for another minute, or a quarter of its life if that is shorter.
 *
 * @param minLifetime more seconds than that; of a token that never had as many, nearly all that it had
 */
export function isFresh(token: AccessToken | undefined, now: number, minLifetime = 0): boolean {
  if (token === undefined) return false
  const { expiresAt, lifetimeSeconds } = token
  const margin = Math.min(MARGIN_SECONDS, lifetimeSeconds / 4)
  const least = Math.max(margin, Math.min(minLifetime, lifetimeSeconds - margin))
  return expiresAt - now >= 1000 * least
}

/**
 * A session is sent only to the service and the client that it was made for, whatever options and variables say.
 *
 * @throws CliError `session_elsewhere`, exit 4.
 */
export function requireSameService(
  { service, client, profile }: Pick<Session, 'service' | 'client' | 'profile'>,
  { settings }: { readonly settings: Pick<Settings, 'chosen'> },
): void {
  const asked = settingValue('base_url', settings)
  const clientId = settingValue('client_id', settings)
  if (asked !== undefined && service !== null && asked !== service)
    throw bindingError('service', service, asked, profile)
  if (clientId !== undefined && client !== null && clientId !== client)
    throw bindingError('client', client, clientId, profile)
}

/** What an access token has to fulfill, so that a command can use it without a renewal. */
export interface RenewOptions {
  /** Renew whatever there is. Otherwise an access token that another process got meanwhile will do. */
  readonly always?: boolean
  /** The access token that won't do: it expires, or the service answered it with 401. */
  readonly outdated?: string | undefined
  /** Seconds for which an access token has to be valid, if that is more than a minute and the service gives it. */
  readonly minLifetime?: number
  /** Narrows the new access token, which isn't kept then. */
  readonly scope?: string | undefined
  /** Whether to send a refresh token whose last use has no known outcome (`auth refresh --retry-interrupted`). */
  readonly retryInterrupted?: boolean
}

/** The stored access token. */
export function findReusableAccess(
  session: Session | undefined,
  io: Pick<Io, 'clock' | 'settings'>,
  { always, outdated, scope, minLifetime }: RenewOptions,
): AccessToken | undefined {
  if (session === undefined || session.ended !== undefined || always || scope !== undefined) return undefined
  const { access } = session
  if (access?.value === outdated || !isFresh(access, io.clock.now(), minLifetime)) return undefined
  // While the lock was waited for, a sign-in at another service may have taken the session's place.
  requireSameService(session, io)
  return access
}

/** The text of a value: a line of JSON, and its checksum. What doesn't fit goes without its access token. */
export function encode(session: Session): string {
  const line = JSON.stringify({ format: FORMAT, ...session })
  const text = `${line}\n${checksumOf(line)}\n`
  const { access, ...rest } = session
  return access === undefined || Buffer.byteLength(text) <= RESERVED_BYTES ? text : encode(rest)
}

/**
 * FNV-1a of 32 bits (draft-eastlake-fnv), in hex digits: it has to find a torn write, not a forgery. By hand, because every command reads a
 * session, and `node:crypto` takes a third of a bare start to load.
 */
function checksumOf(text: string): string {
  let hash = 0x811c9dc5
  for (const byte of Buffer.from(text)) hash = Math.imul(hash ^ byte, 0x01000193)
  return (hash >>> 0).toString(16)
}

/** @throws Error that says what is wrong with a text that isn't one whole value. */
export function decode(text: string): Session {
  const [line = '', checksum, ...more] = text.trimEnd().split('\n')
  if (more.length > 0 || checksum !== checksumOf(line))
    throw new Error('it is damaged, or of an older build of mailclaim')
  const { format, ...session } = JSON.parse(line) as { format: unknown } & Session
  if (format !== FORMAT) throw new Error('it was written by a later version of mailclaim')
  return session
}

/** A value that was read, with its text byte for byte. */
export interface ReadSession {
  readonly session: Session
  readonly text: string
}

/**
 * Reads `session.json`; undefined if nobody has signed in.
 *
 * @throws CliError `file_unusable`, exit 4; `session_elsewhere`, exit 4, if it belongs to another profile: with two holders
 *   of one refresh token, the second to use it would revoke the grant.
 */
export function readSession(files: ProfileFiles): ReadSession | undefined {
  const text = files.disk.read(files.session)
  if (text === undefined) return undefined
  let session: Session
  try {
    session = decode(text)
  } catch (error) {
    const message = `the file ${files.session} can't be used: ${(error as Error).message}`
    throw new CliError('file_unusable', message, { hint: signInHint(files.profile) })
  }
  if (session.profile === files.profile) return { session, text }
  const message = `the session in ${files.directory} is a copy: it belongs to profile ${session.profile}, and is not sent`
  throw new CliError('session_elsewhere', message, { hint: signInHint(files.profile) })
}

/** As `readSession`, of a value that may be damaged: nobody is stopped by it. */
export function readSessionIfAny(files: ProfileFiles): Session | undefined {
  try {
    return readSession(files)?.session
  } catch (error) {
    if (error instanceof CliError) return undefined
    throw error
  }
}
