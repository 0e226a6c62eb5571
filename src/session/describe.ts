import type { Context } from '../context.ts'
import type { Place } from '../credentials/store.ts'
import { CliError } from '../errors.ts'
import type { Settings } from '../settings/settings.ts'
import { type AccessToken, isFresh, readAccessToken, secondsLeft } from './access-token.ts'
import { withLock } from './lock.ts'
import { interrupted, notSignedIn, REFRESH_TOKEN_DAYS, sessionOver } from './messages.ts'
import { type SessionPaths, sessionPaths } from './paths.ts'
import {
  fingerprint,
  type OAuthRecord,
  readRecord,
  requireSameService,
  type SessionRecord,
} from './record.ts'
import { placeOf, readNewest } from './secrets.ts'

/**
 * `fine`: the access token can be used. `needs_refresh`: the next command renews it. `refreshing`: another process does
 * so now. `interrupted`: a refresh has no known outcome. `expired`: the refresh token is older than 60 days. `ended`:
 * the service refused the session. `store_unavailable`: the secret cannot be had. `unusable`: the record is damaged.
 */
export type SessionState =
  | 'none'
  | 'fine'
  | 'needs_refresh'
  | 'refreshing'
  | 'interrupted'
  | 'expired'
  | 'ended'
  | 'store_unavailable'
  | 'unusable'

/** All that can be said about the credential of a profile without asking the service. No secret in it. */
export interface SessionDescription {
  readonly profile: string
  /** The API key of the environment is what commands send, whatever is stored. */
  readonly apiKeyInForce: boolean
  readonly state: SessionState
  /** What stands in the way, for every state but `fine`, `needs_refresh` and `refreshing`. */
  readonly problem: CliError | undefined
  readonly record: SessionRecord | undefined
  /** Where the secret lives. */
  readonly place: Place | undefined
  readonly accessToken:
    | {
        /** Not above 0 when it has ended. */
        readonly secondsLeft: number
        readonly scope: string | null
        readonly narrowed: boolean
      }
    | undefined
  /** Wall-clock milliseconds; undefined for an API key. */
  readonly refreshTokenExpiresAt: number | undefined
}

/** How long the description waits for a refresh that another process is at. */
const PATIENCE_MS = 1_500

/** Describes the session of the profile. Asks the store, with its time limits, and no network. */
export async function describeSession(context: Context, settings: Settings): Promise<SessionDescription> {
  const profile = settings.profile.value
  const paths = sessionPaths(context, profile)
  const nothing = {
    profile,
    apiKeyInForce: context.environment.apiKey !== undefined,
    record: undefined,
    place: undefined,
    accessToken: undefined,
    refreshTokenExpiresAt: undefined,
  }
  let record: SessionRecord | undefined
  try {
    record = await readRecord(paths)
  } catch (error) {
    if (!(error instanceof CliError)) throw error
    return { ...nothing, state: 'unusable', problem: error }
  }
  if (record === undefined) return { ...nothing, state: 'none', problem: notSignedIn(profile) }
  const token = await readAccessToken(paths)
  const judged = await judge(context, settings, paths, record, token)
  return {
    ...nothing,
    ...judged,
    place: placeOf(paths, judged.record),
    accessToken: token && {
      secondsLeft: secondsLeft(token, context.clock),
      scope: token.scope,
      narrowed: token.narrowed,
    },
    refreshTokenExpiresAt: judged.record.kind === 'oauth' ? expiryOf(judged.record) : undefined,
  }
}

interface Judged {
  readonly record: SessionRecord
  readonly state: SessionState
  readonly problem: CliError | undefined
}

async function judge(
  context: Context,
  settings: Settings,
  paths: SessionPaths,
  record: SessionRecord,
  token: AccessToken | undefined,
): Promise<Judged> {
  if (record.kind === 'oauth' && record.ended !== null) {
    const state = record.ended.cause === 'expired' ? 'expired' : 'ended'
    return { record, state, problem: sessionOver(record) }
  }
  try {
    requireSameService(record, settings)
    // Nothing rotates, so this works where the system has no locks as well.
    if (record.kind === 'api_key') return await judgeAtRest(context, paths, record, token)
    // Under the lock, because a refresh that is going on looks like one that was cut off.
    return await withLock(paths.lock, context, { deadlineMs: PATIENCE_MS }, async () => {
      const now = await readRecord(paths)
      return judgeAtRest(context, paths, now ?? record, token)
    })
  } catch (error) {
    if (!(error instanceof CliError)) throw error
    if (error.code === 'session_busy') return { record, state: 'refreshing', problem: undefined }
    return { record, state: 'store_unavailable', problem: error }
  }
}

async function judgeAtRest(
  context: Context,
  paths: SessionPaths,
  record: SessionRecord,
  token: AccessToken | undefined,
): Promise<Judged> {
  const secret = await readNewest(context, paths, record)
  if (record.kind === 'api_key') return { record, state: 'fine', problem: undefined }
  if (record.journal !== null && record.journal.sha256 === fingerprint(secret.value)) {
    return { record, state: 'interrupted', problem: interrupted(record, record.journal) }
  }
  if (token !== undefined && isFresh(token, context.clock))
    return { record, state: 'fine', problem: undefined }
  if (expiryOf(record) < context.clock.now()) {
    const ended = { at: context.clock.now(), description: null, cause: 'expired' as const }
    return { record, state: 'expired', problem: sessionOver({ ...record, ended }) }
  }
  return { record, state: 'needs_refresh', problem: undefined }
}

/** Wall-clock milliseconds at which the refresh token ends if nobody renews it. */
function expiryOf(record: OAuthRecord): number {
  return record.issuedAt + REFRESH_TOKEN_DAYS * 24 * 3600 * 1000
}
