import { readlinkSync, realpathSync } from 'node:fs'
import { join } from 'node:path'
import type { Context } from '../context.ts'
import { CliError } from '../errors.ts'
import { writeFileDurably } from '../storage/atomic-file.ts'
import { catchError } from '../storage/file-errors.ts'
import { readJsonFile, requireFormatNumber } from '../storage/json-file.ts'
import { withLock } from '../storage/lock.ts'
import { ensurePrivateDirectory } from '../storage/private-directory.ts'
import { formatSetting, type ProfileConfig, type SettingKey } from './table.ts'

/** Milliseconds to wait for the lock on the configuration file, which another process needs only for a few milliseconds. */
const LOCK_TIMEOUT_MS = 5000

/** Content of the configuration file. Values of settings are unparsed: `getSetting` parses a value when it is used. */
export interface ConfigFile {
  version: 1
  /** Name of the profile that `auth switch` chose; absent if `auth switch` was never used. */
  current_profile?: string
  profiles: Record<string, ProfileConfig>
}

type ConfigDirectory = Pick<Context, 'directories'>

/**
 * Returns a copy of the profile with one setting changed, or removed if `value` is undefined. Replacing or removing a base URL also
 * removes the issuer and authorization endpoint: otherwise the next login would send a code of the former authorization server to
 * another service.
 */
export function copyProfileWithChangedSetting(
  profile: ProfileConfig | undefined,
  key: SettingKey,
  value: string | undefined,
): ProfileConfig {
  const { [key]: before, ...rest } = profile ?? {}
  const others: ProfileConfig = rest
  if (key === 'base_url' && before !== undefined && formatSetting(before).replace(/\/+$/, '') !== value) {
    delete others.issuer
    delete others.authorization_endpoint
  }
  return value === undefined ? others : { ...others, [key]: value }
}

/** Returns the path of the configuration file, or, if that is a symbolic link, as dotfile managers create, of the link's target. */
export function resolveConfigFileLink({ directories }: ConfigDirectory): string {
  let path = join(directories.config, 'config.json')
  catchError(() => {
    // If the file isn't a link, `readlinkSync` throws, so the path stays as it is, even with links among its directories: messages
    // then show the path that the user knows.
    readlinkSync(path)
    path = realpathSync(path)
  })
  return path
}

/**
 * Reads the configuration file; a missing file counts as an empty one.
 *
 * @throws CliError `cannot_read`, exit 1, for an unreadable or damaged file or one of a later version
 */
export async function readConfig(context: ConfigDirectory): Promise<ConfigFile> {
  return (await readJsonFile(resolveConfigFileLink(context), parseConfig)) ?? { version: 1, profiles: {} }
}

/**
 * Reads, changes and writes the configuration file under an exclusive lock. Where files can't be locked, works without the lock:
 * of two concurrent changes, one may be lost (sessions are in other files).
 *
 * @throws CliError `config_busy`, `cannot_write` or `cannot_read`, exit 1
 */
export async function updateConfig(
  context: Pick<Context, 'directories' | 'clock' | 'random' | 'interrupts'>,
  change: (config: ConfigFile) => void,
): Promise<ConfigFile> {
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
    writeFileDurably(resolveConfigFileLink(context), `${JSON.stringify(config, null, 2)}\n`)
    return config
  })
}

/** Validates the parsed JSON of the configuration file. @throws Error with the defect, or CliError for a file of a later version */
function parseConfig(value: unknown): ConfigFile {
  const config = requireObject(value, 'the file')
  requireFormatNumber(config['version'], 1)
  const { current_profile: current, profiles = {} } = config
  if (current !== undefined && typeof current !== 'string') throw new Error('current_profile is not text')
  for (const [name, settings] of Object.entries(requireObject(profiles, 'profiles')))
    requireObject(settings, `profiles.${name}`)
  return { ...config, profiles } as ConfigFile
}

function requireObject(value: unknown, name: string): Record<string, unknown> {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new Error(`${name} is not an object`)
  return value as Record<string, unknown>
}
