import { lstatSync, readdirSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { seal, unseal } from '../../credentials/etcd/sealed.ts'
import { CliError } from '../../errors.ts'
import { removeDurable, writeDurable } from '../../storage/durable-file.ts'
import { POSIX } from '../../storage/file-errors.ts'
import { pendingFormat, sharedSessionFormat } from '../../storage/file-formats.ts'
import { readJson, readJsonSync } from '../../storage/json-file.ts'
import { ownUser } from '../../storage/private-directory.ts'
import { sanitizeLine } from '../../terminal/sanitize.ts'
import { ensureProfileDirectory } from '../paths.ts'
import {
  isValue,
  type NewContents,
  type SharedContents,
  type SharedContext,
  type SharedValue,
  type SharedVault,
} from './vault.ts'

/** A write that settles a journal entry and that etcd has not acknowledged. */
export interface Pending {
  /** The journal entry that it settles. */
  readonly writer: string
  /** The revision that the entry was written over. */
  readonly revision: string
  /** The cluster that it is for; null if that isn't known. */
  readonly cluster: string | null
  readonly next: NewContents
}

const NAME = /^pending\.(?<profile>.+)\.[0-9a-f]{32}\.json$/

/**
 * Keeps a write on this machine, encrypted, in a file that only its user can read.
 *
 * @returns the path; undefined if no directory takes it.
 */
export async function keepPending(
  context: SharedContext,
  vault: SharedVault,
  { writer, revision, cluster, next }: Pending,
): Promise<string | undefined> {
  const { key } = vault.access
  const contents: SharedContents = {
    ...next,
    journal: next.journal === null || 'writer' in next.journal ? next.journal : null,
    writer,
    host: context.program.host || 'unknown',
    writtenAt: context.clock.now(),
    cluster: 'none',
    writes: '0',
  }
  const sealed = await seal(sharedSessionFormat.text(contents), placeOf(key), vault.keys)
  await ensureProfileDirectory(context, vault.paths).catch(() => undefined)
  for (const directory of directoriesOf(vault)) {
    const path = join(directory, `pending.${vault.paths.profile}.${writer}.json`)
    try {
      writeDurable(path, pendingFormat.text({ key, cluster, writer, revision, sealed }))
      return path
    } catch (error) {
      if (!(error instanceof CliError)) throw error
    }
  }
  return undefined
}

/**
 * The files of writes that this machine keeps for the key of a profile. Other prefixes and other clusters may have a profile
 * of the same name, and theirs may be the only copy of a refresh token.
 *
 * @param cluster only those for this cluster, and those that don't say.
 */
export function pendingFiles(vault: Pick<SharedVault, 'paths' | 'access'>, cluster?: string): string[] {
  return directoriesOf(vault).flatMap((directory) =>
    namesIn(directory)
      .filter((name) => NAME.exec(name)?.groups?.['profile'] === vault.paths.profile)
      .map((name) => join(directory, name))
      .filter((path) => isOwn(path) && isFor(path, vault.access.key, cluster)),
  )
}

/** What can't be read is listed, but neither offered nor removed. */
function isFor(path: string, key: string, cluster: string | undefined): boolean {
  try {
    const found = readJsonSync(path, pendingFormat.parse)
    if (found?.key !== key) return false
    return cluster === undefined || found.cluster === null || found.cluster === cluster
  } catch (error) {
    if (error instanceof CliError) return cluster === undefined
    throw error
  }
}

/**
 * Offers the writes that this machine keeps: each one that still settles what it was made for is put into etcd.
 *
 * @returns the value in etcd afterwards, or what was read.
 * @throws CliError as `SharedVault.replace`.
 */
export async function offerPending(
  context: SharedContext,
  vault: SharedVault,
  found: SharedValue,
): Promise<SharedValue> {
  let current = found
  for (const path of pendingFiles(vault, found.cluster)) {
    const pending = await readPending(vault, path)
    if (pending === undefined) continue
    const { next, writer, revision } = pending
    const isSameSession = current.contents.record.id === next.record.id
    const isNewer = isSameSession && next.secret.generation > current.contents.secret.generation
    const isSettling = isSameSession && current.contents.journal?.writer === writer
    // The journal entry may still arrive, as long as nothing else has been written.
    if (!isNewer && !isSettling && current.revision === revision) continue
    if (isNewer || isSettling) {
      const replaced = await vault.replace(current, next, vault.newWriter())
      // The next command tries again.
      if (replaced.kind === 'lost') return replaced.current ?? current
      current = replaced.value
      if (isNewer)
        await context.stderr.write(
          `note: ${sanitizeLine(`the refresh token that was kept on this machine (${path}) is in etcd now`)}\n`,
        )
    }
    removeDurable(path)
  }
  return current
}

async function readPending(vault: SharedVault, path: string): Promise<Pending | undefined> {
  const { key } = vault.access
  const found = await readJson(path, pendingFormat.parse)
  if (found === undefined || found.key !== key) return undefined
  const contents = sharedSessionFormat.parse(JSON.parse(await unseal(found.sealed, placeOf(key), vault.keys)))
  return { writer: found.writer, revision: found.revision, cluster: found.cluster, next: contents }
}

/** Not the key itself: the file's text must not be of use in etcd. */
const placeOf = (key: string) => `${key} (pending)`

function directoriesOf({ paths }: Pick<SharedVault, 'paths'>): string[] {
  return [paths.directory, ...paths.fallbackDirectories, tmpdir()]
}

/** The directory for temporary files belongs to everybody. */
function isOwn(path: string): boolean {
  try {
    return !POSIX || lstatSync(path).uid === ownUser()
  } catch {
    return false
  }
}

function namesIn(directory: string): string[] {
  try {
    return readdirSync(directory)
  } catch {
    return []
  }
}

/** Whether a found value is one, for callers that only want to offer. */
export async function readAndOffer(context: SharedContext, vault: SharedVault) {
  const found = await vault.read()
  return isValue(found) ? offerPending(context, vault, found) : found
}
