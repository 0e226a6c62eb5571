import { join } from 'node:path'
import type { Context } from '../context.ts'
import { usageError } from '../errors.ts'
import { parseBaseUrl, parsePort, parseServerAddress } from './addresses.ts'
import { ensurePrivateDirectory, readJson, writeDurable } from './files.ts'
import { DEFAULT_PROFILE, parseProfileName } from './profiles.ts'

/** What a profile can set. Lists are separated by spaces or commas where a person writes them. */
export interface ProfileConfig {
  base_url?: string
  client_id?: string
  scope?: string[]
  resource?: string
  store?: 'keychain' | 'file'
  on_interrupted?: 'stop' | 'retry'
  resolver?: string[]
  authoritative_port?: number
  http_timeout?: number
}

export interface Config {
  version: 1
  current_profile?: string
  profiles: Record<string, ProfileConfig>
}

type Key = keyof ProfileConfig

interface KeyDefinition {
  /** As it is typed on the command line. */
  readonly name: string
  readonly says: string
  /** @throws CliError exit 2 or 3 where the text is no value of this key. */
  parse(text: string): NonNullable<ProfileConfig[Key]>
}

const list = (text: string) => text.split(/[\s,]+/).filter((part) => part !== '')

function oneOf<T extends string>(name: string, ...values: readonly T[]) {
  return (text: string): T => {
    const value = values.find((candidate) => candidate === text)
    if (value === undefined)
      throw usageError(`${name}: ${JSON.stringify(text)} is not one of ${values.join(', ')}`)
    return value
  }
}

/** Seconds, whole or with a fraction, from 0.1 to 3600. */
export function parseTimeout(text: string, option: string): number {
  const seconds = /^\d+(\.\d+)?$/.test(text) ? Number(text) : Number.NaN
  if (!(seconds >= 0.1 && seconds <= 3600)) {
    throw usageError(`${option}: ${JSON.stringify(text)} is not a number of seconds between 0.1 and 3600`)
  }
  return seconds
}

export const CONFIG_KEYS: Readonly<Record<Key, KeyDefinition>> = {
  base_url: {
    name: 'base-url',
    says: 'the address of the service',
    parse: (text) => parseBaseUrl(text).href.replace(/\/+$/, ''),
  },
  client_id: {
    name: 'client-id',
    says: 'the OAuth client that this program is registered as',
    parse: (text) => {
      if (!/^[\x20-\x7e]+$/.test(text))
        throw usageError('client-id: only printable ASCII characters are allowed (RFC 6749 appendix A.1)')
      return text
    },
  },
  scope: { name: 'scope', says: 'the scopes that a login asks for, separated by spaces', parse: list },
  resource: {
    name: 'resource',
    says: 'the resource that a login asks for (RFC 8707)',
    parse: (text) => {
      if (!URL.canParse(text) || text.includes('#'))
        throw usageError('resource: an absolute URI without a fragment is needed (RFC 8707 §2)')
      return text
    },
  },
  store: {
    name: 'store',
    says: 'where a login keeps its secret: keychain or file',
    parse: oneOf('store', 'keychain', 'file'),
  },
  on_interrupted: {
    name: 'on-interrupted',
    says: 'after a refresh with no known outcome: stop (safe) or retry (may revoke the grant)',
    parse: oneOf('on-interrupted', 'stop', 'retry'),
  },
  resolver: {
    name: 'resolver',
    says: 'DNS resolvers, as IP or IP:PORT, separated by spaces',
    parse: (text) => {
      for (const server of list(text)) parseServerAddress(server, 'resolver')
      return list(text)
    },
  },
  authoritative_port: {
    name: 'authoritative-port',
    says: 'the port that authoritative name servers listen on, for private DNS',
    parse: (text) => parsePort(text, 'authoritative-port'),
  },
  http_timeout: {
    name: 'http-timeout',
    says: 'seconds that an HTTP answer may take',
    parse: (text) => parseTimeout(text, 'http-timeout'),
  },
}

/** The key by the name that is typed, `base-url` or `base_url`. */
export function configKey(name: string): Key {
  const key = name.replaceAll('-', '_')
  if (Object.hasOwn(CONFIG_KEYS, key)) return key as Key
  throw usageError(
    `${JSON.stringify(name)} is not a setting`,
    `the settings are ${Object.values(CONFIG_KEYS)
      .map((definition) => definition.name)
      .join(', ')}`,
  )
}

export function configPath(context: Pick<Context, 'directories'>): string {
  return join(context.directories.config, 'config.json')
}

/**
 * Reads the configuration; a missing file is an empty one.
 *
 * @throws CliError with the path and a remedy where the file is damaged or from a later version; it is left as it is.
 */
export async function readConfig(context: Context): Promise<Config> {
  return (await readJson(configPath(context), parseConfig)) ?? { version: 1, profiles: {} }
}

/** Reads, changes and writes the configuration. */
export async function updateConfig(context: Context, change: (config: Config) => void): Promise<Config> {
  const config = await readConfig(context)
  change(config)
  await ensurePrivateDirectory(context.directories.config)
  await writeDurable(configPath(context), `${JSON.stringify(config, null, 2)}\n`)
  return config
}

/** Throws an Error that says what is wrong; `readJson` adds the path and the remedy. */
function parseConfig(value: unknown): Config {
  const object = record(value, 'the file')
  if (object['version'] !== 1)
    throw new Error(`it is of version ${String(object['version'])}, and this program knows version 1`)
  const config: Config = { version: 1, profiles: {} }
  if (object['current_profile'] !== undefined)
    config.current_profile = parseProfileName(String(object['current_profile']))
  for (const [name, fields] of Object.entries(record(object['profiles'] ?? {}, 'profiles'))) {
    parseProfileName(name)
    config.profiles[name] = parseProfileConfig(record(fields, `profiles.${name}`), name)
  }
  return config
}

function parseProfileConfig(fields: Record<string, unknown>, profile: string): ProfileConfig {
  const parsed: Record<string, unknown> = {}
  for (const [key, value] of Object.entries(fields)) {
    // A key of a later version is kept for that version to read.
    if (!Object.hasOwn(CONFIG_KEYS, key)) {
      parsed[key] = value
      continue
    }
    const text = Array.isArray(value) ? value.join(' ') : typeof value === 'number' ? String(value) : value
    if (typeof text !== 'string') throw new Error(`profiles.${profile}.${key} is not text`)
    // Addresses are judged where they are used: an unusable base URL must not keep anyone from correcting it.
    parsed[key] = key === 'base_url' ? text : CONFIG_KEYS[key as Key].parse(text)
  }
  return parsed as ProfileConfig
}

function record(value: unknown, name: string): Record<string, unknown> {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new Error(`${name} is not an object`)
  return value as Record<string, unknown>
}

export { DEFAULT_PROFILE }
