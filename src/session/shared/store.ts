import { CliError } from '../../errors.ts'
import { addProfileFlag } from '../../settings/profiles.ts'
import { catchError } from '../../storage/file-errors.ts'
import type { Io } from '../../terminal/io.ts'
import { signInHint } from '../messages.ts'
import { profileFiles, type Session } from '../session-file.ts'
import { createEtcdKeyClient, type EtcdValue } from './etcd.ts'
import { listOutcomeFiles, type RenewalAttemptId, readCachedSession } from './local.ts'
import { type EtcdSession, type RenewalMarker, readEtcdConfig, sealSession, unsealSession } from './value.ts'

/** The session and its renewal marker in etcd, with the `mod_revision` of the etcd key that holds them. */
export interface EtcdSessionAtRevision extends EtcdSession {
  readonly revision: string
}

/** Maximum milliseconds for each compare-and-swap that delivers an outcome file (`pending.…`) of an earlier command to etcd. */
const PENDING_DELIVERY_LIMIT_MS = 15_000
/** Maximum milliseconds for all requests to etcd of a command that can use the cached session if etcd doesn't answer. */
export const BEST_EFFORT_ETCD_TIMEOUT_MS = 2000

/**
 * Returns access to the current profile's session in etcd, and to the files that this machine keeps of it. Sends no request.
 *
 * @param totalLimitMs milliseconds for all requests to etcd together; by default, only each request is limited
 * @throws CliError as `readEtcdConfig`
 */
export function openEtcdStore(io: Io, totalLimitMs?: number) {
  const access = readEtcdConfig(io)
  const etcd = createEtcdKeyClient(io, access, totalLimitMs)
  const open = async (found: EtcdValue | undefined): Promise<EtcdSessionAtRevision | undefined> =>
    found && { ...(await unsealSession(found.text, access)), revision: found.revision }
  return {
    io,
    access,
    etcd,
    files: profileFiles(io, io.settings.profile.value),
    /**
     * Reads and decrypts the session's value in etcd; undefined if its key doesn't exist.
     *
     * @throws CliError as `read` of the etcd client and `unsealSession`
     */
    read: async () => open(await etcd.read()),
    /**
     * Encrypts and writes a value by compare-and-swap.
     *
     * @returns as `swap` of the etcd client, decrypted
     * @throws CliError as `swap` of the etcd client and `unsealSession`
     */
    async swap(revision: string, next: EtcdSession, limitMs: number) {
      const { isDone, found } = await etcd.swap(revision, await sealSession(next, access), limitMs)
      return { isDone, found: await open(found) }
    },
  }
}

export type EtcdStore = ReturnType<typeof openEtcdStore>

/**
 * Delivers the outcomes in the profile's outcome files (`pending.…`) to etcd, then returns the session in etcd.
 *
 * @returns undefined if the key doesn't exist; then the outcome files stay, with a warning if there are any
 * @throws CliError as `EtcdStore.read` and `swap`; `store_unavailable`, exit 4, if etcd holds an older generation than this
 *   machine has seen, as after a restored backup
 */
export async function deliverOutcomesAndRead(store: EtcdStore): Promise<EtcdSessionAtRevision | undefined> {
  const { io, files } = store
  // Read this machine's files before etcd: another process of this machine may renew during the request, and its newer cached
  // session would make etcd look restored from a backup.
  const known = readCachedSession(files)
  const left = listOutcomeFiles(files)
  let found = await store.read()
  for (const file of left) {
    if (found === undefined) {
      await io.warn('this machine may keep a token of a session that is not in etcd (docs/fleet.md)')
      return undefined
    }
    const outcome = await readOutcome(store, file.path)
    if (outcome !== undefined)
      found = await deliverRenewalOutcomeToEtcd(store, file, outcome, found, PENDING_DELIVERY_LIMIT_MS)
    // Keep an outcome file (`pending.…`) without a complete outcome until the session in etcd is newer or has ended
    // (`isObsolete`): the file may belong to a renewal that is still running.
    const isOfNoUse = found !== undefined && (outcome !== undefined || isObsolete(file, found))
    if (isOfNoUse) catchError(() => files.disk.remove(file.path))
  }
  const session = found?.session
  if (session === undefined || session.ended !== undefined || known?.id !== session.id) return found
  if (known.generation <= session.generation) return found
  // Don't send the older token in etcd, which was probably restored from a backup: the service would treat the reuse as theft
  // and revoke the grant.
  const message = `etcd holds an older token of profile ${session.profile} than this machine has seen: it was set back`
  throw new CliError('store_unavailable', message, { hint: signInHint(session.profile) })
}

/**
 * Returns the session with new tokens that a renewal left in an outcome file (`pending.…`) on this machine, because etcd may not
 * hold them yet; undefined if no outcome file has new tokens.
 */
export async function findSessionAwaitingEtcd(store: EtcdStore): Promise<Session | undefined> {
  for (const { path, generation } of listOutcomeFiles(store.files)) {
    const session = (await readOutcome(store, path))?.session
    if (session?.refreshToken !== undefined && session.generation > generation) return session
  }
  return undefined
}

/**
 * Reads and decrypts an outcome file (`pending.…`: the outcome of a renewal attempt, kept until etcd confirms it); undefined if
 * that fails, for example because the file is incomplete.
 */
async function readOutcome({ access, files }: EtcdStore, path: string): Promise<EtcdSession | undefined> {
  try {
    return await unsealSession(files.disk.read(path)?.trimEnd() ?? '', access)
  } catch {
    return undefined
  }
}

/**
 * Delivers the outcome of a renewal attempt to etcd, by compare-and-swap until one succeeds or the outcome is obsolete. New
 * tokens, or the end of the session, replace any renewal marker. Any other outcome replaces only the attempt's own; if that
 * marker isn't in etcd, the value is rewritten unchanged, so that a late compare-and-swap of the marker fails.
 *
 * @param initial the value that the first compare-and-swap expects
 * @param limitMs milliseconds for each compare-and-swap
 * @returns the value in etcd; undefined if the key doesn't exist: then the caller must keep the outcome on this machine
 * @throws CliError as `EtcdStore.swap`
 */
export async function deliverRenewalOutcomeToEtcd(
  store: EtcdStore,
  attempt: RenewalAttemptId,
  outcome: EtcdSession,
  initial: EtcdSessionAtRevision,
  limitMs: number,
): Promise<EtcdSessionAtRevision | undefined> {
  const wins = outcome.session.generation > attempt.generation
  let found: EtcdSessionAtRevision | undefined = initial
  while (found !== undefined && !isObsolete(attempt, found)) {
    const { session, marker, revision }: EtcdSessionAtRevision = found
    const isOwn = marker?.writer === attempt.writer
    const next = wins ? outcome : { session, marker: isOwn ? outcome.marker : marker }
    const swapped = await store.swap(revision, next, limitMs)
    found = swapped.found
    if (swapped.isDone) break
  }
  return found
}

/**
 * Whether the outcome of a renewal attempt no longer matters, since etcd holds another sign-in, an ended session, or a later
 * generation.
 */
function isObsolete({ id, generation }: RenewalAttemptId, { session }: EtcdSession): boolean {
  return session.id !== id || session.ended !== undefined || session.generation > generation
}

/**
 * Returns the error for a refresh request with unknown outcome. Its hint names the machine that may hold the new token, if
 * another machine sent the request and stopped responding. Recognizes this machine by its outcome file (`pending.…`), not by its
 * host name, which another machine may have, too.
 */
export function unknownRefreshOutcomeError(
  { files, io }: Pick<EtcdStore, 'files' | 'io'>,
  { host, writer, unknown }: RenewalMarker,
  why?: string,
): CliError {
  const { profile } = files
  const sent = `the refresh token of profile ${profile} may have been sent by ${host}`
  const message = why === undefined ? sent : `${sent}: ${why}`
  const isElsewhere =
    unknown === 'said by another' && !listOutcomeFiles(files).some((file) => file.writer === writer)
  const status = addProfileFlag('mailclaim auth status', profile)
  const there = host === io.installation.host ? `another machine named ${host}` : host
  const hint = isElsewhere
    ? `${there} may hold the new token; sign in again unless it does, as this says there: ${status}`
    : signInHint(profile)
  return new CliError('refresh_interrupted', message, { hint })
}

/** Returns a random id of this many bytes in hex digits. */
export const createHexId = ({ random }: Io, bytes: number) => Buffer.from(random.bytes(bytes)).toString('hex')
