import type { Context } from '../context.ts'
import type { Secret } from '../credentials/store.ts'
import { type CliError, usageError } from '../errors.ts'
import {
  type AccessTokenGrant,
  type RefreshOutcome,
  refresh,
  tokenTimeoutMs,
} from '../oauth/token-endpoint.ts'
import { backoff } from '../service/retry.ts'
import { parseBaseUrl } from '../settings/addresses.ts'
import { type PreparedFile, prepareDurable, removeLeftovers } from '../settings/files.ts'
import type { Settings } from '../settings/settings.ts'
import { warn } from '../terminal/notices.ts'
import {
  type AccessToken,
  isAdoptable,
  type Moment,
  moment,
  readAccessToken,
  removeAccessToken,
  writeAccessToken,
} from './access-token.ts'
import { withLock } from './lock.ts'
import {
  accessTokenUnusable,
  interrupted,
  interruptedQuestion,
  nothingSent,
  notNoted,
  notSignedIn,
  outcomeUnknown,
  REFRESH_TOKEN_DAYS,
  sessionOver,
  tokenLost,
} from './messages.ts'
import { type SessionPaths, sessionPaths } from './paths.ts'
import {
  fingerprint,
  formatRecord,
  type Journal,
  type OAuthRecord,
  readRecord,
  requireSameService,
  writeRecord,
} from './record.ts'
import { placesOf, readNewest, removeCopies, reserveRoom, storeSuccessor } from './secrets.ts'

export interface RenewOptions {
  /** `stale`: the access token ends soon. `refused`: the service did not take it. `asked`: a person wants a new one. */
  readonly reason: 'stale' | 'refused' | 'asked'
  /** The access token that is stale or was refused: another one in its place can be adopted. */
  readonly outdated?: string
  /** Narrows the new access token (interface 4.1); separated by spaces. */
  readonly scope?: string
  /** Sends a token whose last use has no known outcome: the person said so. */
  readonly retryInterrupted?: boolean
}

/** Room for the session record, which grows with what the service says when it ends a session. */
const RECORD_BYTES = 4 * 1024
/** How long a service that says "later" is waited for before the person is told. */
const PATIENCE_MS = 30_000
/** Writing and the keychain take their time as well. */
const LOCK_EXTRA_MS = PATIENCE_MS + 15_000
/** How often a service that cannot even be reached is tried. */
const UNREACHABLE_TRIES = 3

/** Milliseconds that a command waits for the lock: another process may use up all of its own time under it. */
export function lockDeadline(settings: Pick<Settings, 'httpTimeoutMs'>): number {
  return tokenTimeoutMs(settings) + LOCK_EXTRA_MS
}

/**
 * Renews the access token of the profile: the road of a refresh (docs/token-safety.md), each step below.
 *
 * @returns the new access token, or the one that another process got meanwhile.
 * @throws CliError `not_signed_in`, `refresh_interrupted`, `session_over` and the store's own (exit 4);
 *   `refresh_unknown`, `rate_limited`, `service_unavailable`, `session_busy` (exit 7); the interface's section 7.1.
 */
export async function renew(
  context: Context,
  settings: Settings,
  options: RenewOptions,
): Promise<AccessToken> {
  const profile = settings.profile.value
  const paths = sessionPaths(context, profile)
  // Looked at before there is a lock to take: a profile that nobody signed in has no folder.
  const before = await readRecord(paths)
  if (before === undefined) throw notSignedIn(profile)
  if (before.kind === 'api_key') {
    throw usageError(`profile ${profile} holds an API key, which is never renewed`)
  }
  requireSameService(before, settings)
  const adopt = () => adoptable(context, settings, paths, options)
  return withLock(
    paths.lock,
    context,
    { deadlineMs: lockDeadline(settings), meanwhile: adopt },
    async () => (await adopt()) ?? (await renewLocked(context, settings, paths, options)),
  )
}

/** Step 3: an access token that another process stored since we looked. */
async function adoptable(
  context: Context,
  settings: Settings,
  paths: SessionPaths,
  options: RenewOptions,
): Promise<AccessToken | undefined> {
  if (options.reason === 'asked') return undefined
  const stored = await readAccessToken(paths)
  if (stored === undefined || stored.value === options.outdated || !isAdoptable(stored, context.clock))
    return undefined
  requireSameService(stored, settings)
  return stored
}

async function renewLocked(
  context: Context,
  settings: Settings,
  paths: SessionPaths,
  options: RenewOptions,
): Promise<AccessToken> {
  await removeLeftovers(paths.directory, { olderThanMs: 0 })
  const found = await readRecord(paths)
  if (found === undefined || found.kind !== 'oauth') throw notSignedIn(settings.profile.value)
  requireSameService(found, settings)
  if (found.ended !== null) throw sessionOver(found)
  const secret = await readNewest(context, paths, found)
  const record = recovered(found, secret)
  await requireKnownFate(context, settings, record, secret, options)

  const end = context.clock.monotonic() + PATIENCE_MS
  for (let attempt = 1; ; attempt++) {
    context.interrupts.signal.throwIfAborted()
    const outcome = await context.interrupts.shield(() =>
      sendAndSettle(context, settings, paths, record, secret, options),
    )
    if (outcome.kind === 'renewed') return outcome.token
    const wait = Math.max(outcome.afterMs ?? 0, backoff(attempt, context.random))
    const unreachable = outcome.error.code === 'service_unreachable' && attempt >= UNREACHABLE_TRIES
    if (unreachable || context.clock.monotonic() + wait >= end) throw outcome.error
    await context.clock.sleep(wait, context.interrupts.signal)
  }
}

/**
 * A process that died between storing the new token and saying so in the record left a newer secret than the record
 * knows: the answer had arrived, and the session goes on with it.
 */
function recovered(record: OAuthRecord, secret: Secret): OAuthRecord {
  if (secret.generation <= record.generation) return record
  return {
    ...record,
    generation: secret.generation,
    issuedAt: record.journal?.sentAt ?? record.issuedAt,
    journal: null,
  }
}

/** Step 4: a token that was sent and whose fate is unknown is not sent again, unless a person says so. */
async function requireKnownFate(
  context: Context,
  settings: Settings,
  record: OAuthRecord,
  secret: Secret,
  options: RenewOptions,
): Promise<void> {
  const { journal, profile } = record
  if (journal === null || journal.sha256 !== fingerprint(secret.value)) return
  if (options.retryInterrupted) return
  if (settings.profileConfig.on_interrupted === 'retry') {
    await warn(
      `the last refresh of profile ${profile} has no known outcome; its token is sent once more, because on-interrupted is set to retry`,
      context,
      settings,
    )
    return
  }
  if (settings.interactive) {
    const message = interruptedQuestion(profile, journal)
    if (await context.prompts.confirm({ message, default: false })) return
  }
  throw interrupted(record, journal)
}

type Settled =
  | { readonly kind: 'renewed'; readonly token: AccessToken }
  | { readonly kind: 'again'; readonly afterMs: number | undefined; readonly error: CliError }

/**
 * Steps 5 to 8, which no signal cuts in two: journal, request, and what follows from the answer.
 *
 * @throws CliError where the refresh did not succeed and waiting will not help.
 */
async function sendAndSettle(
  context: Context,
  settings: Settings,
  paths: SessionPaths,
  record: OAuthRecord,
  secret: Secret,
  options: RenewOptions,
): Promise<Settled> {
  const base = parseBaseUrl(record.issuer)
  // Step 5. All that may have to be written after the answer gets its place on the disk before the token leaves.
  const room = await reserveRoom(paths, record).catch((error: unknown) => {
    throw nothingSent(record.profile, error)
  })
  let after: PreparedFile | undefined
  const journal: Journal = { sha256: fingerprint(secret.value), sentAt: context.clock.now() }
  try {
    after = await prepareDurable(paths.session, RECORD_BYTES)
    await writeRecord(paths, { ...record, journal })
  } catch (error) {
    await Promise.all([room.discard(), after?.discard()])
    throw nothingSent(record.profile, error)
  }
  const before = moment(context.clock)
  // Step 6.
  const outcome = await refresh(context, {
    base,
    clientId: record.clientId,
    settings,
    refreshToken: secret.value,
    scope: options.scope,
    grantedScope: record.scope ?? undefined,
  })
  // Step 7.
  switch (outcome.kind) {
    case 'success': {
      const token = outcome.access && accessTokenOf(record, outcome.access, before, options)
      await storeRenewed(context, settings, paths, record, secret, outcome, token, { room, after, before })
      if (token === undefined) throw accessTokenUnusable(record.profile, outcome.why)
      return { kind: 'renewed', token }
    }
    case 'over':
      await room.discard()
      throw await endSession(context, paths, record, outcome, after)
    case 'unknown':
      if (outcome.access !== undefined) {
        await writeAccessToken(paths, accessTokenOf(record, outcome.access, before, options)).catch(
          () => undefined,
        )
      }
      await Promise.all([room.discard(), after.discard()])
      throw outcomeUnknown(record, outcome.why)
    case 'not_consumed':
    case 'retry_after':
      await room.discard()
      // As it was: an earlier use of the token that has no known outcome stays on record.
      await after.commit(formatRecord(record)).catch((failure: unknown) => {
        throw notNoted(outcome.error, failure)
      })
      if (outcome.kind === 'not_consumed') throw outcome.error
      return { kind: 'again', afterMs: outcome.afterMs, error: outcome.error }
  }
}

function accessTokenOf(
  record: OAuthRecord,
  access: AccessTokenGrant,
  received: Moment,
  options: RenewOptions,
): AccessToken {
  return {
    session: record.id,
    issuer: record.issuer,
    clientId: record.clientId,
    value: access.accessToken,
    scope: access.scope ?? null,
    narrowed: options.scope !== undefined,
    expiresInSeconds: access.expiresInSeconds,
    // When the request left: the answer cannot have been younger.
    received,
  }
}

/** Step 8: the refresh token first, then the access token, then the journal. */
async function storeRenewed(
  context: Context,
  settings: Settings,
  paths: SessionPaths,
  record: OAuthRecord,
  sent: Secret,
  { refreshToken }: Extract<RefreshOutcome, { kind: 'success' }>,
  token: AccessToken | undefined,
  files: { readonly room: PreparedFile; readonly after: PreparedFile; readonly before: Moment },
): Promise<void> {
  const successor: Secret = { generation: sent.generation + 1, value: refreshToken }
  let refused: string | undefined
  try {
    refused = await storeSuccessor(context, paths, record, successor, files.room)
  } catch (error) {
    await Promise.all([files.room.discard(), files.after.discard()])
    throw tokenLost(record, error)
  }
  // From here on nothing can be lost: what fails is made good by the next command.
  if (token !== undefined) await writeAccessToken(paths, token).catch(() => undefined)
  const renewed: OAuthRecord = {
    ...record,
    generation: successor.generation,
    // The service may have taken scopes away from the grant.
    scope: token === undefined || token.narrowed ? record.scope : token.scope,
    issuedAt: files.before.wall,
    journal: null,
  }
  await files.after.commit(formatRecord(renewed)).catch(() => undefined)
  if (refused !== undefined) {
    await warn(
      `the keychain did not take the new refresh token (${refused}). It is kept in a file that only you can read (${paths.directory}) and goes back into the keychain at the next refresh`,
      context,
      settings,
    )
  }
}

/** `invalid_grant`: keeps what is needed to explain it and removes the tokens. */
async function endSession(
  context: Context,
  paths: SessionPaths,
  record: OAuthRecord,
  outcome: Extract<RefreshOutcome, { kind: 'over' }>,
  after: PreparedFile,
): Promise<CliError> {
  const now = context.clock.now()
  const expired = now - record.issuedAt > REFRESH_TOKEN_DAYS * 24 * 3600 * 1000
  const cause = record.journal !== null ? 'interrupted' : expired ? 'expired' : 'refused'
  const ended: OAuthRecord = {
    ...record,
    journal: null,
    ended: { at: now, description: outcome.description ?? null, cause },
  }
  try {
    await after.commit(formatRecord(ended))
    await removeAccessToken(paths)
  } catch (failure) {
    return notNoted(sessionOver(ended), failure)
  }
  // A token that is worth nothing may stay in a keychain that is locked; the next login replaces it.
  await removeCopies(context, placesOf(paths, record))
  return sessionOver(ended)
}
