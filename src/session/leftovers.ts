import type { Context } from '../context.ts'
import type { Place } from '../credentials/store.ts'
import { CliError } from '../errors.ts'
import { readJson, removeDurable, writeDurable } from '../settings/files.ts'
import { Fields } from './fields.ts'
import type { SessionPaths } from './paths.ts'
import { removeCopies } from './secrets.ts'

/**
 * Places whose secret belongs to no session (any more): noted before a secret is put there, so that a process that dies
 * leaves nothing that nobody knows of.
 */
export async function readLeftovers(paths: SessionPaths): Promise<Place[]> {
  try {
    return (await readJson(paths.leftovers, parseLeftovers)) ?? []
  } catch (error) {
    if (error instanceof CliError) return []
    throw error
  }
}

function parseLeftovers(value: unknown): Place[] {
  return new Fields(value, 1).list('places', (place) => ({
    store: place.oneOf('store', 'keychain', 'file'),
    name: place.text('name'),
  }))
}

/** @throws CliError `cannot_write`, exit 1. */
export async function noteLeftovers(paths: SessionPaths, places: readonly Place[]): Promise<void> {
  if (places.length === 0) await removeDurable(paths.leftovers)
  else await writeDurable(paths.leftovers, `${JSON.stringify({ version: 1, places }, null, 2)}\n`)
}

/**
 * Removes what can be removed and keeps a note of the rest.
 *
 * @returns what may still hold a secret, with what stood in the way.
 */
export async function removeLeftoverSecrets(
  context: Context,
  paths: SessionPaths,
  places: readonly Place[],
): Promise<{ place: Place; why: string }[]> {
  const kept = await removeCopies(context, places)
  await noteLeftovers(
    paths,
    kept.map(({ place }) => place),
  )
  return kept
}
