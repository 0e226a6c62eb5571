import { readlinkSync, realpathSync } from 'node:fs'
import { join } from 'node:path'
import type { Context } from '../context.ts'
import { CliError } from '../errors.ts'
import { writeDurable } from '../storage/atomic-file.ts'
import { catchError } from '../storage/file-errors.ts'
import { readJson, requireFormat } from '../storage/json-file.ts'
import { withLock } from '../storage/lock.ts'
import { ensurePrivateDirectory } from '../storage/private-directory.ts'
import { type ProfileConfig, type SettingKey, settingText } from './table.ts'

/** How long a writer waits for another one, in milliseconds: a change takes only a few. */
const LOCK_TIMEOUT_MS = 5000

/** The configuration file. Values are text as it is typed, and are parsed when they are used. */
export interface Config {
  version: 1
  /** The profile that `auth switch` chose. */
  current_profile?: string
  profiles: Record<string, ProfileConfig>
}

type ConfigDirectory = Pick<Context, 'directories'>

/**
 * A profile with one setting changed, or removed (undefined). The authorization server goes with the base URL that it
 * belongs to: a sign-in at the server of one service must never be handed to another service.
 */
export function withSetting(
  profile: ProfileConfig | undefined,
  key: SettingKey,
  value: string | undefined,
): ProfileConfig {
  const { [key]: before, ...rest } = profile ?? {}
  const others: ProfileConfig = rest
  if (key === 'base_url' && before !== undefined && settingText(before).replace(/\/+$/, '') !== value) {
    delete others.issuer
    delete others.authorization_endpoint
  }
  return value === undefined ? others : { ...others, [key]: value }
}

/** The path of the configuration file; where that is a symbolic link, as of a dotfile manager, the path of its target. */
export function configPath({ directories }: ConfigDirectory): string {
  let path = join(directories.config, 'config.json')
  catchError(() => {
    // Throws unless the file itself is a link: a path through links is shown as it was given.
    readlinkSync(path)
    path = realpathSync(path)
  })
  return path
}

/**
 * Reads the configuration; a missing file is an empty one.
 *
 * @throws CliError `cannot_read`, with the path and a remedy, if the file is damaged or was written by a later version. It
 *   is left as it is.
 */
export async function readConfig(context: ConfigDirectory): Promise<Config> {
  return (await readJson(configPath(context), parseConfig)) ?? { version: 1, profiles: {} }
}

/**
 * Reads, changes and writes the configuration while no other process does. What this version doesn't know is kept. On a
 * system without file locks the change is made anyway: what can be lost is a setting, not a session.
 *
 * @throws CliError as `readConfig`; `config_busy`, `cannot_write`, exit 1.
 */
export async function updateConfig(
  context: Pick<Context, 'directories' | 'clock' | 'random' | 'interrupts'>,
  change: (config: Config) => void,
): Promise<Config> {
  await ensurePrivateDirectory(context.directories.config, 'leave')
  const lock = join(context.directories.config, 'config.lock')
  const busy = () =>
    new CliError('config_busy', `another mailclaim is changing the settings (${lock})`, {
      hint: 'let it finish, or end it, and run this command again; do not delete the lock file',
    })
  const waiting = { timeoutMs: LOCK_TIMEOUT_MS, busy, withoutLocks: 'continue' as const }
  return withLock(lock, context, waiting, async () => {
    const config = await readConfig(context)
    change(config)
    writeDurable(configPath(context), `${JSON.stringify(config, null, 2)}\n`)
    return config
  })
}

/** Throws an Error that says what is wrong; `readJson` adds the path and the remedy. */
function parseConfig(value: unknown): Config {
  const config = requireObject(value, 'the file')
  requireFormat(config['version'], 1)
  const { current_profile: current, profiles = {} } = config
  if (current !== undefined && typeof current !== 'string') throw new Error('current_profile is not text')
  for (const [name, settings] of Object.entries(requireObject(profiles, 'profiles')))
    requireObject(settings, `profiles.${name}`)
  return { ...config, profiles } as Config
}

function requireObject(value: unknown, name: string): Record<string, unknown> {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new Error(`${name} is not an object`)
  return value as Record<string, unknown>
}
