import type { Context } from '../context.ts'
import { lockedOrMissing, proveKeychain } from '../credentials/keychain.ts'
import {
  filePlace,
  keychainPlace,
  type Place,
  prepareSecret,
  readSecret,
  removeSecret,
  type Secret,
  spillPlace,
  writeSecret,
} from '../credentials/store.ts'
import { CliError } from '../errors.ts'
import type { PreparedFile } from '../settings/files.ts'
import { secretMissing, staleCopy } from './messages.ts'
import type { SessionPaths } from './paths.ts'
import type { OAuthRecord, SessionRecord } from './record.ts'

/** Where the secret of a session belongs. */
export function placeOf(paths: SessionPaths, record: SessionRecord): Place {
  return record.store === 'keychain'
    ? keychainPlace(record.profile, record.issuer, record.id)
    : filePlace(paths.directory, record.id)
}

/** Every place where a copy of it can be. */
export function placesOf(paths: SessionPaths, record: SessionRecord): Place[] {
  const place = placeOf(paths, record)
  return place.store === 'keychain' ? [spillPlace(paths.directory, record.id), place] : [place]
}

/**
 * Reads the newest copy of a session's secret. A spilled copy does for a keychain that is locked again, since the
 * journal guards the moment in which it could be outdated.
 *
 * @throws CliError exit 4: the store cannot be reached, or holds nothing, or only an older secret than was stored.
 */
export async function readNewest(
  context: Context,
  paths: SessionPaths,
  record: SessionRecord,
): Promise<Secret> {
  const copies: Secret[] = []
  let failure: unknown
  let fromKeychain = false
  for (const place of placesOf(paths, record)) {
    try {
      const secret = await readSecret(context, place)
      if (secret !== undefined) copies.push(secret)
      fromKeychain ||= secret !== undefined && place.store === 'keychain'
    } catch (error) {
      if (!(error instanceof CliError)) throw error
      failure ??= error
    }
  }
  const newest = copies.sort((a, b) => b.generation - a.generation)[0]
  const known = record.kind === 'oauth' ? record.generation : 1
  if (newest !== undefined && newest.generation >= known) return newest
  if (failure !== undefined) throw failure
  const place = placeOf(paths, record)
  // An old copy beside a keychain that gives none is what spilled once; the newer one is in the keychain.
  if (newest !== undefined && (place.store === 'file' || fromKeychain)) throw staleCopy(record)
  throw place.store === 'keychain' ? lockedOrMissing(place.name) : secretMissing(record, place.name)
}

/** Takes the room on the disk that a new secret needs if it has to go into a file, now or when the keychain refuses. */
export async function reserveRoom(paths: SessionPaths, record: OAuthRecord): Promise<PreparedFile> {
  return prepareSecret(
    record.store === 'keychain'
      ? spillPlace(paths.directory, record.id)
      : filePlace(paths.directory, record.id),
  )
}

/**
 * Stores the successor of a refresh token; a keychain that refuses it now makes it go into the reserved file.
 *
 * @returns why the keychain did not take it; undefined where all is well.
 * @throws whatever stands in the way of the last place there is.
 */
export async function storeSuccessor(
  context: Context,
  paths: SessionPaths,
  record: OAuthRecord,
  secret: Secret,
  room: PreparedFile,
): Promise<string | undefined> {
  const place = placeOf(paths, record)
  if (place.store === 'file') {
    await writeSecret(context, place, secret, room)
    return undefined
  }
  const spill = spillPlace(paths.directory, record.id)
  try {
    await writeSecret(context, place, secret)
  } catch (error) {
    if (!(error instanceof CliError)) throw error
    await writeSecret(context, spill, secret, room)
    return error.message
  }
  await room.discard()
  // What spilled at an earlier refresh is outdated from here on, and its number says so if it stays.
  await removeSecret(context, spill).catch(() => undefined)
  return undefined
}

/**
 * Removes every copy of a session's secret.
 *
 * @returns the places that may still hold one, with what stood in the way.
 */
export async function removeCopies(
  context: Context,
  places: readonly Place[],
): Promise<{ place: Place; why: string }[]> {
  const kept: { place: Place; why: string }[] = []
  for (const place of places) {
    try {
      const removed = await removeSecret(context, place)
      // A locked keychain says "not there" of an item that it holds, but it cannot pass this.
      if (!removed && place.store === 'keychain') await proveKeychain(context, place.name)
    } catch (error) {
      if (!(error instanceof CliError)) throw error
      kept.push({ place, why: error.message })
    }
  }
  return kept
}
