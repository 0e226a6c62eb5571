import { isAbsolute } from 'node:path'
import envPaths from 'env-paths'
import type { Directories } from '../context.ts'
import { CliError, Exit } from '../errors.ts'

/**
 * The platform's folders: `~/.config/mailclaim` and `~/.local/state/mailclaim` on Linux (XDG Base Directory), the
 * Library folders on macOS, AppData on Windows.
 */
export function platformDirectories(): Directories {
  const paths = envPaths('mailclaim', { suffix: '' })
  // env-paths calls XDG_STATE_HOME "log"; elsewhere its data folder is the one that outlives a clean-up.
  return { config: paths.config, state: process.platform === 'linux' ? paths.log : paths.data }
}

/** @throws CliError `no_home`, exit 1: a relative folder would scatter secrets over the folders one works in. */
export function requireAbsolute(directories: Directories): void {
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
