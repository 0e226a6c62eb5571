import {
  locationsOf,
  removeOutdatedCopies,
  removeSecrets,
  storeSuccessor,
} from '../credentials/secret-copies.ts'
import type { Secret } from '../credentials/store.ts'
import type { CliError } from '../errors.ts'
import { scopeDifference } from '../oauth/scopes.ts'
import type { AccessTokenGrant, RefreshOutcome } from '../oauth/token-endpoint.ts'
import { isThere, type PreallocatedFile } from '../storage/durable-file.ts'
import type { Moment } from '../storage/moment.ts'
import { warn } from '../terminal/notices.ts'
import { sanitizeLine } from '../terminal/sanitize.ts'
import { type AccessToken, readAccessToken, removeAccessToken, writeAccessToken } from './access-token.ts'
import { closeJournalQuietly } from './journal.ts'
import {
  accessTokenNotStored,
  accessTokenUnusable,
  notRecorded,
  recordDeleted,
  replacedMeanwhile,
  sessionOver,
  signedOutMeanwhile,
  tokenLost,
} from './messages.ts'
import type { SessionPaths } from './paths.ts'
import { type OAuthRecord, readRecord, writeRecord } from './record.ts'
import type { RefreshAttempt } from './refresh-task.ts'
import { hasExpired } from './refresh-token.ts'
import { noteSuperseded, readSuperseded } from './superseded.ts'

/**
 * Step 9: stores the refresh token, then the access token, then closes the journal.
 *
 * @throws CliError `refresh_token_lost`, exit 4; `access_token_unusable`, exit 7.
 */
export async function storeRenewed(
  attempt: RefreshAttempt,
  outcome: Extract<RefreshOutcome, { kind: 'success' }>,
  received: Moment,
  reserved: PreallocatedFile,
): Promise<AccessToken> {
  const { context, settings, paths, options, record, storage, guard, secret, sha256 } = attempt
  const successor: Secret = {
    generation: secret.generation + 1,
    issuedAt: received.wall,
    value: outcome.refreshToken,
  }
  const stored = await storeSuccessor(context, storage, successor, reserved).catch((error: unknown) => {
    throw tokenLost(record, error)
  })
  const replaced = await discardIfReplaced(attempt)
  if (replaced !== undefined) throw replaced
  const isGone = !isThere(paths.session)
  // From here on the session is safe: the next command makes up for whatever fails.
  const token = outcome.access && accessTokenOf(attempt, outcome.access, successor.generation, received)
  const failure = await cacheAccessToken(paths, token)
  const areGone = await removeOutdatedCopies(context, storage, successor, stored.problem === undefined)
  if (stored.problem === undefined) {
    // An older token that is still stored is kept from being sent by its journal entry alone.
    if (areGone) closeJournalQuietly(guard.journals, sha256)
  } else {
    // Even with --quiet: the secret is where nobody chose to keep it.
    const then = isGone ? '' : ' and goes back at the next refresh'
    await context.stderr.write(
      `warning: ${sanitizeLine(`the new refresh token could not be stored where it belongs (${stored.problem}). It is kept in a file that only you can read (${stored.location.name})${then}`)}\n`,
    )
  }
  if (token === undefined) throw accessTokenUnusable(record.profile, outcome.why ?? 'it is missing')
  const loss = isGone ? recordDeleted(record) : failure
  if (loss === undefined) return token
  // A person who narrowed the token must not hand out a wider one.
  if (options.reason === 'asked') throw loss
  const what = isGone
    ? `${loss.message}; ${loss.hint}`
    : `the new access token could not be stored, so the next command renews it again: ${loss.message}`
  await warn(what, context, settings)
  return token
}

/**
 * Removes the secrets of the session if somebody has signed in or out since its refresh began, which takes a lock file that
 * was deleted. A directory that is gone as a whole was deleted by something else, which meant no logout.
 *
 * @returns the error to report if so.
 */
async function discardIfReplaced(attempt: RefreshAttempt): Promise<CliError | undefined> {
  const { context, paths, record, storage } = attempt
  const current = await readRecord(paths).catch(() => record)
  if (current?.id === record.id || (current === undefined && !isThere(paths.directory))) return undefined
  const kept = await removeSecrets(context, locationsOf(storage))
  if (kept.length > 0)
    noteSuperseded(paths, [...(await readSuperseded(paths)), ...kept.map(({ location }) => location)])
  return current === undefined ? signedOutMeanwhile(record) : replacedMeanwhile(record)
}

/** @param received when the request left: the answer is no older. */
export function accessTokenOf(
  { record, options }: RefreshAttempt,
  grant: AccessTokenGrant,
  generation: number,
  received: Moment,
): AccessToken {
  return {
    session: record.id,
    generation,
    issuer: record.issuer,
    clientId: record.clientId,
    value: grant.accessToken,
    scope: grant.scope ?? null,
    narrowed: isNarrower(grant.scope, record.scope) ?? options.scope !== undefined,
    expiresInSeconds: grant.expiresInSeconds,
    received,
  }
}

/** Whether an access token has less than the session was granted; undefined if either is unknown. */
function isNarrower(scope: string | undefined, granted: string | null): boolean | undefined {
  if (scope === undefined || granted === null) return undefined
  return scopeDifference(granted.split(' '), scope).missing.length > 0
}

/**
 * Replaces the cached access token. If that fails, removes the old one, which may be wider than what was asked for.
 *
 * @returns what to tell a person who asked for this token.
 */
export async function cacheAccessToken(
  paths: SessionPaths,
  token: AccessToken | undefined,
): Promise<CliError | undefined> {
  // This process may have been stopped while another one renewed the session.
  const stored = await readAccessToken(paths)
  if (token !== undefined && stored?.session === token.session && stored.generation > token.generation)
    return undefined
  try {
    if (token !== undefined) writeAccessToken(paths, token)
    // Another process may have signed out meanwhile.
    if (token === undefined || !isThere(paths.session)) removeAccessToken(paths)
    return undefined
  } catch (error) {
    return accessTokenNotStored(error, !isRemoved(paths))
  }
}

function isRemoved(paths: SessionPaths): boolean {
  try {
    removeAccessToken(paths)
    return true
  } catch {
    return false
  }
}

/**
 * `invalid_grant`: keeps what explains the end of the session and removes the tokens.
 *
 * @returns the error to report.
 */
export async function endSession(
  attempt: RefreshAttempt,
  description: string | undefined,
): Promise<CliError> {
  const { context, paths, record, storage, guard, secret, sha256, resend } = attempt
  const replaced = await discardIfReplaced(attempt)
  if (replaced !== undefined) return replaced
  const now = context.clock.now()
  const expired = hasExpired(record.id, secret, await readAccessToken(paths), context.clock) === true
  const cause = resend ? 'interrupted' : expired ? 'expired' : 'refused'
  const ended: OAuthRecord = {
    ...record,
    ended: { at: now, description: description ?? null, cause, renewedAt: secret.issuedAt },
  }
  try {
    writeRecord(paths, ended)
    removeAccessToken(paths)
  } catch (failure) {
    // The journal keeps the token from being sent again.
    return notRecorded(sessionOver(ended), failure)
  }
  // A worthless token may stay in a locked keychain; the next login replaces it.
  await removeSecrets(context, locationsOf(storage))
  closeJournalQuietly(guard.journals, sha256)
  return sessionOver(ended)
}
