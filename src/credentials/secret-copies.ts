import { constants, fstatSync, openSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { CliError, Exit } from '../errors.ts'
import { loginCommand } from '../settings/login-command.ts'
import {
  isProcessAlive,
  type PreallocatedFile,
  preallocate,
  uniqueSuffix,
  writeDurable,
} from '../storage/durable-file.ts'
import { closeQuietly, codeOf } from '../storage/file-errors.ts'
import { secretFormat } from '../storage/file-formats.ts'
import { namesIn } from '../storage/private-directory.ts'
import { type KeychainContext, lockedOrMissing, type ProvingContext, proveKeychain } from './keychain.ts'
import { readSecret, removeSecret, type Secret, type SecretLocation, writeSecret } from './store.ts'

/** Where the secret of one sign-in belongs, and where fallback copies of it may be. */
export interface SecretStorage {
  readonly profile: string
  /** The sign-in: 12 hex digits. */
  readonly session: string
  /** Where the secret belongs. */
  readonly location: SecretLocation
  /** The profile's directory. */
  readonly directory: string
  /** Directories for a new secret that can't be stored in the profile's. */
  readonly fallbackDirectories: readonly string[]
}

/**
 * A file in the profile's directory that holds a secret, or that a process preallocated for one. Each generation has
 * its own file, so a process that was stopped can't replace a newer one. All of them are read, and the highest
 * generation counts: a new token is safe as soon as it is in any of them.
 */
const SECRET_FILE = /^secret\.(?<session>[0-9a-f]{12})(\.(?<pid>\d+)-[0-9a-f]{12})?\.json$/

/** Enough for the file of any refresh token; taken from the disk before a token is sent. */
const RESERVED_BYTES = 8 * 1024
/** Far more than the file of any refresh token. */
const MAX_SECRET_BYTES = 4 * 1024 * 1024

export interface SecretFile extends SecretLocation {
  readonly session: string
  /** The process that preallocated it. */
  readonly pid: number | undefined
}

/** The first file of a sign-in in the profile's directory. */
export function secretFile(directory: string, session: string): string {
  return join(directory, `secret.${session}.json`)
}

function fallbackFile(directory: string, { profile, session }: SecretStorage): string {
  return join(directory, `secret.${profile}.${session}.json`)
}

/** Every file that may hold a secret of the profile. @throws CliError `directory_unusable`, exit 1. */
export function secretFiles(
  from: Pick<SecretStorage, 'profile' | 'directory' | 'fallbackDirectories'>,
): SecretFile[] {
  const found: SecretFile[] = []
  const add = (directory: string, names: readonly string[], prefix: string) => {
    for (const name of names) {
      if (!name.startsWith(prefix)) continue
      const { session, pid } = SECRET_FILE.exec(`secret.${name.slice(prefix.length)}`)?.groups ?? {}
      if (session === undefined) continue
      found.push({ store: 'file', name: join(directory, name), session, pid: pid ? Number(pid) : undefined })
    }
  }
  add(from.directory, namesIn(from.directory), 'secret.')
  for (const directory of from.fallbackDirectories)
    add(directory, namesIn(directory, 'skip'), `secret.${from.profile}.`)
  return found
}

/** Every location of the secret and its copies, starting with where it belongs. @throws CliError `directory_unusable`, exit 1. */
export function locationsOf(storage: SecretStorage): SecretLocation[] {
  const files = secretFiles(storage).filter(
    ({ session, name }) => session === storage.session && name !== storage.location.name,
  )
  return [storage.location, ...files.map(({ store, name }) => ({ store, name }))]
}

export interface NewestSecret extends Secret {
  readonly location: SecretLocation
  /** Whether it is in the store that was chosen for it. If not, that one may hold an older secret, which must not be sent. */
  readonly inChosenStore: boolean
}

/**
 * Reads the newest copy of a secret. A copy in a file can stand in for a locked keychain.
 *
 * @param known the highest generation that this machine is known to have had.
 * @throws CliError exit 4: the store can't be reached, is empty, or holds only a secret that is older than `known`; a copy
 *   is there and can't be read, so that it could be newer than the others.
 */
export async function readNewest(
  context: KeychainContext,
  storage: SecretStorage,
  known = 1,
): Promise<NewestSecret> {
  const copies: NewestSecret[] = []
  let failure: unknown
  let damaged: unknown
  const listed = locationsOf(storage)
  for (const location of listed) {
    try {
      const secret = await readSecret(context, location)
      if (secret !== undefined)
        copies.push({ ...secret, location, inChosenStore: isInChosenStore(storage, location) })
    } catch (error) {
      const problem = requireCliError(error)
      if (location === storage.location) {
        failure = problem
        continue
      }
      const content = contentOf(location.name)
      if (content === 'unknown') throw problem
      if (content === 'damaged') damaged = problem
    }
  }
  const newest = copies.sort((a, b) => b.generation - a.generation)[0]
  if (newest !== undefined && newest.generation >= known) return newest
  // Between the listing and the reading, another process may have stored a newer secret and removed this one.
  const isListed = ({ name }: SecretLocation) => listed.some((location) => location.name === name)
  if (!locationsOf(storage).every(isListed)) return readNewest(context, storage, known)
  if (failure !== undefined || damaged !== undefined) throw failure ?? damaged
  const { location } = storage
  // An old copy beside a keychain that returns nothing dates from when the keychain refused: the newer one is in there.
  if (
    newest !== undefined &&
    (location.store === 'file' || copies.some(({ inChosenStore }) => inChosenStore))
  )
    throw outdated(storage)
  throw location.store === 'keychain' ? lockedOrMissing(location.name) : missing(storage)
}

/**
 * The highest generation that is in a file, or 0. Synchronous, because it is read between two steps of a connection.
 * Skips files that can't be read.
 */
export function highestInFiles(storage: SecretStorage): number {
  const generations = secretFiles(storage).map(({ session, name }) => {
    try {
      return session === storage.session ? secretFormat.parse(JSON.parse(readText(name))).generation : 0
    } catch {
      return 0
    }
  })
  return Math.max(0, ...generations)
}

/**
 * What is in a file that can't be used: `blank` if it was preallocated and never used, or is gone; `damaged` if a process
 * died while it wrote; `unknown` if it may hold a secret.
 */
function contentOf(path: string): 'blank' | 'damaged' | 'unknown' {
  let text: string
  try {
    text = readText(path)
  } catch (error) {
    return codeOf(error) === 'ENOENT' ? 'blank' : 'unknown'
  }
  if (text.trim() === '') return 'blank'
  try {
    JSON.parse(text)
    return 'unknown'
  } catch {
    return 'damaged'
  }
}

/** Opens and closes the file itself: `readFileSync` with a path aborts the process if closing fails. */
function readText(path: string): string {
  const fd = openSync(path, constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0))
  try {
    const found = fstatSync(fd)
    if (!found.isFile() || found.size > MAX_SECRET_BYTES) throw new Error('it is not a file of this program')
    return readFileSync(fd, 'utf8')
  } finally {
    closeQuietly(fd)
  }
}

function isInChosenStore({ location, directory }: SecretStorage, { store, name }: SecretLocation): boolean {
  return store === location.store && (store === 'keychain' || dirname(name) === directory)
}

/**
 * Preallocates a file for a new secret, which is needed with the file store and if the keychain refuses.
 *
 * @throws CliError `cannot_write`, exit 1.
 */
export function reserveSpace(storage: SecretStorage): PreallocatedFile {
  return preallocate(newFile(storage), RESERVED_BYTES)
}

function newFile({ directory, session }: SecretStorage): string {
  return join(directory, `secret.${session}.${uniqueSuffix()}.json`)
}

export interface StoredSecret {
  readonly location: SecretLocation
  /** Why it is not where it belongs; undefined if it is. */
  readonly problem: string | undefined
}

/**
 * Stores the successor of a refresh token where it belongs, or else in any of our directories: nobody else has a copy.
 *
 * @throws CliError of the first attempt, if all fail.
 */
export async function storeSuccessor(
  context: KeychainContext,
  storage: SecretStorage,
  secret: Secret,
  reserved: PreallocatedFile,
): Promise<StoredSecret> {
  const problems: CliError[] = []
  const isStored = async (name: string, write: () => unknown): Promise<boolean> => {
    try {
      await write()
      return true
    } catch (error) {
      problems.push(requireCliError(error))
      // It may be written all the same, without proof that it is on the disk. That is still a copy.
      return (
        (await readSecret(context, { store: 'file', name }).catch(() => undefined))?.value === secret.value
      )
    }
  }
  const done = (location: SecretLocation): StoredSecret => ({
    location,
    problem: isInChosenStore(storage, location) ? undefined : (problems[0]?.message ?? ''),
  })

  if (storage.location.store === 'keychain') {
    try {
      await writeSecret(context, storage.location, secret)
      reserved.discard()
      return done(storage.location)
    } catch (error) {
      problems.push(requireCliError(error))
    }
  }
  const text = secretFormat.text(secret)
  if (await isStored(reserved.path, () => reserved.write(text)))
    return done({ store: 'file', name: reserved.path })
  const others = [
    newFile(storage),
    ...storage.fallbackDirectories.map((directory) => fallbackFile(directory, storage)),
  ]
  for (const name of others)
    if (await isStored(name, () => writeDurable(name, text))) return done({ store: 'file', name })
  throw problems[0]
}

/**
 * Removes the files with an older secret of the sign-in, and those that a dead process preallocated.
 *
 * @returns whether no older secret is left in a file.
 */
export async function removeOutdatedCopies(
  context: KeychainContext,
  storage: SecretStorage,
  { generation }: Secret,
  inChosenStore: boolean,
): Promise<boolean> {
  // What is in the keychain needs no copy in a file.
  const least = inChosenStore && storage.location.store === 'keychain' ? generation + 1 : generation
  let areGone = true
  for (const file of secretFiles(storage).filter(({ session }) => session === storage.session)) {
    const held = await readSecret(context, file).catch(() => undefined)
    if (held === undefined) {
      if (contentOf(file.name) === 'unknown') areGone = false
      else if (file.pid !== undefined && !isProcessAlive(file.pid))
        await removeSecret(context, file).catch(() => undefined)
    } else if (held.generation < least) {
      await removeSecret(context, file).catch(() => {
        areGone = false
      })
    }
  }
  return areGone
}

/** A secret that may still be stored, and why it couldn't be removed. */
export interface KeptSecret {
  readonly location: SecretLocation
  readonly why: string
}

/** Removes secrets for good. @returns those that may still be there. */
export async function removeSecrets(
  context: ProvingContext,
  locations: readonly SecretLocation[],
): Promise<KeptSecret[]> {
  const kept: KeptSecret[] = []
  for (const { store, name } of locations) {
    const location = { store, name }
    try {
      const removed = await removeSecret(context, location)
      // A locked keychain reports items that it holds as missing, but it can't pass this.
      if (!removed && location.store === 'keychain') await proveKeychain(context, location.name)
    } catch (error) {
      kept.push({ location, why: requireCliError(error).message })
    }
  }
  return kept
}

/** @throws what is not a CliError: a bug. */
function requireCliError(error: unknown): CliError {
  if (error instanceof CliError) return error
  throw error
}

/** The store holds an older token than this machine had. The service would take it for a stolen one. */
function outdated({ profile, location: { store } }: SecretStorage): CliError {
  return new CliError(
    'refresh_token_outdated',
    Exit.notSignedIn,
    `the stored refresh token of profile ${profile} is older than the last one received (was a backup restored?). Sending it would revoke the grant, so it is not sent`,
    { hint: `run ${loginCommand({ profile, store })}` },
  )
}

function missing({ profile, location: { store, name } }: SecretStorage): CliError {
  return new CliError(
    'refresh_token_missing',
    Exit.notSignedIn,
    `the refresh token of profile ${profile} is missing: ${name} does not exist`,
    { hint: `run ${loginCommand({ profile, store })}` },
  )
}
