import { homedir, userInfo } from 'node:os'
import { isAbsolute, join } from 'node:path'
import type { Directories } from '../context.ts'
import { CliError, Exit } from '../errors.ts'

/**
 * The platform's directories: `~/.config/mailclaim` and `~/.local/state/mailclaim` on Linux (XDG Base Directory), the
 * Library directories on macOS, AppData on Windows. Relative where the system knows no home, which nobody may use.
 *
 * @param platform as `process.platform`.
 */
export function platformDirectories({
  env,
  platform,
}: Pick<NodeJS.Process, 'env' | 'platform'> = process): Omit<Directories, 'user'> {
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
export function userDirectory(): string {
  if (process.platform === 'win32') return platformDirectories().state
  const home = knownHome(() => userInfo().homedir) || knownHome(homedir)
  const below = process.platform === 'darwin' ? ['Library', 'Application Support'] : ['.local', 'state']
  return join(home, ...below, 'mailclaim')
}

/** A container may run as a user that has no entry, and without HOME: the system's functions throw then. */
function knownHome(lookUp: () => string): string {
  try {
    return lookUp()
  } catch {
    return ''
  }
}

/** @throws CliError `no_home`, exit 1: a relative folder would scatter secrets over the folders one works in. */
export function requireAbsolute(directories: Pick<Directories, 'config' | 'state'>): void {
  for (const path of [directories.config, directories.state]) {
    if (isAbsolute(path)) continue
    throw new CliError(
      'no_home',
      Exit.bug,
      `there is no home folder to keep settings and sessions in (${JSON.stringify(path)} is relative)`,
      {
        hint: 'set HOME, or MAILCLAIM_CONFIG_DIR and MAILCLAIM_STATE_DIR, to absolute paths',
      },
    )
  }
}
