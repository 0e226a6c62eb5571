import type { Context } from '../context.ts'
import { readNewest, type SecretStorage } from '../credentials/secret-copies.ts'
import { CliError } from '../errors.ts'
import type { Settings } from '../settings/settings.ts'
import { isShared } from '../settings/shared-store.ts'
import { type FileLocks, locksIfAny, withLock } from '../storage/lock.ts'
import { type AccessToken, isFresh, readAccessToken } from './access-token.ts'
import { environmentKey } from './authorizer.ts'
import { dates, describeToken, type SessionDescription, STATE_BY_CODE, UNKNOWN } from './description.ts'
import { journalDirectory, type SessionContext, withGuard } from './guard.ts'
import { fingerprint, isBeingSent, isJournaled, journaled, journaledAt } from './journal.ts'
import { interrupted, mayHaveExpired, notSignedIn, sessionOver } from './messages.ts'
import { type SessionPaths, sessionPaths } from './paths.ts'
import { type OAuthRecord, readRecord, type SessionRecord } from './record.ts'
import { hasExpired } from './refresh-token.ts'
import { requireSameService } from './same-service.ts'
import { secretStorage } from './secret-storage.ts'

type DescribeContext = SessionContext & Pick<Context, 'environment' | 'http' | 'program' | 'stderr'>

/** How long to wait for another process that holds the lock. */
const LOCK_WAIT_MS = 1_500

/** Describes the session of the profile. Reads the secret from its store, with the store's time limits; no network. */
export async function describeSession(
  context: DescribeContext,
  settings: Pick<Settings, 'profile' | 'baseUrl' | 'clientId' | 'chosen'>,
): Promise<SessionDescription> {
  const profile = settings.profile.value
  const paths = sessionPaths(context, profile)
  const apiKey = {
    apiKeyActive: context.environment.apiKey !== undefined,
    apiKeyProblem: apiKeyProblem(context),
  }
  if (isShared(settings)) {
    const { describeShared } = await import('./shared/describe.ts')
    return { ...(await describeShared(context, settings)), ...apiKey }
  }
  const nothing = {
    profile,
    ...apiKey,
    shared: undefined,
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
  if (record === undefined) return { ...nothing, state: 'none', problem: notSignedIn(settings) }
  const token = await readAccessToken(paths)
  const classified = await classify(context, settings, paths, record, token)
  return {
    ...nothing,
    ...classified,
    location: classified.location ?? secretStorage(paths, classified.record).location,
    accessToken: token && describeToken(token, context.clock),
  }
}

function apiKeyProblem(context: Pick<Context, 'environment'>): CliError | undefined {
  try {
    environmentKey(context)
    return undefined
  } catch (error) {
    if (error instanceof CliError) return error
    throw error
  }
}

type Classified = Pick<
  SessionDescription,
  'location' | 'state' | 'problem' | 'doubt' | 'renewedAt' | 'refreshTokenExpiresAt' | 'interruptedAt'
> & {
  readonly record: SessionRecord
}

async function classify(
  context: DescribeContext,
  settings: Pick<Settings, 'profile' | 'baseUrl' | 'clientId' | 'chosen'>,
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
    // An API key doesn't rotate, so no lock is needed.
    if (record.kind === 'api_key') {
      await readNewest(context, secretStorage(paths, record))
      return { ...UNKNOWN, record, state: 'fine', problem: undefined }
    }
    // Under the lock if possible, so that nothing changes meanwhile.
    const storage = secretStorage(paths, record)
    const classifyNow = (locks?: FileLocks) => classifyOAuth(context, settings, storage, record, token, locks)
    const options = { deadlineMs: LOCK_WAIT_MS }
    return await withLock(paths.lock, context, options, (lock) =>
      withGuard(context, storage, lock, options, classifyNow),
    ).catch(async (error: unknown) => {
      // On a read-only disk, or while another command has the lock for whatever reason, the journal says what is known.
      if (error instanceof CliError && ['lock_unavailable', 'session_busy'].includes(error.code))
        return classifyNow(await locksIfAny())
      throw error
    })
  } catch (error) {
    if (!(error instanceof CliError)) throw error
    const state = STATE_BY_CODE[error.code] ?? 'store_unavailable'
    return { ...UNKNOWN, record, state, problem: error }
  }
}

async function classifyOAuth(
  context: DescribeContext,
  settings: Pick<Settings, 'chosen'>,
  storage: SecretStorage,
  record: OAuthRecord,
  token: AccessToken | undefined,
  locks: FileLocks | undefined,
): Promise<Classified> {
  const journals = journalDirectory(context, storage)
  const sent = journaled(journals)
  const secret = await readNewest(context, storage, token?.session === record.id ? token.generation : 1)
  const common = { ...UNKNOWN, ...dates(secret.issuedAt), location: secret.location, record }
  const sha256 = fingerprint(secret.value)
  if (sent.has(sha256)) {
    if (locks !== undefined && isBeingSent(journals, sha256, locks))
      return { ...common, state: 'refreshing', problem: undefined }
    // Its sender has ended since the journal was read, with a known outcome.
    if (!isJournaled(journals, sha256)) return classifyOAuth(context, settings, storage, record, token, locks)
    const interruptedAt = await journaledAt(journals, sha256)
    return {
      ...common,
      interruptedAt,
      state: 'interrupted',
      problem: interrupted(record, interruptedAt, settings),
    }
  }
  if (token !== undefined && isFresh(token, context.clock))
    return { ...common, state: 'fine', problem: undefined }
  const expired = hasExpired(record.id, secret, token, context.clock)
  if (expired === true) {
    const ended = {
      at: context.clock.now(),
      description: null,
      cause: 'expired' as const,
      renewedAt: secret.issuedAt,
    }
    return { ...common, state: 'expired', problem: sessionOver({ ...record, ended }) }
  }
  const doubt = expired ? mayHaveExpired(record.profile, secret.issuedAt) : undefined
  return { ...common, state: 'needs_refresh', problem: undefined, doubt }
}
