import { homedir, userInfo } from 'node:os'
import { isAbsolute, join } from 'node:path'
import type { Directories } from '../context.ts'
import { CliError, Exit } from '../errors.ts'

type System = Pick<NodeJS.Process, 'env' | 'platform'>

/**
 * The platform's directories: `~/.config/mailclaim` and `~/.local/state/mailclaim` on Linux (XDG Base Directory), the
 * Library directories on macOS, AppData on Windows. They are relative, and refused later, if the system knows no home.
 *
 * @param system what `process` says of the platform and the environment.
 */
export function platformDirectories({ env, platform }: System): Omit<Directories, 'user'> {
  const home = knownHome(homedir)
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

/** A directory in the home that the system knows for this user, whatever HOME and XDG_STATE_HOME say. */
export function userDirectory(system: System): string {
  if (system.platform === 'win32') return platformDirectories(system).state
  const home = knownHome(() => userInfo().homedir) || knownHome(homedir)
  const path = system.platform === 'darwin' ? ['Library', 'Application Support'] : ['.local', 'state']
  return join(home, ...path, 'mailclaim')
}

/** In a container, the user may have no entry and no HOME: the system's functions then throw. */
function knownHome(lookUp: () => string): string {
  try {
    return lookUp()
  } catch {
    return ''
  }
}

/** @throws CliError `no_home`, exit 1: relative directories would scatter secrets over the current directories. */
export function requireAbsolute(directories: Pick<Directories, 'config' | 'state'>): void {
  for (const path of [directories.config, directories.state]) {
    if (isAbsolute(path)) continue
    throw new CliError(
      'no_home',
      Exit.bug,
      `there is no home directory for settings and sessions (${JSON.stringify(path)} is relative)`,
      {
        hint: 'set HOME, or MAILCLAIM_CONFIG_DIR and MAILCLAIM_STATE_DIR, to absolute paths',
      },
    )
  }
}
