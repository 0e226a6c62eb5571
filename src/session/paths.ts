import { join } from 'node:path'
import type { Context } from '../context.ts'
import { type SecretHome, secretFile } from '../credentials/secret-copies.ts'
import { parseProfileName } from '../settings/profiles.ts'
import type { SessionRecord } from './record.ts'

/** The files of one profile's session; all are 0600, in directories of 0700. */
export interface SessionPaths {
  readonly profile: string
  readonly directory: string
  /** What is known about the session; no secret. Written by a login, and when the service ends the session. */
  readonly session: string
  /** The access token, for the hot path. */
  readonly accessToken: string
  /** Keychain items of earlier sign-ins that are to be removed. */
  readonly superseded: string
  /** Locked while the files of the session are changed. */
  readonly lock: string
  /** Directories that take a new refresh token when the profile's own refuses it. */
  readonly elsewhere: readonly string[]
}

/** @throws CliError exit 2 where the profile's name is not valid: it becomes a directory. */
export function sessionPaths(context: Pick<Context, 'directories'>, profile: string): SessionPaths {
  const directory = join(profilesDirectory(context), parseProfileName(profile))
  return {
    profile,
    directory,
    session: join(directory, 'session.json'),
    accessToken: join(directory, 'access-token.json'),
    superseded: join(directory, 'superseded.json'),
    lock: join(directory, 'lock'),
    elsewhere: [context.directories.state, context.directories.config],
  }
}

/** Where the secret of a sign-in belongs. A keychain item names the sign-in: state directories share one keychain. */
export function secretHome(
  { profile, directory, elsewhere }: SessionPaths,
  { id: session, issuer, store }: Pick<SessionRecord, 'id' | 'issuer' | 'store'>,
): SecretHome {
  const name =
    store === 'keychain' ? `${profile} ${issuer ?? 'api-key'} ${session}` : secretFile(directory, session)
  return { profile, session, place: { store, name }, directory, elsewhere }
}

/** The directory that has one directory for each profile that ever had a session. */
export function profilesDirectory(context: Pick<Context, 'directories'>): string {
  return join(context.directories.state, 'profiles')
}
