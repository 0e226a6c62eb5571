import { CliError } from '../../errors.ts'
import { withProfile } from '../../settings/profiles.ts'
import { catchError } from '../../storage/file-errors.ts'
import type { Io } from '../../terminal/io.ts'
import { signInHint } from '../messages.ts'
import { profileFiles, type Session } from '../session-file.ts'
import { createEtcd, type EtcdValue } from './etcd.ts'
import { listPending, type NotedToken, readLocalCopy } from './local.ts'
import { type Note, readSharedAccess, type SharedValue, seal, unseal } from './value.ts'

/** A value with the revision that it was read or written at. */
export interface SharedRevision extends SharedValue {
  readonly revision: string
}

/** How long what a command leaves behind is tried to be brought to etcd by the next one, in milliseconds. */
const OFFER_LIMIT_MS = 15_000
/** How long a command that can go on without etcd waits for it, in milliseconds. */
export const OPTIONAL_LIMIT_MS = 2000

/**
 * The session of one profile in etcd, and what this machine keeps of it.
 *
 * @param limitMs for all that etcd is asked together: a command may be able to go on without it
 * @throws CliError `store_not_configured`, exit 3.
 */
export function openShared(io: Io, limitMs?: number) {
  const access = readSharedAccess(io)
  const etcd = createEtcd(io, access, limitMs)
  const open = async (found: EtcdValue | undefined): Promise<SharedRevision | undefined> =>
    found && { ...(await unseal(found.text, access)), revision: found.revision }
  return {
    io,
    access,
    etcd,
    files: profileFiles(io, io.settings.profile.value),
    /** @returns undefined if there is no key. @throws as `read` of etcd and `unseal`. */
    read: async () => open(await etcd.read()),
    /** Swaps a value in. @returns it, or what is there instead. @throws as `swap` of etcd and `unseal`. */
    async swap(revision: string, next: SharedValue, limitMs: number) {
      const { isDone, found } = await etcd.swap(revision, await seal(next, access), limitMs)
      return { isDone, found: await open(found) }
    },
  }
}

export type SharedStore = ReturnType<typeof openShared>

/**
 * Reads the session, after the outcomes that earlier commands of this machine could not bring to etcd.
 *
 * @throws CliError as `read`; exit 4 if etcd was set back to before what this machine has seen
 */
export async function deliverAndRead(store: SharedStore): Promise<SharedRevision | undefined> {
  const { io, files } = store
  // Both before the value is read: another process of this machine may write a later state meanwhile.
  const known = readLocalCopy(files)
  const left = listPending(files)
  let found = await store.read()
  for (const file of left) {
    if (found === undefined) {
      await io.warn('this machine may keep a token of a session that is not in etcd (docs/fleet.md)')
      return undefined
    }
    const outcome = await readOutcome(store, file.path)
    if (outcome !== undefined) found = await deliverOutcome(store, file, outcome, found, OFFER_LIMIT_MS)
    // One without an outcome may be that of a renewal that is under way.
    const isOfNoUse = found !== undefined && (outcome !== undefined || isObsolete(file, found))
    if (isOfNoUse) catchError(() => files.disk.remove(file.path))
  }
  const session = found?.session
  if (session === undefined || session.ended !== undefined || known?.id !== session.id) return found
  if (known.generation <= session.generation) return found
  // A member or the whole cluster came back from a backup.
  const message = `etcd holds an older token of profile ${session.profile} than this machine has seen: it was set back`
  throw new CliError('store_unavailable', message, { hint: signInHint(session.profile) })
}

/** New tokens that this machine holds and etcd doesn't have, as far as is known here. */
export async function findHeldSession(store: SharedStore): Promise<Session | undefined> {
  for (const { path, generation } of listPending(store.files)) {
    const session = (await readOutcome(store, path))?.session
    if (session?.refreshToken !== undefined && session.generation > generation) return session
  }
  return undefined
}

/** What a file holds; undefined if it is only reserved, or damaged. */
async function readOutcome({ access, files }: SharedStore, path: string): Promise<SharedValue | undefined> {
  try {
    return await unseal(files.disk.read(path)?.trimEnd() ?? '', access)
  } catch {
    return undefined
  }
}

/**
 * Brings the outcome of a token to etcd, until it is acknowledged. New tokens and the end of a session win: as long as etcd holds the
 * same sign-in, not ended, at a lower generation, they are written whatever note is there. Another outcome replaces only the token's
 * own note; if that isn't there, the value is written as it is, so that a note which is still on its way comes too late.
 *
 * @returns what is there then; undefined if there is no key, and only a login or a logout may say that tokens are of no use
 * @throws as `swap` of etcd
 */
export async function deliverOutcome(
  store: SharedStore,
  token: NotedToken,
  outcome: SharedValue,
  was: SharedRevision,
  limitMs: number,
): Promise<SharedRevision | undefined> {
  const wins = outcome.session.generation > token.generation
  let found: SharedRevision | undefined = was
  while (found !== undefined && !isObsolete(token, found)) {
    const { session, note, revision }: SharedRevision = found
    const next = wins ? outcome : { session, note: note?.writer === token.writer ? outcome.note : note }
    const swapped = await store.swap(revision, next, limitMs)
    found = swapped.found
    if (swapped.isDone) break
  }
  return found
}

/** Whether what became of a token has no meaning anymore. */
function isObsolete({ id, generation }: NotedToken, { session }: SharedValue): boolean {
  return session.id !== id || session.ended !== undefined || session.generation > generation
}

/**
 * Nobody knows what became of the token, on any machine. Only if its sender hasn't said so itself, that may hold the next one: this
 * machine is the sender if it has the file for it, whatever name the sender has.
 */
export function unknownOutcomeError(
  { files, io }: Pick<SharedStore, 'files' | 'io'>,
  { host, writer, unknown }: Note,
  why?: string,
): CliError {
  const { profile } = files
  const sent = `the refresh token of profile ${profile} may have been sent by ${host}`
  const message = why === undefined ? sent : `${sent}: ${why}`
  const isElsewhere =
    unknown === 'said by another' && !listPending(files).some((file) => file.writer === writer)
  const status = withProfile('mailclaim auth status', profile)
  const there = host === io.program.host ? `another machine named ${host}` : host
  const hint = isElsewhere
    ? `${there} may hold the new token; sign in again unless it does, as this says there: ${status}`
    : signInHint(profile)
  return new CliError('refresh_interrupted', message, { hint })
}

/** A random id, in hex digits. */
export const createId = ({ random }: Io, bytes: number) => Buffer.from(random.bytes(bytes)).toString('hex')
