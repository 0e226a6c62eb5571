import { homedir } from 'node:os'
import { isAbsolute, join } from 'node:path'
import type { Directories } from '../context.ts'
import { CliError } from '../errors.ts'

type System = Pick<NodeJS.Process, 'env' | 'platform'>

/**
 * Resolves the directories of settings and state: `MAILCLAIM_CONFIG_DIR` and `MAILCLAIM_STATE_DIR`, else the platform's defaults,
 * determined only on use, because loading `node:os` delays a start.
 *
 * @param system `process`, or a stand-in with another platform and environment
 */
export function resolveDirectories(system: System): Directories {
  // Read both variables now: before the getters below run, `main` deletes all `MAILCLAIM_…` variables from the environment.
  const { MAILCLAIM_CONFIG_DIR: config, MAILCLAIM_STATE_DIR: state } = system.env
  return {
    get config() {
      return config || platformDirectories(system).config
    },
    get state() {
      return state || platformDirectories(system).state
    },
  }
}

/**
 * Returns the platform's default directories for settings and state; except on macOS and Windows, by the XDG Base Directory
 * Specification.
 */
function platformDirectories({ env, platform }: System): Directories {
  const home = homeDirectory()
  switch (platform) {
    case 'win32':
      return {
        config: join(env['APPDATA'] || join(home, 'AppData', 'Roaming'), 'mailclaim', 'Config'),
        state: join(env['LOCALAPPDATA'] || join(home, 'AppData', 'Local'), 'mailclaim', 'Data'),
      }
    case 'darwin':
      return {
        config: join(home, 'Library', 'Preferences', 'mailclaim'),
        state: join(home, 'Library', 'Application Support', 'mailclaim'),
      }
    default:
      return {
        config: join(env['XDG_CONFIG_HOME'] || join(home, '.config'), 'mailclaim'),
        state: join(env['XDG_STATE_HOME'] || join(home, '.local', 'state'), 'mailclaim'),
      }
  }
}

/**
 * Returns the user's home directory. For a user without one, as in a container, returns a path that doesn't exist rather than
 * failing: with an API key and a base URL, most commands need no directory.
 */
function homeDirectory(): string {
  try {
    return homedir() || '/nonexistent'
  } catch {
    return '/nonexistent'
  }
}

/**
 * Rejects a relative directory for settings or state: secrets would be written below the current directory.
 *
 * @throws CliError `no_home`, exit 1
 */
export function requireAbsoluteDirectories(directories: Directories): void {
  const relative = [directories.config, directories.state].find((path) => !isAbsolute(path))
  if (relative === undefined) return
  throw new CliError(
    'no_home',
    `there is no home directory for settings and sessions (${JSON.stringify(relative)} is relative)`,
    { hint: 'set HOME, or MAILCLAIM_CONFIG_DIR and MAILCLAIM_STATE_DIR, to absolute paths' },
  )
}
