import { randomBytes } from 'node:crypto'
import { removeQuietly } from '../../storage/atomic-file.ts'
import { cannotWrite } from '../../storage/file-errors.ts'
import type { Io } from '../../terminal/io.ts'
import { type ProfileFiles, profileFiles, type Session } from '../session-file.ts'
import { Etcd, type EtcdValue } from './etcd.ts'
import { type PendingFile, pendingFiles, pendingPath, readLocal } from './local.ts'
import { restored } from './messages.ts'
import { type SharedAccess, type SharedValue, seal, sharedAccess, unseal } from './value.ts'

/** A value with the revision that it was read or written at. */
export interface Found extends SharedValue {
  readonly revision: string
  /** As it is in etcd. */
  readonly sealed: string
}

/** How long a read may take, and one that nobody waits for long, in milliseconds. */
export const READ_LIMIT_MS = 12_000
/** How long what a command leaves behind is tried to be brought to etcd by the next one. */
const OFFER_LIMIT_MS = 15_000
/** Enough for a sealed value with any refresh token. */
const RESERVED_BYTES = 32 * 1024

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
  return { io, access, etcd: new Etcd(io, access.etcd), files: profileFiles(io, io.settings.profile.value) }
}

/** @returns undefined if there is no key. @throws CliError `store_unavailable`, exit 7 or 4. */
export async function readShared(store: SharedStore, limitMs = READ_LIMIT_MS): Promise<Found | undefined> {
  return open(store, await store.etcd.read(store.access.key, limitMs))
}

async function open({ access }: SharedStore, found: EtcdValue | undefined): Promise<Found | undefined> {
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
): Promise<{ readonly isDone: boolean; readonly found: Found | undefined }> {
  const sealed = typeof next === 'string' ? next : await seal(next, store.access)
  const swapped = await store.etcd.swap(store.access.key, revision, sealed, limitMs)
  if (!swapped.isDone) return { isDone: false, found: await open(store, swapped.found) }
  return { isDone: true, found: await open(store, { text: sealed, revision: swapped.revision }) }
}

/** A write that etcd has not acknowledged, in a file of this machine that only its user can read. */
type Pending =
  /** The value with the new tokens, sealed. */
  | { readonly kind: 'tokens'; readonly sealed: string }
  /** A note that may still arrive although its token was never sent; `revision` is what it was to replace. */
  | { readonly kind: 'cancel'; readonly revision: string }

/** A file whose space is taken from the disk. */
export interface Reserved {
  /** Writes what it is for, and flushes it. @throws CliError `cannot_write`, exit 1 */
  fill(pending: Pending): void
  /** Never throws. */
  remove(): void
}

/** Takes the space for a pending write. @throws CliError `cannot_write`, exit 1. */
export function reservePending(
  { files }: SharedStore,
  { id, generation }: Session,
  writer: string,
): Reserved {
  const { disk, directory } = files
  const path = pendingPath(files, { id, generation, writer })
  const put = (fd: number, text: string) => {
    disk.write(fd, text.padEnd(RESERVED_BYTES))
    disk.sync(fd)
  }
  try {
    const fd = disk.create(path)
    try {
      put(fd, '')
      disk.syncDirectory(directory)
    } finally {
      disk.close(fd)
    }
  } catch (error) {
    removeQuietly(path, disk)
    throw cannotWrite(path, error)
  }
  return {
    fill(pending) {
      try {
        const fd = disk.open(path)
        try {
          put(fd, JSON.stringify(pending))
        } finally {
          disk.close(fd)
        }
      } catch (error) {
        throw cannotWrite(path, error)
      }
    },
    remove: () => removeQuietly(path, disk),
  }
}

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
export async function readAndOffer(store: SharedStore): Promise<Found | undefined> {
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

/** Brings one pending write to etcd. @returns what is there then. */
async function offer(store: SharedStore, file: PendingFile, was: Found): Promise<Found | undefined> {
  const { disk } = store.files
  let found: Found | undefined = was
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
      if (isOver || pending !== undefined) removeQuietly(file.path, disk)
      return found
    }
    const swapped = await swapShared(store, revision, next, OFFER_LIMIT_MS)
    found = swapped.found
    if (swapped.isDone) {
      removeQuietly(file.path, disk)
      return found
    }
    if (found === undefined) return undefined
  }
}

/** What stays of a note whose token was not sent, or was refused. */
export function withdrawn(note: SharedValue['note']): SharedValue['note'] {
  if (note === null || !note.isRetry) return null
  const { isRetry: _answered, ...earlier } = note
  return { ...earlier, unknown: true }
}

export const newId = (bytes: number) => randomBytes(bytes).toString('hex')
