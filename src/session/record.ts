import type { Context } from '../context.ts'
import { CliError, Exit } from '../errors.ts'
import { issuerOf, parseBaseUrl } from '../settings/addresses.ts'
import { loginCommand } from '../settings/login-command.ts'
import type { Settings } from '../settings/settings.ts'
import { writeDurable } from '../storage/durable-file.ts'
import { sessionFormat } from '../storage/file-formats.ts'
import { moveAway, readJson } from '../storage/json-file.ts'
import type { Contents } from '../storage/schema.ts'
import type { SessionPaths } from './paths.ts'

/** What is known about a profile's credential, without the secret. */
export type SessionRecord = Contents<typeof sessionFormat>

/** What `login` keeps of a sign-in. */
export type OAuthRecord = Extract<SessionRecord, { kind: 'oauth' }>

/** What `login --with-api-key` keeps. Bound to no service: an API key is the person's own choice at each call. */
export type ApiKeyRecord = Extract<SessionRecord, { kind: 'api_key' }>

/**
 * Reads the session record of a profile; undefined where nobody signed in.
 *
 * @throws CliError `file_unusable`, exit 4; `session_copied`, exit 4, where it belongs to another profile.
 */
export async function readRecord(paths: SessionPaths): Promise<SessionRecord | undefined> {
  const record = await readJson(paths.session, sessionFormat.parse, {
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

/** @throws CliError `cannot_write`, exit 1. */
export function writeRecord(paths: SessionPaths, record: SessionRecord): void {
  writeDurable(paths.session, sessionFormat.text(record))
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
