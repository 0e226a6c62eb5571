import type { Context } from '../context.ts'
import { type KeptSecret, removeSecrets, secretFiles } from '../credentials/secret-copies.ts'
import type { Place } from '../credentials/store.ts'
import { CliError } from '../errors.ts'
import { removeDurable, writeDurable } from '../storage/durable-file.ts'
import { supersededFormat } from '../storage/file-formats.ts'
import { readJson } from '../storage/json-file.ts'
import type { SessionPaths } from './paths.ts'

/**
 * Every keychain item of the profile, that of the session included: noted before a secret is put there, so that a process
 * that dies, or a record that is damaged, leaves nothing that nobody knows of. A keychain cannot be searched; files need
 * no note.
 */
export async function readSuperseded(paths: SessionPaths): Promise<Place[]> {
  try {
    const noted = await readJson(paths.superseded, supersededFormat.parse)
    // Only items of this profile: whatever else the file names is none of our making.
    return (noted?.keychain ?? [])
      .filter(({ account }) => account.startsWith(`${paths.profile} `) && / [0-9a-f]{12}$/.test(account))
      .map(({ account }) => ({ store: 'keychain', name: account }))
  } catch (error) {
    if (error instanceof CliError) return []
    throw error
  }
}

/** @throws CliError `cannot_write`, exit 1. */
export function noteSuperseded(paths: SessionPaths, places: readonly Place[]): void {
  const accounts = new Set(places.flatMap(({ store, name }) => (store === 'keychain' ? [name] : [])))
  if (accounts.size === 0) {
    removeDurable(paths.superseded)
    return
  }
  const keychain = [...accounts].map((account) => ({ account }))
  writeDurable(paths.superseded, supersededFormat.text({ keychain }))
}

/**
 * Removes every secret of the profile but that of the session it goes on with, and keeps a note of the keychain items
 * that stay.
 *
 * @param keychain the items that are known.
 * @param current the sign-in that stays; undefined removes them all.
 * @returns what may still hold a secret, with what stood in the way.
 */
export async function removeSuperseded(
  context: Context,
  paths: SessionPaths,
  keychain: readonly Place[],
  current: string | undefined,
): Promise<KeptSecret[]> {
  const isCurrent = ({ name }: Place) => current !== undefined && name.endsWith(` ${current}`)
  const files = secretFiles(paths).filter(({ session }) => session !== current)
  const others = new Map(keychain.filter((place) => !isCurrent(place)).map((place) => [place.name, place]))
  const kept = await removeSecrets(context, [...files, ...others.values()])
  noteSuperseded(paths, [...kept.map(({ place }) => place), ...keychain.filter(isCurrent)])
  return kept
}
