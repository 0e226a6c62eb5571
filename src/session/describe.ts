import { CliError, type ErrorCode, Exit } from '../errors.ts'
import { readJwtExpiryMs } from '../service/problems.ts'
import { usesEtcdStore } from '../settings/settings.ts'
import { isLocked } from '../storage/lock.ts'
import type { Io } from '../terminal/io.ts'
import { formatRelativeTime } from '../terminal/time.ts'
import { readEnvironmentApiKey } from './credential.ts'
import { sessionOverError } from './messages.ts'
import { requireSession } from './profiles.ts'
import { readKeychainItem, requireNewestSecret } from './secret.ts'
import type { ProfileFiles, Session } from './session-file.ts'
import { hasEnoughLifetime, profileFiles, rejectForeignSession } from './session-file.ts'

/** State without a usable credential, derived from the code of the error that says why (see `STATES`). */
type CredentialTrouble = 'none' | 'interrupted' | 'ended' | 'elsewhere' | 'unusable' | 'store_unavailable'

/** State for each error code of an unusable credential; a code that isn't listed means `store_unavailable`. */
const STATES: Partial<Record<ErrorCode, CredentialTrouble>> = {
  not_signed_in: 'none',
  refresh_interrupted: 'interrupted',
  session_over: 'ended',
  session_elsewhere: 'elsewhere',
  file_unusable: 'unusable',
  credential_refused: 'unusable',
}

/**
 * State of the credential, as far as this machine can tell. `needs_refresh`: the next request renews the access token first.
 * `refreshing`: another process is changing the session, as in a renewal.
 */
export type CredentialState = 'active' | 'needs_refresh' | 'refreshing' | CredentialTrouble

/** Status of the credential that commands would use. */
export interface CredentialStatus {
  readonly state: CredentialState
  /** Source of the credential, even if unusable; null without one, with an unreadable session file, or on any problem with etcd. */
  readonly inForce: 'MAILCLAIM_API_KEY' | 'stored API key' | 'session' | null
  readonly problem?: CliError
  readonly session?: Session
}

/**
 * Returns the status of the credential that commands would use. Asks its store, such as the keychain or etcd, but not the
 * service.
 *
 * @throws CliError with an exit code other than 4 and 7, such as `usage`, exit 2, for an unknown profile; errors with exit 4 or 7
 *   become the `problem`
 */
export async function readCredentialStatus(
  io: Io,
  files: ProfileFiles = profileFiles(io, io.settings.profile.value),
): Promise<CredentialStatus> {
  let known: Pick<CredentialStatus, 'inForce' | 'session'> = { inForce: null }
  try {
    if (io.environment.apiKey !== undefined) {
      known = { inForce: 'MAILCLAIM_API_KEY' }
      requireUnexpired(readEnvironmentApiKey(io)?.value ?? '', io)
      return { ...known, state: 'active' }
    }
    if (usesEtcdStore(io.settings)) {
      const { readEtcdSessionWithState } = await import('./shared/sign-in.ts')
      return { inForce: 'session', ...(await readEtcdSessionWithState(io)) }
    }
    const { session } = requireSession(io, files)
    known = { inForce: session.kind === 'api_key' ? 'stored API key' : 'session', session }
    rejectForeignSession(session, io)
    return { ...known, state: await stateOf(io, files, session) }
  } catch (error) {
    if (error instanceof CliError && (error.exit === Exit.notSignedIn || error.exit === Exit.unavailable))
      return { ...known, state: STATES[error.code] ?? 'store_unavailable', problem: error }
    throw error
  }
}

/**
 * Rejects an expired JWT in `MAILCLAIM_API_KEY`: the variable may hold an access token that `auth token` printed.
 *
 * @throws CliError `credential_refused`, exit 4, for such a token
 */
function requireUnexpired(value: string, { clock }: Io): void {
  const end = readJwtExpiryMs(value)
  if (end === undefined || end > clock.now()) return
  const message = `the access token in MAILCLAIM_API_KEY expired ${formatRelativeTime(end, clock.now())}`
  const hint = 'get another where the session is: mailclaim auth token'
  throw new CliError('credential_refused', message, { hint })
}

/** Returns the state of a session on this machine. @throws CliError the reason why the session can't be used */
async function stateOf(io: Io, files: ProfileFiles, session: Session): Promise<CredentialState> {
  const { profile, id, generation, kind, access, ended } = session
  if (ended !== undefined) throw sessionOverError(profile, ended.why)
  const answer = await readKeychainItem(io, files, session)
  try {
    const { interruption } = requireNewestSecret(files, session, answer)
    if (interruption !== undefined) throw interruption
  } catch (error) {
    // While another process renews or signs in, its unfinished note file (`next.…`) or newer keychain item looks like an error.
    // So report `refreshing` while the lock is held, and start over if the session has changed since.
    if (await isLocked(files.lock, files.disk)) return 'refreshing'
    const { session: now } = requireSession(io, files)
    if (now.id === id && now.generation === generation) throw error
    return stateOf(io, files, now)
  }
  return kind === 'api_key' || hasEnoughLifetime(access, io.clock.now()) ? 'active' : 'needs_refresh'
}
