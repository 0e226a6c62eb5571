import { join } from 'node:path'
import type { Context } from '../context.ts'
import { lockedOrMissing, proveKeychain } from '../credentials/keychain.ts'
import {
  type Place,
  readSecret,
  removeSecret,
  type Secret,
  secretText,
  writeSecret,
} from '../credentials/store.ts'
import { CliError } from '../errors.ts'
import {
  isProcessAlive,
  moveDurable,
  namesIn,
  type PreallocatedFile,
  preallocate,
  uniqueSuffix,
  writeDurable,
} from '../settings/files.ts'
import { secretMissing, staleCopy } from './messages.ts'
import type { SessionPaths } from './paths.ts'
import type { OAuthRecord, SessionRecord } from './record.ts'

/**
 * A file in the profile's directory that holds a secret, or that a process made to take one. All of them are read, and
 * the highest generation counts: a new token is safe as soon as it is in any of them.
 */
const SECRET_FILE = /^secret\.(?<session>[0-9a-f]{12})(\.(?<pid>\d+)-[0-9a-f]{12})?\.json$/

/** Space for any refresh token with its wrapping; taken from the disk before a token is sent. */
const RESERVED_BYTES = 8 * 1024

/** Where the secret of a session belongs. A keychain item names the sign-in: state directories share one keychain. */
export function placeOf(paths: SessionPaths, record: SessionRecord): Place {
  return record.store === 'keychain'
    ? { store: 'keychain', name: `${record.profile} ${record.issuer ?? 'api-key'} ${record.id}` }
    : { store: 'file', name: fileIn(paths, record) }
}

function fileIn(paths: SessionPaths, record: SessionRecord): string {
  return join(paths.directory, `secret.${record.id}.json`)
}

export interface SecretFile extends Place {
  /** The sign-in that it belongs to. */
  readonly session: string
  /** The process that made it for a token to come. */
  readonly pid?: number
}

/** Every file that may hold a secret of the profile. @throws CliError `directory_unusable`, exit 1. */
export function secretFiles(paths: SessionPaths): SecretFile[] {
  const own = namesIn(paths.directory).flatMap((name) => {
    const { session = '', pid } = SECRET_FILE.exec(name)?.groups ?? {}
    return session === ''
      ? []
      : [{ directory: paths.directory, name, session, ...(pid && { pid: Number(pid) }) }]
  })
  const prefix = `secret.${paths.profile}.`
  const others = paths.elsewhere.flatMap((directory) =>
    readableNames(directory).flatMap((name) => {
      const [, session] = name.startsWith(prefix)
        ? (/^([0-9a-f]{12})\.json$/.exec(name.slice(prefix.length)) ?? [])
        : []
      return session === undefined ? [] : [{ directory, name, session }]
    }),
  )
  return [...own, ...others].map(({ directory, name, ...rest }) => ({
    store: 'file' as const,
    name: join(directory, name),
    ...rest,
  }))
}

/** Hardly ever is anything of ours in such a directory, so one that cannot be read stops nobody. */
function readableNames(directory: string): string[] {
  try {
    return namesIn(directory)
  } catch {
    return []
  }
}

/** Every place where a copy of a session's secret can be. @throws CliError `directory_unusable`, exit 1. */
export function placesOf(paths: SessionPaths, record: SessionRecord): Place[] {
  const files = secretFiles(paths).filter(({ session }) => session === record.id)
  return record.store === 'keychain' ? [...files, placeOf(paths, record)] : files
}

export interface NewestSecret extends Secret {
  /** Whether it is where it belongs; otherwise an older one may be there, which must not be sent. */
  readonly inPlace: boolean
}

/**
 * Reads the newest copy of a session's secret. A copy in a file does for a keychain that is locked again.
 *
 * @param known the highest generation that this machine is known to have had.
 * @throws CliError exit 4: the store cannot be reached, or holds nothing, or only an older secret than was stored.
 */
export async function readNewest(
  context: Context,
  paths: SessionPaths,
  record: SessionRecord,
  known = 1,
): Promise<NewestSecret> {
  const home = placeOf(paths, record)
  const copies: NewestSecret[] = []
  let failure: unknown
  for (const place of [home, ...placesOf(paths, record).filter(({ name }) => name !== home.name)]) {
    try {
      const secret = await readSecret(context, place)
      if (secret !== undefined) copies.push({ ...secret, inPlace: place === home })
    } catch (error) {
      if (!(error instanceof CliError)) throw error
      // A file that was made to take a secret, and took none, is no failure.
      if (place === home) failure = error
    }
  }
  const newest = copies.sort((a, b) => b.generation - a.generation)[0]
  if (newest !== undefined && newest.generation >= known) return newest
  if (failure !== undefined) throw failure
  // An old copy beside a keychain that gives none was kept when the keychain refused; the newer one is in the keychain.
  if (newest !== undefined && (home.store === 'file' || copies.some(({ inPlace }) => inPlace)))
    throw staleCopy(record)
  throw home.store === 'keychain' ? lockedOrMissing(home.name) : secretMissing(record, home.name)
}

/**
 * Takes the space on the disk that a new secret needs if it has to go into a file, now or when the keychain refuses.
 *
 * @throws CliError `cannot_write`, exit 1.
 */
export function reserveSpace(paths: SessionPaths, record: OAuthRecord): PreallocatedFile {
  return preallocate(join(paths.directory, `secret.${record.id}.${uniqueSuffix()}.json`), RESERVED_BYTES)
}

export interface StoredSecret {
  readonly place: Place
  /** Why it is not where it belongs; undefined where it is. */
  readonly problem: string | undefined
}

/**
 * Stores the successor of a refresh token where it belongs, or else in any directory of ours that takes it: the service
 * has no other copy to give.
 *
 * @throws CliError of the first place, where no place takes it.
 */
export async function storeSuccessor(
  context: Context,
  paths: SessionPaths,
  record: OAuthRecord,
  secret: Secret,
  reserved: PreallocatedFile,
): Promise<StoredSecret> {
  const home = placeOf(paths, record)
  let failure: CliError | undefined
  if (home.store === 'keychain') {
    try {
      await writeSecret(context, home, secret)
      reserved.discard()
      return { place: home, problem: undefined }
    } catch (error) {
      failure = expected(error)
    }
  }
  const text = secretText(secret)
  const write = (path: string) => {
    writeDurable(path, text)
    return path
  }
  const ways = [
    () => {
      reserved.write(text)
      return reserved.path
    },
    () => write(fileIn(paths, record)),
    ...paths.elsewhere.map(
      (directory) => () => write(join(directory, `secret.${record.profile}.${record.id}.json`)),
    ),
  ]
  let path: string | undefined
  for (const way of ways) {
    try {
      path = way()
      break
    } catch (error) {
      failure ??= expected(error)
    }
  }
  // Written, if not known to be on the disk: that is still a copy that can be read.
  path ??= await readableCopy(context, paths, record, secret)
  if (path === undefined) throw failure
  if (home.store === 'file' && path === reserved.path) {
    try {
      moveDurable(path, home.name)
      path = home.name
    } catch (error) {
      failure ??= expected(error)
    }
  }
  const inPlace = home.store === 'file' && path === home.name
  return inPlace
    ? { place: home, problem: undefined }
    : { place: { store: 'file', name: path }, problem: failure?.message ?? '' }
}

async function readableCopy(
  context: Context,
  paths: SessionPaths,
  record: OAuthRecord,
  secret: Secret,
): Promise<string | undefined> {
  for (const file of secretFiles(paths).filter(({ session }) => session === record.id)) {
    const found = await readSecret(context, file).catch(() => undefined)
    if (found?.value === secret.value) return file.name
  }
  return undefined
}

/** Removes the files that held, or were made for, a secret of the session, now that it is where it belongs. */
export async function removeOutdatedCopies(
  context: Context,
  paths: SessionPaths,
  record: OAuthRecord,
): Promise<void> {
  const home = placeOf(paths, record)
  for (const file of secretFiles(paths)) {
    if (file.session !== record.id || file.name === home.name) continue
    if (file.pid !== undefined && file.pid !== process.pid && isProcessAlive(file.pid)) continue
    await removeSecret(context, file).catch(() => undefined)
  }
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
  for (const { store, name } of places) {
    const place = { store, name }
    try {
      const removed = await removeSecret(context, place)
      // A locked keychain says "not there" of an item that it holds, but it cannot pass this.
      if (!removed && place.store === 'keychain') await proveKeychain(context, place.name)
    } catch (error) {
      kept.push({ place, why: expected(error).message })
    }
  }
  return kept
}

function expected(error: unknown): CliError {
  if (error instanceof CliError) return error
  throw error
}
