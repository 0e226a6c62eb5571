import { createPrivateKey, X509Certificate } from 'node:crypto'
import { readFileSync, statSync } from 'node:fs'
import { createSecureContext } from 'node:tls'
import type { Clock, Context } from '../../context.ts'
import type { EtcdAccess } from '../../credentials/etcd/client.ts'
import { KEY_BYTES, type SealingKeys } from '../../credentials/etcd/sealed.ts'
import { CliError, Exit } from '../../errors.ts'
import { type Settings, settingSource, settingValue } from '../../settings/settings.ts'
import { POSIX, reason } from '../../storage/file-errors.ts'
import { formatTime } from '../../terminal/relative-time.ts'

/** Where the session of a profile is in etcd, and what it takes to read it. */
export interface SharedAccess {
  readonly key: string
  readonly etcd: EtcdAccess
  /** The file with the client certificate, if there is one, and when that expires: milliseconds since 1970. */
  readonly identity: { readonly name: string; readonly expiresAt: number } | undefined
}

/** @throws CliError `store_not_configured`, exit 3. */
export function sharedAccess(
  { environment, clock }: Pick<Context, 'environment' | 'clock'>,
  settings: Pick<Settings, 'profile' | 'chosen'>,
): SharedAccess {
  const urls = settingValue('store_url', settings)
  if (urls === undefined) {
    throw notConfigured(
      'the members of etcd are not configured',
      'give --store-url https://a:2379,https://b:2379 to login, or set MAILCLAIM_STORE_URL',
    )
  }
  const authorities = readSetting('store_ca', settings)
  const client = readSetting('store_cert', settings)
  if (authorities !== undefined) requireAuthorities(authorities, clock)
  const { storeUser: name, storePassword: password = '' } = environment
  return {
    key: `${settingValue('store_prefix', settings)}/sessions/${settings.profile.value}`,
    etcd: {
      members: urls.map((url) => new URL(url)),
      tls: {
        ...(authorities !== undefined && { ca: authorities.text }),
        ...(client !== undefined && { cert: client.text, key: client.text }),
      },
      user: name === undefined ? undefined : { name, password },
    },
    identity: client && { name: client.name, expiresAt: requireIdentity(client, clock) },
  }
}

function requireAuthorities({ name, text }: SettingFile, clock: Clock): void {
  const certificates = (text.match(CERTIFICATES) ?? [text]).flatMap(
    (one) => parsed(() => new X509Certificate(one)) ?? [],
  )
  const ends = certificates.map(({ validTo }) => Date.parse(validTo))
  if (ends.some((at) => at >= clock.now())) return
  const hint = "it has to hold the certificate of the authority that signs those of etcd's members, as PEM"
  throw ends.length === 0
    ? notConfigured(`${name} holds no certificate`, hint)
    : notConfigured(
        `every certificate in ${name} has expired, the last one on ${formatTime(Math.max(...ends))}`,
        hint,
      )
}

const CERTIFICATES = /-----BEGIN (?:\w+ )?CERTIFICATE-----[^-]+-----END (?:\w+ )?CERTIFICATE-----/g

/**
 * Checked here, because a member that refuses the connection, or is never asked, can't say what is wrong with the file.
 *
 * @returns when the certificate expires.
 */
function requireIdentity({ name, text }: SettingFile, clock: Clock): number {
  const oneFile =
    'put the client certificate and its private key into that file, both as PEM: cat client.pem client.key > mailclaim-client.pem'
  const certificate = parsed(() => new X509Certificate(text))
  if (certificate === undefined) throw notConfigured(`${name} holds no certificate`, oneFile)
  if (/\bENCRYPTED\b/.test(text)) {
    const hint =
      'store it without a passphrase, in a file that only its owner can read: openssl pkey -in client.key -out plain.key'
    throw notConfigured(`the private key in ${name} is encrypted`, hint)
  }
  const key = parsed(() => createPrivateKey(text))
  if (key === undefined) throw notConfigured(`${name} holds no private key`, oneFile)
  if (!certificate.checkPrivateKey(key))
    throw notConfigured(`the private key in ${name} doesn't match the certificate`, oneFile)
  try {
    createSecureContext({ cert: text, key: text })
  } catch (error) {
    throw notConfigured(`${name} can't be used for TLS: ${reason(error)}`, 'use another certificate and key')
  }
  const [from, to] = [Date.parse(certificate.validFrom), Date.parse(certificate.validTo)]
  if (to < clock.now()) {
    const hint = 'replace the certificate in that file, and its key if that is another one (docs/fleet.md)'
    throw notConfigured(`the client certificate in ${name} expired on ${formatTime(to)}`, hint)
  }
  if (from > clock.now()) {
    const hint = 'check the clock of this machine, or use another certificate'
    throw notConfigured(`the client certificate in ${name} is not valid before ${formatTime(from)}`, hint)
  }
  return to
}

function parsed<T>(parse: () => T): T | undefined {
  try {
    return parse()
  } catch {
    return undefined
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
  const make = 'make one with: openssl rand -base64 32'
  const file = environment.storeKey === undefined ? readSetting('store_key_file', settings) : undefined
  const text = environment.storeKey ?? file?.text
  if (text === undefined) {
    throw notConfigured(
      'the key that encrypts the session in etcd is missing',
      `set MAILCLAIM_STORE_KEY, or give login --store-key-file; ${make}`,
    )
  }
  if (file !== undefined) requirePrivate(file)
  const source = file?.name ?? 'MAILCLAIM_STORE_KEY'
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

function requirePrivate({ path, name }: SettingFile): void {
  if (POSIX && (statSync(path).mode & 0o077) !== 0)
    throw notConfigured(`${name} is not used, because others may read it`, `chmod 600 ${path}`)
}

/** A file that a setting names. */
interface SettingFile {
  readonly path: string
  /** With the option or variable that the path is from, for messages. */
  readonly name: string
  readonly text: string
}

function readSetting(
  key: 'store_ca' | 'store_cert' | 'store_key_file',
  settings: Pick<Settings, 'chosen'>,
): SettingFile | undefined {
  const path = settingValue(key, settings)
  if (path === undefined) return undefined
  const name = `the file ${path} (${settingSource(key, settings)})`
  try {
    return { path, name, text: readFileSync(path, 'utf8') }
  } catch (error) {
    throw notConfigured(`${name} cannot be read: ${reason(error)}`, 'check the path')
  }
}

function notConfigured(message: string, hint: string): CliError {
  return new CliError('store_not_configured', Exit.notConfigured, message, { hint })
}
