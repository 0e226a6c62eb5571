import { randomBytes } from 'node:crypto'
import type { CliError } from '../../errors.ts'
import { withProfile } from '../../settings/profiles.ts'
import { quietly } from '../../storage/file-errors.ts'
import type { Io } from '../../terminal/io.ts'
import { SignedOut, signInHint } from '../messages.ts'
import { type ProfileFiles, profileFiles } from '../session-file.ts'
import { Etcd, type EtcdValue, type Swapped } from './etcd.ts'
import { type PendingFile, pendingFiles, readLocal } from './local.ts'
import { type Note, type SharedAccess, type SharedValue, seal, sharedAccess, unseal } from './value.ts'

/** A value with the revision that it was read or written at. */
export interface SharedRevision extends SharedValue {
  readonly revision: string
  /** As it is in etcd. */
  readonly sealed: string
}

/** How long a read may take, and one that nobody waits for long, in milliseconds. */
export const READ_LIMIT_MS = 12_000
/** How long what a command leaves behind is tried to be brought to etcd by the next one. */
const OFFER_LIMIT_MS = 15_000

/** The session of one profile in etcd, and what this machine keeps of it: all in one place, so that it can be tested whole. */
export interface SharedStore {
  readonly io: Io
  readonly access: SharedAccess
  readonly etcd: Etcd
  readonly files: ProfileFiles
}

/** @throws CliError `store_not_configured`, exit 3. */
export function openShared(io: Io): SharedStore {
  const access = sharedAccess(io)
  return { io, access, etcd: new Etcd(io, access), files: profileFiles(io, io.settings.profile.value) }
}

/** @returns undefined if there is no key. @throws CliError `store_unavailable`, exit 7 or 4. */
export async function readShared(
  store: SharedStore,
  limitMs = READ_LIMIT_MS,
): Promise<SharedRevision | undefined> {
  return open(store, await store.etcd.read(limitMs))
}

async function open(
  { access }: SharedStore,
  found: EtcdValue | undefined,
): Promise<SharedRevision | undefined> {
  if (found === undefined) return undefined
  const { text: sealed, revision } = found
  return { ...(await unseal(sealed, access)), revision, sealed }
}

/** Swaps a value in. @returns it, or what is there instead. @throws as `Etcd.swap`. */
export async function swapShared(
  store: SharedStore,
  revision: string,
  next: string | SharedValue,
  limitMs: number,
): Promise<Swapped<SharedRevision>> {
  const sealed = typeof next === 'string' ? next : await seal(next, store.access)
  const { isDone, found } = await store.etcd.swap(revision, sealed, limitMs)
  return { isDone, found: await open(store, found) }
}

/** A write that etcd has not acknowledged, in a file of this machine that only its user can read. */
export type Pending =
  /** The value with the new tokens, sealed. */
  | { readonly kind: 'tokens'; readonly sealed: string }
  /** A note that may still arrive although its token was never sent; `revision` is what it was to replace. */
  | { readonly kind: 'cancel'; readonly revision: string }

/** What a file holds; undefined if it is only reserved, or damaged. */
function readPending({ files: { disk } }: SharedStore, { path }: PendingFile): Pending | undefined {
  try {
    return JSON.parse(disk.read(path) ?? '') as Pending
  } catch {
    return undefined
  }
}

/**
 * Reads the session, after what earlier commands of this machine could not bring to etcd was offered.
 *
 * @throws CliError as `readShared`; exit 4 if etcd was set back to before what this machine has seen
 */
export async function readAndOffer(store: SharedStore): Promise<SharedRevision | undefined> {
  // Both before the value is read: another process of this machine may write a later state meanwhile.
  const known = readLocal(store.files)
  const files = pendingFiles(store.files)
  let found = await readShared(store)
  for (const file of files) {
    if (found === undefined) {
      await store.io.warn('this machine keeps a token of a session that is not in etcd (docs/fleet.md)')
      break
    }
    found = await offer(store, file, found)
  }
  const { session } = found ?? {}
  const isEarlier = known?.id === session?.id && (known?.generation ?? 0) > (session?.generation ?? 0)
  if (session !== undefined && session.ended === undefined && isEarlier) throw restored(session.profile)
  return found
}

/** A member or the whole cluster came back from a backup. */
function restored(profile: string): CliError {
  const message = `etcd holds an older token of profile ${profile} than this machine has seen: it was set back`
  return new SignedOut('store_unavailable', 'store_unavailable', message, signInHint(profile))
}

/** Nobody knows what became of the token, on any machine. */
export function interruptedAt(
  profile: string,
  { host, unknown }: Note,
  { program }: Pick<Io, 'program'>,
  why?: string,
): CliError {
  const sent = `the refresh token of profile ${profile} may have been sent by ${host}`
  const message = why === undefined ? sent : `${sent}: ${why}`
  const isElsewhere = unknown === 'said by another' && host !== program.host
  if (!isElsewhere) return new SignedOut('interrupted', 'refresh_interrupted', message, signInHint(profile))
  const refresh = withProfile('mailclaim auth refresh', profile)
  const hint = `run ${refresh} on ${host}, which may hold the new token; else sign in again`
  return new SignedOut('interrupted', 'refresh_interrupted', message, hint)
}

/** Brings one pending write to etcd. @returns what is there then. */
async function offer(
  store: SharedStore,
  file: PendingFile,
  was: SharedRevision,
): Promise<SharedRevision | undefined> {
  const { disk } = store.files
  let found: SharedRevision | undefined = was
  for (;;) {
    const { session, note, revision, sealed } = found
    const isOver =
      session.id !== file.id || session.ended !== undefined || session.generation > file.generation
    const pending = isOver ? undefined : readPending(store, file)
    let next: string | SharedValue | undefined
    if (pending?.kind === 'tokens') next = pending.sealed
    else if (pending?.kind === 'cancel' && note?.writer === file.writer)
      next = { session, note: withdrawn(note) }
    // The same value once more: what comes late then fails.
    else if (pending?.kind === 'cancel' && revision === pending.revision) next = sealed
    if (next === undefined) {
      // A file that is only reserved may be that of a renewal that is under way.
      if (isOver || pending !== undefined) quietly(() => disk.remove(file.path))
      return found
    }
    const swapped = await swapShared(store, revision, next, OFFER_LIMIT_MS)
    found = swapped.found
    if (swapped.isDone) {
      quietly(() => disk.remove(file.path))
      return found
    }
    if (found === undefined) return undefined
  }
}

/** What stays of a note whose token was not sent, or was refused. */
export function withdrawn(note: SharedValue['note']): SharedValue['note'] {
  if (note === null || !note.isRetry) return null
  const { isRetry: _answered, ...earlier } = note
  return { ...earlier, unknown: 'said by its sender' }
}

export const newId = (bytes: number) => randomBytes(bytes).toString('hex')
