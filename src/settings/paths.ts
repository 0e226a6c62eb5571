import { homedir } from 'node:os'
import { isAbsolute, join } from 'node:path'
import type { Directories } from '../context.ts'
import { CliError } from '../errors.ts'

type System = Pick<NodeJS.Process, 'env' | 'platform'>

/**
 * The directories that the environment names, or else the platform's. They are looked up when a command needs them: `node:os`
 * takes 0.5 ms of a start, and help doesn't need it.
 *
 * @param system what `process` says of the platform and the environment.
 */
export function readDirectories(system: System): Directories {
  // The environment loses them when the program has started.
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
 * The platform's directories: `~/.config/mailclaim` and `~/.local/state/mailclaim` on Linux (XDG Base Directory), the
 * Library directories on macOS, AppData on Windows.
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
 * The user's home. In a container, the user may have no entry and no HOME, and a key and a base URL are enough: then a directory
 * that doesn't exist, in which nothing is found and nothing can be saved.
 */
function homeDirectory(): string {
  try {
    return homedir() || '/nonexistent'
  } catch {
    return '/nonexistent'
  }
}

/** @throws CliError `no_home`, exit 1: relative directories would scatter secrets over the current directories. */
export function requireAbsoluteDirectories(directories: Directories): void {
  const relative = [directories.config, directories.state].find((path) => !isAbsolute(path))
  if (relative === undefined) return
  throw new CliError(
    'no_home',
    `there is no home directory for settings and sessions (${JSON.stringify(relative)} is relative)`,
    { hint: 'set HOME, or MAILCLAIM_CONFIG_DIR and MAILCLAIM_STATE_DIR, to absolute paths' },
  )
}
