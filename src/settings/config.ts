import { join } from 'node:path'
import type { Context } from '../context.ts'
import { CliError, usageError } from '../errors.ts'
import {
  parseBaseUrl,
  parseIssuer,
  parsePort,
  parseServerAddress,
  splitServerAddresses,
} from './addresses.ts'
import { withConfigLock } from './config-lock.ts'
import { ensurePrivateDirectory, moveAway, readJson, requireFormat, writeDurable } from './files.ts'
import { parseProfileName } from './profiles.ts'

/** What a profile can set. Lists are separated by spaces or commas where a person writes them. */
export interface ProfileConfig {
  base_url?: string
  client_id?: string
  issuer?: string
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

export type SettingKey = keyof ProfileConfig

interface KeyDefinition {
  /** As it is typed on the command line. */
  readonly name: string
  readonly says: string
  readonly choices?: readonly string[]
  /** @throws CliError exit 2 or 3 where the text is no value of this key. */
  parse(text: string): NonNullable<ProfileConfig[SettingKey]>
}

const list = (text: string) => text.split(/[\s,]+/).filter((part) => part !== '')

function oneOf<T extends string>(name: string, ...choices: readonly T[]) {
  const parse = (text: string): T => {
    const value = choices.find((candidate) => candidate === text)
    if (value === undefined)
      throw usageError(`${name}: ${JSON.stringify(text)} is not one of ${choices.join(', ')}`)
    return value
  }
  return { choices, parse }
}

/** What may be waited for days: a claim is open for a week, say. */
export const A_MONTH_SECONDS = 31 * 24 * 3600

/** Seconds, whole or with a fraction, from 0.1 to `most`. @throws CliError exit 2. */
export function parseTimeout(text: string, option: string, most = 3600): number {
  const seconds = /^\d+(\.\d+)?$/.test(text) ? Number(text) : Number.NaN
  if (!(seconds >= 0.1 && seconds <= most)) {
    throw usageError(`${option}: ${JSON.stringify(text)} is not a number of seconds between 0.1 and ${most}`)
  }
  return seconds
}

export const CONFIG_KEYS: Readonly<Record<SettingKey, KeyDefinition>> = {
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
  issuer: {
    name: 'issuer',
    says: 'the authorization server that a login goes to, where its name is not the base URL (RFC 8414)',
    parse: parseIssuer,
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
    ...oneOf('store', 'keychain', 'file'),
  },
  on_interrupted: {
    name: 'on-interrupted',
    says: 'after a refresh with no known outcome: stop (safe) or retry (may revoke the grant)',
    ...oneOf('on-interrupted', 'stop', 'retry'),
  },
  resolver: {
    name: 'resolver',
    says: 'DNS resolvers, as IP or IP:PORT, separated by spaces',
    parse: (text) => {
      const servers = splitServerAddresses(text, 'resolver')
      for (const server of servers) parseServerAddress(server, 'resolver')
      return servers
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
export function configKey(name: string): SettingKey {
  const key = name.replaceAll('-', '_')
  if (Object.hasOwn(CONFIG_KEYS, key)) return key as SettingKey
  throw usageError(
    `${JSON.stringify(name)} is not a setting`,
    `the settings are ${Object.values(CONFIG_KEYS)
      .map((definition) => definition.name)
      .join(', ')}`,
  )
}

/**
 * A profile with one setting changed, or without it. The issuer goes with the base URL that it belongs to: a sign-in at
 * the issuer of one service must never be handed to another service.
 */
export function withSetting(
  profile: ProfileConfig | undefined,
  key: SettingKey,
  value: ProfileConfig[SettingKey],
): ProfileConfig {
  const { [key]: before, ...rest } = profile ?? {}
  const others: ProfileConfig = rest
  if (key === 'base_url' && before !== undefined && before !== value) delete others.issuer
  return value === undefined ? others : { ...others, [key]: value }
}

/** A setting's value as it is typed and shown: lists with spaces between. */
export function settingText(value: NonNullable<ProfileConfig[SettingKey]>): string {
  return Array.isArray(value) ? value.join(' ') : String(value)
}

export function configPath(context: Pick<Context, 'directories'>): string {
  return join(context.directories.config, 'config.json')
}

/**
 * Reads the configuration; a missing file is an empty one.
 *
 * @throws CliError `file_unusable`, with the path and a remedy, where the file is damaged, holds a value that is none
 *   or is from a later version; it is left as it is.
 */
export async function readConfig(context: Pick<Context, 'directories'>): Promise<Config> {
  return (await readFile(context, refuse)) ?? { version: 1, profiles: {} }
}

/**
 * The part of the configuration that can be used, for what repairs or examines it: values that are none are left out,
 * a file that cannot be read counts as empty, and `problem` says what is wrong.
 */
export async function readUsableConfig(
  context: Pick<Context, 'directories'>,
): Promise<{ config: Config; problem: CliError | undefined }> {
  try {
    return { config: await readConfig(context), problem: undefined }
  } catch (problem) {
    if (!(problem instanceof CliError)) throw problem
    const config = await readFile(context, () => undefined).catch(() => undefined)
    return { config: config ?? { version: 1, profiles: {} }, problem }
  }
}

/**
 * Reads, changes and writes the configuration. What this version does not know is kept, and so is a value that is none,
 * so that one bad value does not stop the others from being changed. Writers at the same time wait for each other.
 *
 * @throws CliError as `readConfig`, where the file is not even JSON; `cannot_write` and `directory_unusable`, exit 1.
 */
export async function updateConfig(context: Context, change: (config: Config) => void): Promise<Config> {
  await ensurePrivateDirectory(context.directories.config, 'leave')
  return withConfigLock(context, async () => {
    const config = (await readFile(context, (_error, value) => value)) ?? { version: 1, profiles: {} }
    change(config)
    await writeDurable(configPath(context), `${JSON.stringify(config, null, 2)}\n`)
    return config
  })
}

/** What becomes of a value that is none: thrown, left out (undefined) or kept. */
type OnBadValue = (error: Error, value: unknown) => unknown

const refuse: OnBadValue = (error) => {
  throw error
}

function readFile(
  context: Pick<Context, 'directories'>,
  onBadValue: OnBadValue,
): Promise<Config | undefined> {
  const path = configPath(context)
  return readJson(path, (value) => parseConfig(value, onBadValue), {
    remedy: `it was left as it is; mailclaim config set and unset can replace a bad value, or move the file away: ${moveAway(path)}`,
  })
}

/** Throws an Error that says what is wrong; `readJson` adds the path and the remedy. Keys of a later version stay. */
function parseConfig(value: unknown, onBadValue: OnBadValue): Config {
  const { current_profile: current, profiles = {}, ...others } = record(value, 'the file')
  requireFormat(others['version'], 1)
  const config: Config = { ...others, version: 1, profiles: {} }
  if (current !== undefined) {
    const name = judged('current_profile', current, (text) => parseProfileName(text), onBadValue)
    if (name !== undefined) config.current_profile = name as string
  }
  for (const [name, fields] of Object.entries(record(profiles, 'profiles'))) {
    const known = judged(`profiles.${name}`, name, (text) => parseProfileName(text), onBadValue)
    if (known === undefined) continue
    config.profiles[name] = parseProfileConfig(record(fields, `profiles.${name}`), name, onBadValue)
  }
  return config
}

function parseProfileConfig(
  fields: Record<string, unknown>,
  profile: string,
  onBadValue: OnBadValue,
): ProfileConfig {
  const parsed = Object.entries(fields).map(([key, value]) => {
    // A key of a later version is kept for that version to read.
    if (!Object.hasOwn(CONFIG_KEYS, key)) return [key, value]
    // Addresses are judged where they are used: an unusable base URL must not keep anyone from correcting it.
    const parse = key === 'base_url' ? (text: string) => text : CONFIG_KEYS[key as SettingKey].parse
    return [key, judged(`profiles.${profile}.${key}`, value, parse, onBadValue)]
  })
  return Object.fromEntries(parsed.filter(([, value]) => value !== undefined)) as ProfileConfig
}

function judged(
  name: string,
  value: unknown,
  parse: (text: string) => unknown,
  onBadValue: OnBadValue,
): unknown {
  const text = Array.isArray(value) ? value.join(' ') : typeof value === 'number' ? String(value) : value
  try {
    if (typeof text !== 'string') throw new Error('it is not text')
    return parse(text)
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error)
    return onBadValue(new Error(`${name} has no usable value: ${why}`), value)
  }
}

function record(value: unknown, name: string): Record<string, unknown> {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new Error(`${name} is not an object`)
  return value as Record<string, unknown>
}
