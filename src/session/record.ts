import type { Context } from '../context.ts'
import { CliError, Exit } from '../errors.ts'
import { loginCommand } from '../settings/login-command.ts'
import { moveDurable, writeDurable } from '../storage/durable-file.ts'
import { isPassing } from '../storage/file-errors.ts'
import { sessionFormat } from '../storage/file-formats.ts'
import { moveAway, readJson } from '../storage/json-file.ts'
import type { Contents } from '../storage/schema.ts'
import type { SessionPaths } from './paths.ts'

/** What is known about a profile's credential, without the secret. */
export type SessionRecord = Contents<typeof sessionFormat>

/** What `login` keeps about a sign-in. */
export type OAuthRecord = Extract<SessionRecord, { kind: 'oauth' }>

/** What `login --with-api-key` keeps. An API key has no client, and the service it goes to is the person's choice. */
export type ApiKeyRecord = Extract<SessionRecord, { kind: 'api_key' }>

/**
 * Reads the session record of a profile; undefined if nobody has signed in.
 *
 * @throws CliError `file_unusable`, exit 4; `session_copied`, exit 4, if it belongs to another profile.
 */
export async function readRecord(paths: SessionPaths): Promise<SessionRecord | undefined> {
  const record = await readJson(paths.session, sessionFormat.parse, {
    exit: Exit.notSignedIn,
    remedy: `it was left as it is; to make a new session and keep the old file beside it: ${loginCommand({ profile: paths.profile })}, or move it away: ${moveAway(paths.session)}`,
  })
  // With two holders of one refresh token, the second one to use it would revoke the grant.
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

/**
 * Reads the record of a session that is about to be removed. One that can't be used is kept under another name.
 *
 * @throws CliError `cannot_write`, exit 1, if it can't be moved; `file_unusable`, exit 4, if it can't be read just now.
 */
export async function readOrMoveAway(
  context: Pick<Context, 'clock'>,
  paths: SessionPaths,
): Promise<{ record: SessionRecord | undefined; damaged: string | undefined }> {
  try {
    return { record: await readRecord(paths), damaged: undefined }
  } catch (error) {
    if (!(error instanceof CliError) || isPassing(error.cause)) throw error
    const damaged = `${paths.session}.damaged-${context.clock.now()}`
    moveDurable(paths.session, damaged)
    return { record: undefined, damaged }
  }
}

/** @throws CliError `cannot_write`, exit 1. */
export function writeRecord(paths: SessionPaths, record: SessionRecord): void {
  writeDurable(paths.session, sessionFormat.text(record))
}

/** A new name for a sign-in: 12 hex digits. */
export function newSessionId(context: Pick<Context, 'random'>): string {
  return Buffer.from(context.random.bytes(6)).toString('hex')
}
