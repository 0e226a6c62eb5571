import { readdirSync, rmSync } from 'node:fs'
import { chmod, lstat, mkdir, stat } from 'node:fs/promises'
import { dirname } from 'node:path'
import { CliError, Exit } from '../errors.ts'
import { codeOf, POSIX, reason } from './file-errors.ts'

/**
 * Makes sure that a folder exists, is ours alone (0700, whatever the umask) and is no link that another user planted.
 * Folders above it that do not exist are made in the same way; those that exist are left as they are.
 *
 * @param existing `leave` for a folder that a person may have named, and which may be their home or `/tmp`: what is
 *   there keeps its rights, and the system's own will do.
 * @throws CliError `directory_unusable`, exit 1, with the path and a remedy.
 */
export async function ensurePrivateDirectory(
  path: string,
  existing: 'tighten' | 'leave' = 'tighten',
): Promise<void> {
  await makeDirectory(path)
  if (!POSIX) return
  const link = await lstat(path).catch((error: unknown) => {
    throw directoryUnusable(path, `it cannot be looked at (${reason(error)})`, error)
  })
  if (link.isSymbolicLink() && link.uid !== ownUser() && link.uid !== 0) {
    throw directoryUnusable(path, 'it is a link that another user made')
  }
  const target = await stat(path).catch(() => undefined)
  if (target === undefined || !target.isDirectory()) throw directoryUnusable(path, 'it is not a folder')
  const fits = target.uid === ownUser() || (existing === 'leave' && target.uid === 0)
  if (!fits) throw directoryUnusable(path, 'it belongs to another user')
  if (existing === 'tighten' && (target.mode & 0o777) !== 0o700) {
    await chmod(path, 0o700).catch((error: unknown) => {
      throw directoryUnusable(
        path,
        `others can enter it, and that cannot be changed (${reason(error)})`,
        error,
      )
    })
  }
}

async function makeDirectory(path: string, parentIsThere = false): Promise<void> {
  try {
    await mkdir(path, { mode: 0o700 })
    // The umask may have taken our own rights as well.
    if (POSIX) await chmod(path, 0o700)
  } catch (error) {
    const code = codeOf(error)
    if (code === 'EEXIST') return
    // Below a link to nothing, in /proc and in automounted folders, a parent that is there does not help.
    if (code !== 'ENOENT' || parentIsThere || dirname(path) === path) {
      throw directoryUnusable(path, `it cannot be made (${reason(error)})`, error)
    }
    await makeDirectory(dirname(path))
    await makeDirectory(path, true)
  }
}

function directoryUnusable(path: string, why: string, cause?: unknown): CliError {
  return new CliError('directory_unusable', Exit.bug, `the folder ${path} cannot be used: ${why}`, {
    hint: 'correct its owner and rights, or set MAILCLAIM_STATE_DIR and MAILCLAIM_CONFIG_DIR to folders of your own',
    cause,
  })
}

/**
 * The names in a directory; none where it does not exist.
 *
 * @throws CliError `directory_unusable`, exit 1.
 */
export function namesIn(directory: string): string[] {
  try {
    return readdirSync(directory)
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return []
    throw directoryUnusable(directory, `it cannot be read (${reason(error)})`, error)
  }
}

/** Removes a directory of ours with all that is in it, as far as the disk lets us. Never throws. */
export function removeTree(path: string): void {
  try {
    rmSync(path, { recursive: true, force: true })
  } catch {
    // What stays is of no use to anybody.
  }
}

/** The user that this process runs as; -1 where the system has no numbers for them. */
export function ownUser(): number {
  return process.getuid?.() ?? -1
}
