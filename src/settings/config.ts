import { join } from 'node:path'
import type { Context } from '../context.ts'
import { CliError, Exit } from '../errors.ts'
import { writeDurable } from '../storage/durable-file.ts'
import { moveAway, readJson, requireFormat } from '../storage/json-file.ts'
import { withLockIfAny } from '../storage/lock.ts'
import { ensurePrivateDirectory } from '../storage/private-directory.ts'
import { DEFAULT_PROFILE, parseProfileName } from './profiles.ts'
import {
  type ProfileConfig,
  SETTINGS,
  type Setting,
  type SettingKey,
  settingName,
  settingText,
} from './table.ts'

/** How long a writer waits for another one, in milliseconds: a change takes only a few. */
const LOCK_DEADLINE_MS = 5000

/** The configuration file. */
export interface Config {
  version: 1
  /** The profile that `auth switch` chose. */
  current_profile?: string
  profiles: Record<string, ProfileConfig>
}

type ConfigDirectory = Pick<Context, 'directories'>

/**
 * A profile with one setting changed, or removed (undefined). The issuer goes with the base URL that it belongs to: a
 * sign-in at the issuer of one service must never be handed to another service.
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

export function configPath({ directories }: ConfigDirectory): string {
  return join(directories.config, 'config.json')
}

/**
 * Reads the configuration; a missing file is an empty one.
 *
 * @throws CliError `file_unusable`, with the path and a remedy, if the file is damaged, has an invalid value or was
 *   written by a later version. The file is left as it is.
 */
export async function readConfig(context: ConfigDirectory): Promise<Config> {
  return (await readFile(context, refuseIn(configPath(context)))) ?? { version: 1, profiles: {} }
}

/**
 * The usable part of the configuration, for commands that repair or examine it: invalid values are left out, and an
 * unreadable file counts as empty. `problem` says what is wrong.
 */
export async function readUsableConfig(
  context: ConfigDirectory,
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
 * Reads, changes and writes the configuration while no other process does. What this version doesn't know is kept, and
 * so are invalid values, so that a bad value doesn't keep the others from being changed. On a system without file locks
 * the change is made anyway: what can be lost is a setting, not a session.
 *
 * @throws CliError as `readConfig`, if the file isn't even JSON; `config_busy`, `cannot_write` and
 *   `directory_unusable`, exit 1.
 */
export async function updateConfig(
  context: Pick<Context, 'directories' | 'clock' | 'random' | 'interrupts'>,
  change: (config: Config) => void,
): Promise<Config> {
  await ensurePrivateDirectory(context.directories.config, 'leave')
  const lock = join(context.directories.config, 'config.lock')
  const busy = () =>
    new CliError('config_busy', Exit.bug, `another mailclaim is changing the settings (${lock})`, {
      hint: 'let it finish, or end it, and run this command again; do not delete the lock file',
    })
  return withLockIfAny(lock, context, { deadlineMs: LOCK_DEADLINE_MS, busy }, async () => {
    const config = (await readFile(context, ({ value }) => value)) ?? { version: 1, profiles: {} }
    change(config)
    await writeDurable(configPath(context), `${JSON.stringify(config, null, 2)}\n`)
    return config
  })
}

/** A value that can't be used. */
interface BadValue {
  /** Its place in the file: `profiles.work.store`. */
  readonly name: string
  readonly value: unknown
  readonly why: string
  /** The command that removes it, if there is one. */
  readonly removal: string | undefined
}

/** What to do with a bad value: throw, leave it out (undefined) or keep it. */
type OnBadValue = (found: BadValue) => unknown

function refuseIn(path: string): OnBadValue {
  return ({ name, why, removal }) => {
    const message = `the file ${path} cannot be used: ${name} has no usable value: ${why}`
    throw new CliError('file_unusable', Exit.bug, message, {
      hint: removal ? `remove the value: ${removal}` : `correct it, or move the file away: ${moveAway(path)}`,
    })
  }
}

function readFile(context: ConfigDirectory, onBadValue: OnBadValue): Promise<Config | undefined> {
  return readJson(configPath(context), (value) => parseConfig(value, onBadValue))
}

/** Throws an Error that says what is wrong; `readJson` adds the path and the remedy. */
function parseConfig(value: unknown, onBadValue: OnBadValue): Config {
  const { current_profile: current, profiles = {}, ...others } = requireObject(value, 'the file')
  requireFormat(others['version'], 1)
  const config: Config = { ...others, version: 1, profiles: {} }
  if (current !== undefined) {
    const removal = `mailclaim auth switch ${DEFAULT_PROFILE}`
    const name = parseValue('current_profile', current, parseProfileName, removal, onBadValue)
    if (name !== undefined) config.current_profile = name as string
  }
  for (const [name, fields] of Object.entries(requireObject(profiles, 'profiles'))) {
    const known = parseValue(`profiles.${name}`, name, parseProfileName, undefined, onBadValue)
    if (known === undefined) continue
    config.profiles[name] = parseProfileConfig(requireObject(fields, `profiles.${name}`), name, onBadValue)
  }
  return config
}

function parseProfileConfig(
  fields: Record<string, unknown>,
  profile: string,
  onBadValue: OnBadValue,
): ProfileConfig {
  const parsed = Object.entries(fields).map(([key, value]) => {
    // A later version may know this key.
    if (!Object.hasOwn(SETTINGS, key)) return [key, value]
    const setting: Setting<unknown> = SETTINGS[key as SettingKey]
    const parse = (text: string) => (setting.late ? text : setting.parse(text, settingName(key)))
    const removal = `mailclaim config unset ${settingName(key)}${profile === DEFAULT_PROFILE ? '' : ` --profile ${profile}`}`
    return [key, parseValue(`profiles.${profile}.${key}`, value, parse, removal, onBadValue)]
  })
  return Object.fromEntries(parsed.filter(([, value]) => value !== undefined)) as ProfileConfig
}

function parseValue(
  name: string,
  value: unknown,
  parse: (text: string) => unknown,
  removal: string | undefined,
  onBadValue: OnBadValue,
): unknown {
  try {
    const isText = typeof value === 'string' || typeof value === 'number' || Array.isArray(value)
    if (!isText) throw new Error('it is not text')
    return parse(settingText(value))
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error)
    return onBadValue({ name, value, why, removal })
  }
}

function requireObject(value: unknown, name: string): Record<string, unknown> {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new Error(`${name} is not an object`)
  return value as Record<string, unknown>
}
