import type { Context } from '../context.ts'
import type { ProvingContext } from '../credentials/keychain.ts'
import { removeGuard } from '../credentials/keychain-guard.ts'
import { type KeptSecret, removeSecrets, secretFiles } from '../credentials/secret-copies.ts'
import type { SecretLocation } from '../credentials/store.ts'
import { CliError } from '../errors.ts'
import { removeDurable, writeDurable } from '../storage/durable-file.ts'
import { supersededFormat } from '../storage/file-formats.ts'
import { readJson } from '../storage/json-file.ts'
import type { SessionPaths } from './paths.ts'

/**
 * Every keychain item of the profile, including that of its session. An item is noted before its secret is stored, so that
 * it can be removed even if the process dies or the session record is damaged. A keychain cannot be searched; files can,
 * and need no note.
 */
export async function readSuperseded(paths: SessionPaths): Promise<SecretLocation[]> {
  try {
    const noted = await readJson(paths.superseded, supersededFormat.parse)
    // Never another profile's item, whatever somebody wrote into the file.
    return (noted?.keychain ?? [])
      .filter(({ account }) => account.startsWith(`${paths.profile} `) && / [0-9a-f]{12}$/.test(account))
      .map(({ account }) => ({ store: 'keychain', name: account }))
  } catch (error) {
    if (error instanceof CliError) return []
    throw error
  }
}

/** @throws CliError `cannot_write`, exit 1. */
export function noteSuperseded(paths: SessionPaths, locations: readonly SecretLocation[]): void {
  const accounts = new Set(locations.flatMap(({ store, name }) => (store === 'keychain' ? [name] : [])))
  if (accounts.size === 0) {
    removeDurable(paths.superseded)
    return
  }
  const keychain = [...accounts].map((account) => ({ account }))
  writeDurable(paths.superseded, supersededFormat.text({ keychain }))
}

/**
 * Removes every secret of the profile except that of its current session, and keeps a note of the keychain items that
 * couldn't be removed. Their journals stay too: another state directory may hold the same item, and must not send a
 * token that is in flight. The files go first, because a keychain may take its time.
 *
 * @param keychain the known items, which are noted.
 * @param current the sign-in whose secret stays; undefined removes them all.
 * @returns what may still hold a secret.
 */
export async function removeSuperseded(
  context: ProvingContext & Pick<Context, 'directories'>,
  paths: SessionPaths,
  keychain: readonly SecretLocation[],
  current: string | undefined,
): Promise<KeptSecret[]> {
  const isCurrent = ({ name }: SecretLocation) => current !== undefined && name.endsWith(` ${current}`)
  const files = secretFiles(paths).filter(({ session }) => session !== current)
  const others = new Map(keychain.filter((item) => !isCurrent(item)).map((item) => [item.name, item]))
  const kept = await removeSecrets(context, [...files, ...others.values()])
  try {
    noteSuperseded(paths, [...kept.map(({ location }) => location), ...keychain.filter(isCurrent)])
  } catch (error) {
    if (!(error instanceof CliError)) throw error
    kept.push({ location: { store: 'file', name: paths.superseded }, why: error.message })
  }
  const stillThere = new Set(kept.map(({ location }) => location.name))
  for (const item of others.values()) if (!stillThere.has(item.name)) removeGuard(context, item)
  return kept
}
