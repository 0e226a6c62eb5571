import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { Context } from '../context.ts'
import { CliError, Exit } from '../errors.ts'
import { loginCommand } from '../settings/login-command.ts'
import {
  isProcessAlive,
  type PreallocatedFile,
  preallocate,
  uniqueSuffix,
  writeDurable,
} from '../storage/durable-file.ts'
import { secretFormat } from '../storage/file-formats.ts'
import { namesIn } from '../storage/private-directory.ts'
import { lockedOrMissing, proveKeychain } from './keychain.ts'
import { type Place, readSecret, removeSecret, type Secret, writeSecret } from './store.ts'

/** Where the secret of one sign-in belongs, and where else a copy of it may be. */
export interface SecretHome {
  readonly profile: string
  /** The sign-in: 12 hex digits. */
  readonly session: string
  readonly place: Place
  /** The profile's directory. */
  readonly directory: string
  /** Directories that take a new secret when the profile's own refuses it. */
  readonly elsewhere: readonly string[]
}

/**
 * A file in the profile's directory that holds a secret, or that a process made to take one. Each generation has a file
 * of its own, so that a process that was stopped cannot replace a newer one; all of them are read, and the highest
 * generation counts. A new token is safe as soon as it is in any of them.
 */
const SECRET_FILE = /^secret\.(?<session>[0-9a-f]{12})(\.(?<pid>\d+)-[0-9a-f]{12})?\.json$/

/** Space for any refresh token with its wrapping; taken from the disk before a token is sent. */
const RESERVED_BYTES = 8 * 1024

export interface SecretFile extends Place {
  readonly session: string
  /** The process that made it for a token to come. */
  readonly pid: number | undefined
}

/** The first file of a sign-in in the profile's directory. */
export function secretFile(directory: string, session: string): string {
  return join(directory, `secret.${session}.json`)
}

function fileElsewhere(directory: string, { profile, session }: SecretHome): string {
  return join(directory, `secret.${profile}.${session}.json`)
}

/** Every file that may hold a secret of the profile. @throws CliError `directory_unusable`, exit 1. */
export function secretFiles(from: Pick<SecretHome, 'profile' | 'directory' | 'elsewhere'>): SecretFile[] {
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
  for (const directory of from.elsewhere) add(directory, readableNames(directory), `secret.${from.profile}.`)
  return found
}

/** Hardly ever is anything of ours in such a directory, so one that cannot be read stops nobody. */
function readableNames(directory: string): string[] {
  try {
    return namesIn(directory)
  } catch {
    return []
  }
}

/** Every place where a copy of the secret can be, the right one first. @throws CliError `directory_unusable`, exit 1. */
export function placesOf(home: SecretHome): Place[] {
  const files = secretFiles(home).filter(
    ({ session, name }) => session === home.session && name !== home.place.name,
  )
  return [home.place, ...files.map(({ store, name }) => ({ store, name }))]
}

export interface NewestSecret extends Secret {
  readonly place: Place
  /** Whether it is in the store that was chosen for it; otherwise an older one may be there, which must not be sent. */
  readonly inPlace: boolean
}

/**
 * Reads the newest copy of a secret. A copy in a file does for a keychain that is locked again.
 *
 * @param known the highest generation that this machine is known to have had.
 * @throws CliError exit 4: the store cannot be reached, or holds nothing, or only an older secret than was stored.
 */
export async function readNewest(context: Context, home: SecretHome, known = 1): Promise<NewestSecret> {
  const copies: NewestSecret[] = []
  let failure: unknown
  for (const place of placesOf(home)) {
    try {
      const secret = await readSecret(context, place)
      if (secret !== undefined) copies.push({ ...secret, place, inPlace: isInPlace(home, place) })
    } catch (error) {
      // A file that was made to take a secret, and took none, is not a failure.
      if (place === home.place) failure = expected(error)
    }
  }
  const newest = copies.sort((a, b) => b.generation - a.generation)[0]
  if (newest !== undefined && newest.generation >= known) return newest
  if (failure !== undefined) throw failure
  const { place } = home
  // An old copy beside a keychain that gives none was kept when the keychain refused; the newer one is in the keychain.
  if (newest !== undefined && (place.store === 'file' || copies.some(({ inPlace }) => inPlace)))
    throw outdated(home)
  throw place.store === 'keychain' ? lockedOrMissing(place.name) : missing(home)
}

/**
 * The highest generation that lies in a file, 0 where there is none. Synchronous: it is looked at between two steps of a
 * connection. Files that cannot be read count for nothing.
 */
export function highestInFiles(home: SecretHome): number {
  const generations = secretFiles(home).map(({ session, name }) => {
    try {
      return session === home.session
        ? secretFormat.parse(JSON.parse(readFileSync(name, 'utf8'))).generation
        : 0
    } catch {
      return 0
    }
  })
  return Math.max(0, ...generations)
}

function isInPlace({ place, directory }: SecretHome, { store, name }: Place): boolean {
  return store === place.store && (store === 'keychain' || dirname(name) === directory)
}

/**
 * Takes the space on the disk that a new secret needs if it has to go into a file, now or when the keychain refuses.
 *
 * @throws CliError `cannot_write`, exit 1.
 */
export function reserveSpace(home: SecretHome): PreallocatedFile {
  return preallocate(newFile(home), RESERVED_BYTES)
}

function newFile({ directory, session }: SecretHome): string {
  return join(directory, `secret.${session}.${uniqueSuffix()}.json`)
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
  home: SecretHome,
  secret: Secret,
  reserved: PreallocatedFile,
): Promise<StoredSecret> {
  const problems: CliError[] = []
  const kept = async (name: string, write: () => unknown): Promise<boolean> => {
    try {
      await write()
      return true
    } catch (error) {
      problems.push(expected(error))
      // Written, if not known to be on the disk: that is still a copy that can be read.
      return (
        (await readSecret(context, { store: 'file', name }).catch(() => undefined))?.value === secret.value
      )
    }
  }
  const done = (place: Place): StoredSecret => ({
    place,
    problem: isInPlace(home, place) ? undefined : (problems[0]?.message ?? ''),
  })

  if (home.place.store === 'keychain') {
    try {
      await writeSecret(context, home.place, secret)
      reserved.discard()
      return done(home.place)
    } catch (error) {
      problems.push(expected(error))
    }
  }
  const text = secretFormat.text(secret)
  if (await kept(reserved.path, () => reserved.write(text)))
    return done({ store: 'file', name: reserved.path })
  const others = [newFile(home), ...home.elsewhere.map((directory) => fileElsewhere(directory, home))]
  for (const name of others)
    if (await kept(name, () => writeDurable(name, text))) return done({ store: 'file', name })
  throw problems[0]
}

/** Removes the files that hold an older secret of the sign-in, or that a dead process made for one. */
export async function removeOutdatedCopies(
  context: Context,
  home: SecretHome,
  { generation }: Secret,
): Promise<void> {
  for (const file of secretFiles(home).filter(({ session }) => session === home.session)) {
    const held = await readSecret(context, file).catch(() => undefined)
    const isOutdated =
      held === undefined
        ? file.pid !== undefined && !isProcessAlive(file.pid)
        : held.generation < generation + (home.place.store === 'keychain' ? 1 : 0)
    if (isOutdated) await removeSecret(context, file).catch(() => undefined)
  }
}

export interface KeptSecret {
  readonly place: Place
  readonly why: string
}

/** Removes secrets for good. @returns the places that may still hold one, with what stood in the way. */
export async function removeSecrets(context: Context, places: readonly Place[]): Promise<KeptSecret[]> {
  const kept: KeptSecret[] = []
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

/** The store holds an older token than this machine had: the service would take it for a stolen one. */
function outdated({ profile, place: { store } }: SecretHome): CliError {
  return new CliError(
    'refresh_token_outdated',
    Exit.notSignedIn,
    `the stored refresh token of profile ${profile} is older than the last one received (was a backup restored?). Sending it would revoke the grant, so it is not sent`,
    { hint: `run ${loginCommand({ profile, store })}` },
  )
}

function missing({ profile, place: { store, name } }: SecretHome): CliError {
  return new CliError(
    'refresh_token_missing',
    Exit.notSignedIn,
    `the refresh token of profile ${profile} is missing: ${name} is not there`,
    { hint: `run ${loginCommand({ profile, store })}` },
  )
}
