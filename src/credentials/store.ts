import type { Context } from '../context.ts'
import { Exit } from '../errors.ts'
import { removeDurable, writeDurable } from '../storage/durable-file.ts'
import { secretFormat } from '../storage/file-formats.ts'
import { readJson } from '../storage/json-file.ts'
import type { Contents } from '../storage/schema.ts'
import { callKeychain, lockedOrMissing } from './keychain.ts'

/** A refresh token or an API key. */
export type Secret = Contents<typeof secretFormat>

/** Where one secret is kept. */
export interface Place {
  readonly store: 'keychain' | 'file'
  /** The keychain's account, or the path of the file. */
  readonly name: string
}

type Keychained = Pick<Context, 'keychain' | 'stdin' | 'stderr'>

/**
 * Reads a secret; undefined where the place does not give one. A locked keychain gives none either.
 *
 * @throws CliError `keychain_…` or `file_unusable`, exit 4.
 */
export async function readSecret(context: Keychained, place: Place): Promise<Secret | undefined> {
  if (place.store === 'file') return readJson(place.name, secretFormat.parse, { exit: Exit.notSignedIn })
  const text = await callKeychain(context, { operation: 'get', account: place.name })
  if (typeof text !== 'string') return undefined
  const item = /^(?<generation>\d{1,15})@(?<issuedAt>\d{1,15}):(?<value>.+)$/s.exec(text)?.groups
  if (item === undefined) throw lockedOrMissing(place.name)
  return {
    generation: Number(item['generation']),
    issuedAt: Number(item['issuedAt']),
    value: item['value'] ?? '',
  }
}

/**
 * Stores a secret; in a keychain it is read back, since some say yes and keep nothing.
 *
 * @throws CliError `keychain_…`, exit 4, or `cannot_write`, exit 1.
 */
export async function writeSecret(context: Keychained, place: Place, secret: Secret): Promise<void> {
  if (place.store === 'file') {
    writeDurable(place.name, secretFormat.text(secret))
    return
  }
  const text = `${secret.generation}@${secret.issuedAt}:${secret.value}`
  await callKeychain(context, { operation: 'set', account: place.name, secret: text })
  if ((await callKeychain(context, { operation: 'get', account: place.name })) !== text) {
    throw lockedOrMissing(place.name)
  }
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
