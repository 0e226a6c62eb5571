import { readFileSync, statSync } from 'node:fs'
import { CompactEncrypt, compactDecrypt, decodeProtectedHeader } from 'jose'
import { CliError } from '../../errors.ts'
import { getSetting } from '../../settings/settings.ts'
import { IS_POSIX, reasonOf } from '../../storage/file-errors.ts'
import type { Io } from '../../terminal/io.ts'
import type { Session } from '../session-file.ts'

/**
 * Marker that is stored with a session in etcd while a machine renews the session, or after a renewal with unknown outcome: the
 * refresh token may have been sent.
 */
export interface RenewalMarker {
  /** Random id of the renewal marker, by which the marker's writer recognizes it. */
  readonly writer: string
  /** Host name of the machine that wrote the renewal marker. */
  readonly host: string
  /**
   * Set once the outcome of the refresh request is unknown. `said by its sender`: the sender received no new token. `said by
   * another`: the sender stopped responding, and may hold the new token.
   */
  readonly unknown?: 'said by its sender' | 'said by another'
}

/** Decrypted value of a profile's key in etcd; `marker` is null unless a renewal is under way, or its outcome is unknown. */
export interface EtcdSession {
  readonly session: Session
  readonly marker: RenewalMarker | null
}

const KEY_BYTES = 32
const FORMAT = 1

/**
 * Reads the settings of the `etcd` store: members, the profile's etcd key, credentials, and the encryption key.
 *
 * @throws CliError `store_not_configured`, exit 3, if the members are missing, the encryption key is missing or invalid, or a file
 *   can't be used
 */
export function readEtcdConfig(io: Io) {
  const { environment, settings } = io
  const urls = getSetting('store_url', settings)
  if (urls === undefined)
    throw notConfigured('the members of etcd are not configured', 'set --store-url or MAILCLAIM_STORE_URL')
  const cert = readFile('store-cert', getSetting('store_cert', settings))
  const key = readFile('store-cert-key', getSetting('store_cert_key', settings))
  const { storeUser: name, storePasswordFile } = environment
  const password =
    environment.storePassword ??
    readFile('MAILCLAIM_STORE_PASSWORD_FILE', storePasswordFile, 'private')?.trimEnd()
  return {
    key: `/mailclaim/sessions/${settings.profile.value}`,
    members: urls.map((url) => new URL(url)),
    tls: cert === undefined ? undefined : { cert, key: key ?? cert },
    user: name === undefined ? undefined : { name, password: password ?? '' },
    encryptionKey: readEncryptionKey(io),
  }
}

export type EtcdConfig = ReturnType<typeof readEtcdConfig>

/**
 * Reads the encryption key, which is configured in base64.
 *
 * @throws CliError `store_not_configured`, exit 3, if the key is missing or isn't 32 bytes, or if its file can't be read or used
 */
function readEncryptionKey(io: Io): Uint8Array {
  const make = 'make a key with: openssl rand -base64 32'
  const file = getSetting('store_key_file', io.settings)
  const { storeKey = readFile('store-key-file', file, 'private') } = io.environment
  if (storeKey === undefined)
    throw notConfigured('the key that encrypts the session in etcd is missing (MAILCLAIM_STORE_KEY)', make)
  const key = Buffer.from(storeKey.trim(), 'base64')
  if (key.length !== KEY_BYTES) throw notConfigured('the key for etcd is not 32 bytes in base64', make)
  return new Uint8Array(key)
}

/**
 * Reads a file that a setting or variable names; undefined without a path.
 *
 * @param access `private` rejects a file to which group or others have any access (not on Windows)
 * @throws CliError `store_not_configured`, exit 3, if the file can't be read or is rejected
 */
function readFile(name: string, path: string | undefined, access?: 'private'): string | undefined {
  if (path === undefined) return undefined
  try {
    if (access === 'private' && IS_POSIX && (statSync(path).mode & 0o077) !== 0)
      throw notConfigured(`others may read the file ${path}`, `run: chmod 600 ${path}`)
    return readFileSync(path, 'utf8')
  } catch (error) {
    if (error instanceof CliError) throw error
    throw notConfigured(`the file ${path} can't be read: ${reasonOf(error)}`, `check ${name}`)
  }
}

function notConfigured(message: string, hint: string): CliError {
  return new CliError('store_not_configured', message, { hint })
}

/**
 * Encrypts a session and its renewal marker, if any: compact JWE, `dir` with A256GCM (RFC 7516; RFC 7518 sections 4.5 and 5.3). The
 * protected header names the etcd key, so that a ciphertext copied to another etcd key is rejected.
 */
export async function sealSession(value: EtcdSession, { key, encryptionKey }: EtcdConfig): Promise<string> {
  const text = JSON.stringify({ format: FORMAT, session: value.session, note: value.marker })
  return new CompactEncrypt(Buffer.from(text, 'utf8'))
    .setProtectedHeader({ alg: 'dir', enc: 'A256GCM', key })
    .encrypt(encryptionKey)
}

/**
 * Decrypts a value that `sealSession` encrypted.
 *
 * @throws CliError `store_unavailable`, exit 4, if the value can't be decrypted with this encryption key, belongs to another etcd
 *   key, or has another format
 */
export async function unsealSession(jwe: string, { key, encryptionKey }: EtcdConfig): Promise<EtcdSession> {
  try {
    if (decodeProtectedHeader(jwe)['key'] !== key) throw new Error('moved')
    const options = { keyManagementAlgorithms: ['dir'], contentEncryptionAlgorithms: ['A256GCM'] }
    const { plaintext } = await compactDecrypt(jwe, encryptionKey, options)
    const { format, session, note: marker } = JSON.parse(Buffer.from(plaintext).toString('utf8'))
    if (format !== FORMAT) throw new Error('another format')
    return { session, marker }
  } catch (error) {
    const message = `the session in etcd (${key}) can't be decrypted: another key, or it was changed or moved`
    const hint = 'check MAILCLAIM_STORE_KEY or store-key-file (docs/fleet.md)'
    throw new CliError('store_unavailable', message, { hint, cause: error })
  }
}
