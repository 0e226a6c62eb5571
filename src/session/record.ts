import type { Context } from '../context.ts'
import { CliError, Exit } from '../errors.ts'
import { issuerOf, parseBaseUrl } from '../settings/addresses.ts'
import { loginCommand } from '../settings/login-command.ts'
import type { Settings } from '../settings/settings.ts'
import type { StoreKind } from '../settings/table.ts'
import { writeDurable } from '../storage/durable-file.ts'
import { Fields } from '../storage/fields.ts'
import { moveAway, readJson } from '../storage/json-file.ts'
import type { SessionPaths } from './paths.ts'

interface CommonRecord {
  /** Names this sign-in and its secret: two sign-ins never share a place for their secrets. */
  readonly id: string
  readonly profile: string
  readonly store: StoreKind
  /** Wall-clock milliseconds of the sign-in. */
  readonly signedInAt: number
}

/** What is known about a session that `login` made. No secret in it. */
export interface OAuthRecord extends CommonRecord {
  readonly kind: 'oauth'
  /** The base URL that the session is bound to. */
  readonly issuer: string
  readonly clientId: string
  /** The scope of the grant; null where nobody named any. */
  readonly scope: string | null
  readonly resource: string | null
  /** Why the service does not accept the session any more. */
  readonly ended: Ending | null
}

/** What `login --with-api-key` leaves. Bound to no service: an API key is the person's own choice at each call. */
export interface ApiKeyRecord extends CommonRecord {
  readonly kind: 'api_key'
  /** The base URL that the key is meant for; null where none was configured. */
  readonly issuer: string | null
}

export type SessionRecord = OAuthRecord | ApiKeyRecord

export interface Ending {
  readonly at: number
  /** What the service said, where it said something. */
  readonly description: string | null
  /** The last thing that is known of the token, to explain the end. */
  readonly cause: 'expired' | 'interrupted' | 'refused'
  /** Wall-clock milliseconds of the receipt of the last refresh token. */
  readonly renewedAt: number
}

/**
 * Reads the session record of a profile; undefined where nobody signed in.
 *
 * @throws CliError `file_unusable`, exit 4; `session_copied`, exit 4, where it belongs to another profile.
 */
export async function readRecord(paths: SessionPaths): Promise<SessionRecord | undefined> {
  const record = await readJson(paths.session, parseRecord, {
    exit: Exit.notSignedIn,
    remedy: `it was left as it is; ${loginCommand({ profile: paths.profile })} makes a new session and keeps the old file beside it, or move it away: ${moveAway(paths.session)}`,
  })
  // Two holders of one refresh token: the second one to use it would revoke the grant.
  if (record !== undefined && record.profile !== paths.profile) {
    throw new CliError(
      'session_copied',
      Exit.notSignedIn,
      `the session in ${paths.directory} is a copy: it belongs to profile ${record.profile}. Using it would end the session of both, so it is not used`,
      { hint: `sign in to this profile: ${loginCommand({ profile: paths.profile })}` },
    )
  }
  return record
}

function parseRecord(value: unknown): SessionRecord {
  const fields = new Fields(value, 1)
  const common = {
    id: fields.text('id'),
    profile: fields.text('profile'),
    store: fields.oneOf('store', 'keychain', 'file'),
    signedInAt: fields.time('signed_in_at'),
  }
  if (!/^[0-9a-f]{12}$/.test(common.id)) throw new Error('it is damaged: id is not a session id')
  if (fields.oneOf('kind', 'oauth', 'api_key') === 'api_key') {
    return { kind: 'api_key', ...common, issuer: fields.textOrNull('issuer') }
  }
  return {
    kind: 'oauth',
    ...common,
    issuer: fields.text('issuer'),
    clientId: fields.text('client_id'),
    scope: fields.textOrNull('scope'),
    resource: fields.textOrNull('resource'),
    ended: fields.below('ended', (ended) => ({
      at: ended.time('at'),
      description: ended.textOrNull('description'),
      cause: ended.oneOf('cause', 'expired', 'interrupted', 'refused'),
      renewedAt: ended.time('renewed_at'),
    })),
  }
}

/** @throws CliError `cannot_write`, exit 1. */
export function writeRecord(paths: SessionPaths, record: SessionRecord): void {
  writeDurable(paths.session, `${JSON.stringify(recordFields(record), null, 2)}\n`)
}

function recordFields(record: SessionRecord): Record<string, unknown> {
  const time = (ms: number) => new Date(ms).toISOString()
  const common = {
    version: 1,
    kind: record.kind,
    id: record.id,
    profile: record.profile,
    issuer: record.issuer,
    store: record.store,
    signed_in_at: time(record.signedInAt),
  }
  if (record.kind === 'api_key') return common
  return {
    ...common,
    client_id: record.clientId,
    scope: record.scope,
    resource: record.resource,
    ended: record.ended && {
      at: time(record.ended.at),
      description: record.ended.description,
      cause: record.ended.cause,
      renewed_at: time(record.ended.renewedAt),
    },
  }
}

/** A fresh name for a sign-in. */
export function newSessionId(context: Pick<Context, 'random'>): string {
  return Buffer.from(context.random.bytes(6)).toString('hex')
}

/**
 * A session goes only to the service and the client that it was made for: a flag or a variable that names another must
 * never send it elsewhere.
 *
 * @throws CliError `session_of_another_service` or `session_of_another_client`, exit 4.
 */
export function requireSameService(
  bound: { readonly issuer: string | null; readonly clientId?: string },
  settings: Pick<Settings, 'baseUrl' | 'clientId' | 'profile'>,
): void {
  const profile = settings.profile.value
  const other = (code: string, what: string, own: string, asked: string, flag: string) =>
    new CliError(
      code,
      Exit.notSignedIn,
      `the session of profile ${profile} belongs to the ${what} ${own}, not to ${asked}; it is not sent there`,
      {
        hint: `leave out ${flag}, or sign in there under a profile of its own: mailclaim login --profile NAME`,
      },
    )
  if (settings.baseUrl !== undefined && bound.issuer !== null) {
    const asked = issuerOf(parseBaseUrl(settings.baseUrl.value))
    if (asked !== bound.issuer) {
      throw other('session_of_another_service', 'service', bound.issuer, asked, '--base-url')
    }
  }
  if (settings.clientId !== undefined && bound.clientId !== undefined) {
    if (settings.clientId.value !== bound.clientId) {
      throw other(
        'session_of_another_client',
        'client',
        bound.clientId,
        settings.clientId.value,
        '--client-id',
      )
    }
  }
}
