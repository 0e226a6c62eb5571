import { join } from 'node:path'
import type { Context } from '../context.ts'
import { Exit } from '../errors.ts'
import { type PreparedFile, prepareDurable, readJson, removeDurable } from '../settings/files.ts'
import { callKeychain, lockedOrMissing } from './keychain.ts'

/** A secret with its number: of two copies, the higher number is the newer one. */
export interface Secret {
  readonly generation: number
  readonly value: string
}

/** Where one secret is kept. */
export interface Place {
  readonly store: 'keychain' | 'file'
  /** The keychain's account, or the path of the file. */
  readonly name: string
}

type Keychained = Pick<Context, 'keychain' | 'stdin' | 'stderr'>

/** Room for any refresh token, or API key, with its wrapping; taken from the disk before a token is sent. */
export const RESERVED_BYTES = 8 * 1024

/** The keychain item of a session. It names the sign-in, because two state folders share one keychain. */
export function keychainPlace(profile: string, issuer: string | null, session: string): Place {
  return { store: 'keychain', name: `${profile} ${issuer ?? 'api-key'} ${session}` }
}

/** The file of a session where it keeps its secret in one. */
export function filePlace(directory: string, session: string): Place {
  return { store: 'file', name: join(directory, `secret.${session}.json`) }
}

/** The file that takes the secret of a keychain session when the keychain refuses it. */
export function spillPlace(directory: string, session: string): Place {
  return { store: 'file', name: join(directory, `secret.${session}.spilled.json`) }
}

/**
 * Reads a secret; undefined where the place does not give one. A locked keychain gives none either.
 *
 * @throws CliError `keychain_…` or `file_unusable`, exit 4.
 */
export async function readSecret(context: Keychained, place: Place): Promise<Secret | undefined> {
  if (place.store === 'file') return readJson(place.name, parseSecret, { exit: Exit.notSignedIn })
  const text = await callKeychain(context, { operation: 'get', account: place.name })
  if (typeof text !== 'string') return undefined
  const match = /^(?<generation>\d{1,15}):(?<value>.+)$/s.exec(text)
  if (match === null) throw lockedOrMissing(place.name)
  return { generation: Number(match.groups?.['generation']), value: match.groups?.['value'] ?? '' }
}

/**
 * Stores a secret and reads it back: some keychains say yes and keep nothing.
 *
 * @param prepared the file that was made ready for it, where there is one.
 * @throws CliError `keychain_…`, exit 4, or `cannot_write`, exit 1.
 */
export async function writeSecret(
  context: Keychained,
  place: Place,
  secret: Secret,
  prepared?: PreparedFile,
): Promise<void> {
  if (place.store === 'file') {
    const file = prepared ?? (await prepareDurable(place.name, 0))
    await file.commit(
      `${JSON.stringify({ version: 1, generation: secret.generation, secret: secret.value })}\n`,
    )
    return
  }
  const text = `${secret.generation}:${secret.value}`
  await callKeychain(context, { operation: 'set', account: place.name, secret: text })
  if ((await callKeychain(context, { operation: 'get', account: place.name })) !== text) {
    throw lockedOrMissing(place.name)
  }
}

/** Takes the room for a secret in a file now, so that it can be written when the disk is full. */
export async function prepareSecret(place: Place): Promise<PreparedFile> {
  return prepareDurable(place.name, RESERVED_BYTES)
}

/**
 * Removes a secret. False where nothing was removed: it was not there, or the keychain is locked and does not say so.
 *
 * @throws CliError `keychain_…`, exit 4, or `cannot_write`, exit 1.
 */
export async function removeSecret(context: Keychained, place: Place): Promise<boolean> {
  if (place.store === 'file') return removeDurable(place.name)
  return (await callKeychain(context, { operation: 'delete', account: place.name })) === true
}

function parseSecret(value: unknown): Secret {
  const { version, generation, secret } = (value ?? {}) as Record<string, unknown>
  if (typeof version === 'number' && version > 1) throw new Error('it was written by a later version')
  if (version !== 1 || typeof generation !== 'number' || typeof secret !== 'string' || secret === '') {
    throw new Error('it is damaged: it does not hold a secret')
  }
  return { generation, value: secret }
}
