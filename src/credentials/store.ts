import { Exit } from '../errors.ts'
import { removeDurable, writeDurable } from '../storage/durable-file.ts'
import { secretFormat } from '../storage/file-formats.ts'
import { readJson } from '../storage/json-file.ts'
import type { Contents } from '../storage/schema.ts'
import { callKeychain, type KeychainContext, lockedOrMissing } from './keychain.ts'

/** A refresh token or an API key. */
export type Secret = Contents<typeof secretFormat>

/** Where one secret is stored. */
export interface SecretLocation {
  readonly store: 'keychain' | 'file'
  /** The keychain's account, or the path of the file. */
  readonly name: string
}

/**
 * Reads a secret; undefined if there is none at this location, or the keychain is locked and doesn't say so.
 *
 * @throws CliError `keychain_…` or `file_unusable`, exit 4.
 */
export async function readSecret(
  context: KeychainContext,
  { store, name }: SecretLocation,
): Promise<Secret | undefined> {
  if (store === 'file') return readJson(name, secretFormat.parse, { exit: Exit.notSignedIn })
  const text = await callKeychain(context, { operation: 'get', account: name })
  if (typeof text !== 'string') return undefined
  const item = /^(?<generation>\d{1,15})@(?<issuedAt>\d{1,15}):(?<value>.+)$/s.exec(text)?.groups
  if (item === undefined) throw lockedOrMissing(name)
  return {
    generation: Number(item['generation']),
    issuedAt: Number(item['issuedAt']),
    value: item['value'] ?? '',
  }
}

/**
 * Stores a secret. In a keychain it is read back, since some report success and store nothing.
 *
 * @throws CliError `keychain_…`, exit 4, or `cannot_write`, exit 1.
 */
export async function writeSecret(
  context: KeychainContext,
  { store, name }: SecretLocation,
  secret: Secret,
): Promise<void> {
  if (store === 'file') {
    writeDurable(name, secretFormat.text(secret))
    return
  }
  const text = `${secret.generation}@${secret.issuedAt}:${secret.value}`
  await callKeychain(context, { operation: 'set', account: name, secret: text })
  const stored = await callKeychain(context, { operation: 'get', account: name })
  if (stored !== text) throw lockedOrMissing(name)
}

/**
 * Removes a secret; false if it wasn't there, or the keychain is locked and doesn't say so.
 *
 * @throws CliError `keychain_…`, exit 4, or `cannot_write`, exit 1.
 */
export async function removeSecret(
  context: KeychainContext,
  { store, name }: SecretLocation,
): Promise<boolean> {
  if (store === 'file') return removeDurable(name)
  return (await callKeychain(context, { operation: 'delete', account: name })) === true
}
