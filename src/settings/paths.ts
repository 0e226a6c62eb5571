import { homedir, userInfo } from 'node:os'
import { isAbsolute, join } from 'node:path'
import envPaths from 'env-paths'
import type { Directories } from '../context.ts'
import { CliError, Exit } from '../errors.ts'

/**
 * The platform's folders: `~/.config/mailclaim` and `~/.local/state/mailclaim` on Linux (XDG Base Directory), the
 * Library folders on macOS, AppData on Windows.
 */
export function platformDirectories(): Omit<Directories, 'user'> {
  const paths = envPaths('mailclaim', { suffix: '' })
  // env-paths calls XDG_STATE_HOME "log"; elsewhere its data folder is the one that outlives a clean-up.
  return { config: paths.config, state: process.platform === 'linux' ? paths.log : paths.data }
}

/** A directory in the home that the system knows for this user, whatever HOME and XDG_STATE_HOME say. */
export function userDirectory(): string {
  if (process.platform === 'win32') return platformDirectories().state
  let home: string
  try {
    home = userInfo().homedir
  } catch {
    home = homedir() // A container may run as a user that has no entry.
  }
  const below = process.platform === 'darwin' ? ['Library', 'Application Support'] : ['.local', 'state']
  return join(home, ...below, 'mailclaim')
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
