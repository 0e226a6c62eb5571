import { readFileSync, statSync } from 'node:fs'
import type { Context, TlsIdentity } from '../../context.ts'
import type { EtcdAccess } from '../../credentials/etcd/client.ts'
import { KEY_BYTES, type SealingKeys } from '../../credentials/etcd/sealed.ts'
import { CliError, Exit } from '../../errors.ts'
import { type Settings, settingValue } from '../../settings/settings.ts'
import { POSIX, reason } from '../../storage/file-errors.ts'

/** Where the session of a profile is in etcd, and what it takes to read it. */
export interface SharedAccess {
  readonly key: string
  readonly etcd: EtcdAccess
}

/** @throws CliError `store_not_configured`, exit 3. */
export function sharedAccess(
  { environment }: Pick<Context, 'environment'>,
  settings: Pick<Settings, 'profile' | 'chosen'>,
): SharedAccess {
  const urls = settingValue('store_url', settings)
  if (urls === undefined) {
    throw notConfigured(
      'the members of etcd are not configured',
      'give --store-url https://a:2379,https://b:2379 to login, or set MAILCLAIM_STORE_URL',
    )
  }
  const { storeUser: name, storePassword: password = '' } = environment
  return {
    key: `${settingValue('store_prefix', settings)}/sessions/${settings.profile.value}`,
    etcd: {
      members: urls.map((url) => new URL(url)),
      tls: tlsIdentity(settings),
      user: name === undefined ? undefined : { name, password },
    },
  }
}

function tlsIdentity(settings: Pick<Settings, 'chosen'>): TlsIdentity {
  const ca = settingValue('store_ca', settings)
  const cert = settingValue('store_cert', settings)
  const identity = cert === undefined ? undefined : readText(cert, '--store-cert')
  return {
    ...(ca !== undefined && { ca: readText(ca, '--store-ca') }),
    ...(identity !== undefined && { cert: identity, key: identity }),
  }
}

/**
 * The keys that encrypt the session: base64 of 32 bytes, or several of them, separated by spaces, commas, or lines. The first
 * one encrypts.
 *
 * @throws CliError `store_not_configured`, exit 3.
 */
export function sealingKeys(
  { environment }: Pick<Context, 'environment'>,
  settings: Pick<Settings, 'chosen'>,
): SealingKeys {
  const file = settingValue('store_key_file', settings)
  const make = 'make one with: openssl rand -base64 32'
  const text =
    environment.storeKey ?? (file === undefined ? undefined : readPrivateText(file, '--store-key-file'))
  if (text === undefined) {
    throw notConfigured(
      'the key that encrypts the session in etcd is missing',
      `set MAILCLAIM_STORE_KEY, or give login --store-key-file; ${make}`,
    )
  }
  const source = environment.storeKey === undefined ? `the file ${file}` : 'MAILCLAIM_STORE_KEY'
  const [first, ...others] = text
    .split(/[\s,]+/)
    .filter((word) => word !== '')
    .map((word) => {
      const key = Buffer.from(word, 'base64')
      if (key.length === KEY_BYTES && /^[\w+/-]+=?$/.test(word)) return new Uint8Array(key)
      throw notConfigured(`${source} doesn't hold a key of 32 bytes in base64`, make)
    })
  if (first === undefined) throw notConfigured(`${source} holds no key`, make)
  return [first, ...others]
}

function readPrivateText(path: string, option: string): string {
  const text = readText(path, option)
  if (POSIX && (statSync(path).mode & 0o077) !== 0) {
    throw notConfigured(
      `the file ${path} (${option}) is not used, because others may read it`,
      `chmod 600 ${path}`,
    )
  }
  return text
}

function readText(path: string, option: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    throw notConfigured(`the file ${path} (${option}) cannot be read: ${reason(error)}`, 'check the path')
  }
}

function notConfigured(message: string, hint: string): CliError {
  return new CliError('store_not_configured', Exit.notConfigured, message, { hint })
}
