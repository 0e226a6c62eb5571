import { CliError } from '../../errors.ts'
import { addProfileFlag } from '../../settings/profiles.ts'
import { catchError } from '../../storage/file-errors.ts'
import type { Io } from '../../terminal/io.ts'
import { signInHint } from '../messages.ts'
import { profileFiles, type Session } from '../session-file.ts'
import { createEtcdClient, type EtcdValue } from './etcd.ts'
import { listPendingFiles, type RenewalAttempt, readCachedSession } from './local.ts'
import { type RenewalMarker, readEtcdSetup, type SharedSession, sealSession, unsealSession } from './value.ts'

/** A session in etcd, with the key's revision. */
export interface SharedSessionAtRevision extends SharedSession {
  readonly revision: string
}

/** Maximum milliseconds for delivering the outcome of an earlier command to etcd. */
const OFFER_LIMIT_MS = 15_000
/** Maximum milliseconds to wait for etcd in a command that also works without an answer of etcd. */
export const BEST_EFFORT_ETCD_TIMEOUT_MS = 2000

/**
 * Returns access to the session of the current profile in etcd, and to this machine's files for that session. Sends no request yet.
 *
 * @param limitMs milliseconds for all requests to etcd together
 * @throws CliError `store_not_configured`, exit 3
 */
export function openSharedStore(io: Io, limitMs?: number) {
  const access = readEtcdSetup(io)
  const etcd = createEtcdClient(io, access, limitMs)
  const open = async (found: EtcdValue | undefined): Promise<SharedSessionAtRevision | undefined> =>
    found && { ...(await unsealSession(found.text, access)), revision: found.revision }
  return {
    io,
    access,
    etcd,
    files: profileFiles(io, io.settings.profile.value),
    /** Reads the session; undefined if the key doesn't exist. @throws CliError as `read` of etcd and `unsealSession` */
    read: async () => open(await etcd.read()),
    /**
     * Replaces the session by compare-and-swap; returns `isDone` and `found` as `swap` of etcd, decrypted.
     *
     * @throws CliError as `swap` of etcd and `unsealSession`
     */
    async swap(revision: string, next: SharedSession, limitMs: number) {
      const { isDone, found } = await etcd.swap(revision, await sealSession(next, access), limitMs)
      return { isDone, found: await open(found) }
    },
  }
}

export type SharedStore = ReturnType<typeof openSharedStore>

/**
 * Delivers the pending outcomes of this machine's earlier commands to etcd, and returns the session.
 *
 * @throws CliError as `read`; exit 4 if etcd holds an older generation than this machine has seen, as after a restored backup
 */
export async function deliverAndRead(store: SharedStore): Promise<SharedSessionAtRevision | undefined> {
  const { io, files } = store
  // List local files before reading etcd: another process of this machine may store a later state during the read, and etcd would
  // seem to hold an older token than this machine.
  const known = readCachedSession(files)
  const left = listPendingFiles(files)
  let found = await store.read()
  for (const file of left) {
    if (found === undefined) {
      await io.warn('this machine may keep a token of a session that is not in etcd (docs/fleet.md)')
      return undefined
    }
    const outcome = await readOutcome(store, file.path)
    if (outcome !== undefined) found = await deliverOutcome(store, file, outcome, found, OFFER_LIMIT_MS)
    // Keep a pending file without an outcome until it is obsolete: it may belong to a renewal that is still running.
    const isOfNoUse = found !== undefined && (outcome !== undefined || isObsolete(file, found))
    if (isOfNoUse) catchError(() => files.disk.remove(file.path))
  }
  const session = found?.session
  if (session === undefined || session.ended !== undefined || known?.id !== session.id) return found
  if (known.generation <= session.generation) return found
  // A member or the cluster was restored from a backup. Don't send its older token: the service would treat the token as stolen and
  // revoke the grant.
  const message = `etcd holds an older token of profile ${session.profile} than this machine has seen: it was set back`
  throw new CliError('store_unavailable', message, { hint: signInHint(session.profile) })
}

/** Returns a session whose new tokens are in a pending file of this machine, but not in etcd as far as this machine knows. */
export async function findHeldSession(store: SharedStore): Promise<Session | undefined> {
  for (const { path, generation } of listPendingFiles(store.files)) {
    const session = (await readOutcome(store, path))?.session
    if (session?.refreshToken !== undefined && session.generation > generation) return session
  }
  return undefined
}

/** Reads the outcome in a pending file; undefined if the file holds no complete outcome. */
async function readOutcome({ access, files }: SharedStore, path: string): Promise<SharedSession | undefined> {
  try {
    return await unsealSession(files.disk.read(path)?.trimEnd() ?? '', access)
  } catch {
    return undefined
  }
}

/**
 * Writes the outcome of sending a refresh token to etcd, by compare-and-swap until it succeeds, the outcome is obsolete, or the
 * key is gone. New tokens, and the end of the session, replace any marker as long as etcd holds the same sign-in, not ended, at a
 * lower generation. Any other outcome replaces only the token's own marker; if that marker isn't there, the value is rewritten
 * unchanged, so that a late compare-and-swap of the marker fails.
 *
 * @returns the session in etcd; undefined if the key doesn't exist, in which case the tokens must be kept
 * @throws CliError as `swap` of etcd
 */
export async function deliverOutcome(
  store: SharedStore,
  attempt: RenewalAttempt,
  outcome: SharedSession,
  was: SharedSessionAtRevision,
  limitMs: number,
): Promise<SharedSessionAtRevision | undefined> {
  const wins = outcome.session.generation > attempt.generation
  let found: SharedSessionAtRevision | undefined = was
  while (found !== undefined && !isObsolete(attempt, found)) {
    const { session, marker, revision }: SharedSessionAtRevision = found
    const isOwn = marker?.writer === attempt.writer
    const next = wins ? outcome : { session, marker: isOwn ? outcome.marker : marker }
    const swapped = await store.swap(revision, next, limitMs)
    found = swapped.found
    if (swapped.isDone) break
  }
  return found
}

/**
 * Whether the outcome of sending a refresh token no longer matters: etcd holds another sign-in, an ended session, or a later
 * generation.
 */
function isObsolete({ id, generation }: RenewalAttempt, { session }: SharedSession): boolean {
  return session.id !== id || session.ended !== undefined || session.generation > generation
}

/**
 * Returns the error for a token whose outcome is unknown on every machine. Unless the sender itself reported the outcome as
 * unknown, the sender may hold the new token, and the hint names it. Machines are told apart by the pending file, since host names
 * may repeat.
 */
export function unknownOutcomeError(
  { files, io }: Pick<SharedStore, 'files' | 'io'>,
  { host, writer, unknown }: RenewalMarker,
  why?: string,
): CliError {
  const { profile } = files
  const sent = `the refresh token of profile ${profile} may have been sent by ${host}`
  const message = why === undefined ? sent : `${sent}: ${why}`
  const isElsewhere =
    unknown === 'said by another' && !listPendingFiles(files).some((file) => file.writer === writer)
  const status = addProfileFlag('mailclaim auth status', profile)
  const there = host === io.installation.host ? `another machine named ${host}` : host
  const hint = isElsewhere
    ? `${there} may hold the new token; sign in again unless it does, as this says there: ${status}`
    : signInHint(profile)
  return new CliError('refresh_interrupted', message, { hint })
}

/** Returns a random id in hex digits. */
export const createHexId = ({ random }: Io, bytes: number) => Buffer.from(random.bytes(bytes)).toString('hex')
