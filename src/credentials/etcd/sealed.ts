import { createHash } from 'node:crypto'
import { CompactEncrypt, compactDecrypt, decodeProtectedHeader } from 'jose'
import { CliError, Exit } from '../../errors.ts'

/** The keys that values are encrypted with: the first encrypts, all decrypt. */
export type SealingKeys = readonly [Uint8Array, ...Uint8Array[]]

/** Bytes of a key for A256GCM. */
export const KEY_BYTES = 32

/**
 * Encrypts a text for one place: JWE in its compact form, `dir` with A256GCM (RFC 7516, RFC 7518 sections 4.5 and 5.3). The
 * protected header names the place, so that a ciphertext can't be moved to another one, and the key.
 */
export async function seal(text: string, place: string, [key]: SealingKeys): Promise<string> {
  return new CompactEncrypt(Buffer.from(text, 'utf8'))
    .setProtectedHeader({ alg: 'dir', enc: 'A256GCM', kid: keyName(key), place })
    .encrypt(key)
}

/**
 * Decrypts what `seal` made for this place.
 *
 * @param what names it in messages.
 * @throws CliError `store_key_wrong` or `store_value_unusable`, exit 4.
 */
export async function unseal(
  sealed: string,
  place: string,
  keys: SealingKeys,
  what = inEtcd(place),
): Promise<string> {
  const header = headerOf(sealed)
  if (header?.enc !== 'A256GCM') throw unusable(what, 'it is not what mailclaim has written there')
  const key = keys.find((candidate) => keyName(candidate) === header.kid)
  if (key === undefined) {
    throw new CliError(
      'store_key_wrong',
      Exit.notSignedIn,
      `${what} is encrypted with another key: ${String(header.kid)}, not ${keys.map(keyName).join(' or ')}`,
      {
        hint: 'check MAILCLAIM_STORE_KEY or the file of --store-key-file; if the key was rotated, add the new one',
      },
    )
  }
  if (header['place'] !== place)
    throw unusable(what, `it was moved here from ${JSON.stringify(header['place'])}`)
  try {
    const options = { keyManagementAlgorithms: ['dir'], contentEncryptionAlgorithms: ['A256GCM'] }
    const { plaintext } = await compactDecrypt(sealed, key, options)
    return Buffer.from(plaintext).toString('utf8')
  } catch {
    throw unusable(what, 'it was changed after mailclaim had written it')
  }
}

function headerOf(sealed: string) {
  try {
    return decodeProtectedHeader(sealed)
  } catch {
    return undefined
  }
}

/** Names a key without giving it away: 16 hex digits of its SHA-256. */
export function keyName(key: Uint8Array): string {
  return createHash('sha256').update(key).digest('hex').slice(0, 16)
}

/** Names the value at a key in messages. */
export const inEtcd = (key: string) => `the session in etcd (${key})`

/** The value must not be used, whatever it says. */
export function unusable(what: string, why: string): CliError {
  return new CliError(
    'store_value_unusable',
    Exit.notSignedIn,
    `${what} is not used: ${why}. Nothing was sent`,
    { hint: 'find out who can write to that key, then sign in again for the whole fleet: mailclaim login' },
  )
}
