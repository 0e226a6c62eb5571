import type { Context } from '../context.ts'
import { readNewest, type SecretHome } from '../credentials/secret-copies.ts'
import type { Place } from '../credentials/store.ts'
import { CliError } from '../errors.ts'
import type { Settings } from '../settings/settings.ts'
import { withLock } from '../storage/lock.ts'
import { type AccessToken, isFresh, readAccessToken, secondsLeft } from './access-token.ts'
import { journalDirectory, withGuard } from './guard.ts'
import { fingerprint, journaled, journaledAt } from './journal.ts'
import { interrupted, notSignedIn, REFRESH_TOKEN_DAYS, sessionOver } from './messages.ts'
import { type SessionPaths, secretHome, sessionPaths } from './paths.ts'
import { type OAuthRecord, readRecord, requireSameService, type SessionRecord } from './record.ts'

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
  /** Wall-clock milliseconds of the receipt of the refresh token; undefined for an API key and where it cannot be read. */
  readonly renewedAt: number | undefined
  /** Wall-clock milliseconds at which the refresh token ends; undefined as above. */
  readonly refreshTokenExpiresAt: number | undefined
  /** Wall-clock milliseconds of the refresh that has no known outcome. */
  readonly interruptedAt: number | undefined
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
    accessToken: undefined,
    ...UNKNOWN,
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
  const classified = await classify(context, settings, paths, record, token)
  return {
    ...nothing,
    ...classified,
    place: classified.place ?? secretHome(paths, classified.record).place,
    accessToken: token && {
      secondsLeft: secondsLeft(token, context.clock),
      scope: token.scope,
      narrowed: token.narrowed,
    },
  }
}

type Classified = Pick<
  SessionDescription,
  'place' | 'state' | 'problem' | 'renewedAt' | 'refreshTokenExpiresAt' | 'interruptedAt'
> & {
  readonly record: SessionRecord
}

const UNKNOWN = {
  place: undefined,
  renewedAt: undefined,
  refreshTokenExpiresAt: undefined,
  interruptedAt: undefined,
}

async function classify(
  context: Context,
  settings: Settings,
  paths: SessionPaths,
  record: SessionRecord,
  token: AccessToken | undefined,
): Promise<Classified> {
  if (record.kind === 'oauth' && record.ended !== null) {
    const state = record.ended.cause === 'expired' ? 'expired' : 'ended'
    return { ...UNKNOWN, ...dates(record.ended.renewedAt), record, state, problem: sessionOver(record) }
  }
  try {
    requireSameService(record, settings)
    // Nothing rotates, so this works where the system has no locks as well.
    if (record.kind === 'api_key') {
      await readNewest(context, secretHome(paths, record))
      return { ...UNKNOWN, record, state: 'fine', problem: undefined }
    }
    // Under the lock, because a refresh that is going on looks like one that was cut off.
    const home = secretHome(paths, record)
    const atRest = () => classifyAtRest(context, home, record, token)
    const options = { deadlineMs: PATIENCE_MS }
    return await withLock(paths.lock, context, options, (lock) =>
      withGuard(context, home, lock, options, atRest),
    ).catch((error: unknown) => {
      // A disk that can only be read has nobody on it who refreshes.
      if (error instanceof CliError && error.code === 'lock_unavailable') return atRest()
      throw error
    })
  } catch (error) {
    if (!(error instanceof CliError)) throw error
    if (error.code === 'session_busy') return { ...UNKNOWN, record, state: 'refreshing', problem: undefined }
    return { ...UNKNOWN, record, state: 'store_unavailable', problem: error }
  }
}

async function classifyAtRest(
  context: Context,
  home: SecretHome,
  record: OAuthRecord,
  token: AccessToken | undefined,
): Promise<Classified> {
  const journals = journalDirectory(context, home)
  const sent = journaled(journals)
  const secret = await readNewest(context, home, token?.session === record.id ? token.generation : 1)
  const common = { ...UNKNOWN, ...dates(secret.issuedAt), place: secret.place, record }
  const sha256 = fingerprint(secret.value)
  if (sent.has(sha256)) {
    const interruptedAt = await journaledAt(journals, sha256)
    return {
      ...common,
      interruptedAt,
      state: 'interrupted',
      problem: interrupted(record, interruptedAt),
    }
  }
  if (token !== undefined && isFresh(token, context.clock))
    return { ...common, state: 'fine', problem: undefined }
  if (common.refreshTokenExpiresAt < context.clock.now()) {
    const ended = {
      at: context.clock.now(),
      description: null,
      cause: 'expired' as const,
      renewedAt: secret.issuedAt,
    }
    return { ...common, state: 'expired', problem: sessionOver({ ...record, ended }) }
  }
  return { ...common, state: 'needs_refresh', problem: undefined }
}

/** A refresh token ends this long after its receipt if nobody renews it. */
function dates(renewedAt: number): { renewedAt: number; refreshTokenExpiresAt: number } {
  return { renewedAt, refreshTokenExpiresAt: renewedAt + REFRESH_TOKEN_DAYS * 24 * 3600 * 1000 }
}
