import { createHash } from 'node:crypto'
import type { Context } from '../context.ts'
import { CliError, Exit } from '../errors.ts'
import { issuerOf, parseBaseUrl } from '../settings/addresses.ts'
import { moveAway, readJson, writeDurable } from '../settings/files.ts'
import type { Settings } from '../settings/settings.ts'
import { Fields } from './fields.ts'
import type { SessionPaths } from './paths.ts'

export type StoreKind = 'keychain' | 'file'

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
  /** Counts the refresh tokens of this session, so that the newest of two copies is known. */
  readonly generation: number
  /** Wall-clock milliseconds of the receipt of the current refresh token: it lives 60 days from then. */
  readonly issuedAt: number
  /** The refresh token that was sent and whose fate is not known (yet). */
  readonly journal: Journal | null
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

/** Written before a refresh token is sent, and removed when its fate is known. */
export interface Journal {
  /** SHA-256 of the token that was sent, in hex. */
  readonly sha256: string
  readonly sentAt: number
}

export interface Ending {
  readonly at: number
  /** What the service said, where it said something. */
  readonly description: string | null
  /** The last thing that is known of the token, to explain the end. */
  readonly cause: 'expired' | 'interrupted' | 'refused'
}

/** A refresh token by which the journal knows it without holding it. */
export function fingerprint(token: string): string {
  return createHash('sha256').update(token, 'utf8').digest('hex')
}

/**
 * Reads the session record of a profile; undefined where nobody signed in.
 *
 * @throws CliError `file_unusable`, exit 4.
 */
export async function readRecord(paths: SessionPaths): Promise<SessionRecord | undefined> {
  return readJson(paths.session, parseRecord, {
    exit: Exit.notSignedIn,
    remedy: `it was left as it is; mailclaim login makes a new session and keeps the old file beside it, or move it away: ${moveAway(paths.session)}`,
  })
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
    generation: fields.number('generation'),
    issuedAt: fields.time('issued_at'),
    journal: fields.below('journal', (journal) => ({
      sha256: journal.text('sha256'),
      sentAt: journal.time('sent_at'),
    })),
    ended: fields.below('ended', (ended) => ({
      at: ended.time('at'),
      description: ended.textOrNull('description'),
      cause: ended.oneOf('cause', 'expired', 'interrupted', 'refused'),
    })),
  }
}

/** @throws CliError `cannot_write`, exit 1. */
export async function writeRecord(paths: SessionPaths, record: SessionRecord): Promise<void> {
  await writeDurable(paths.session, formatRecord(record))
}

/** The text of the file that holds a record. */
export function formatRecord(record: SessionRecord): string {
  return `${JSON.stringify(recordFields(record), null, 2)}\n`
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
    generation: record.generation,
    issued_at: time(record.issuedAt),
    journal: record.journal && { sha256: record.journal.sha256, sent_at: time(record.journal.sentAt) },
    ended: record.ended && {
      at: time(record.ended.at),
      description: record.ended.description,
      cause: record.ended.cause,
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
