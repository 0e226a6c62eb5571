import { readdirSync } from 'node:fs'
import { chmod, lstat, mkdir, stat } from 'node:fs/promises'
import { dirname } from 'node:path'
import { CliError } from '../errors.ts'
import { createChownHint, errnoCode, hintForErrno, IS_POSIX, reasonOf } from './file-errors.ts'

/**
 * Ensures that a directory exists and, except on Windows, that it belongs to this user, has mode 0700, and isn't a link that
 * another user (not root) made. Creates missing parents with mode 0700.
 *
 * @param existing `leave` for a directory that the user may have named, such as `/tmp`: if it exists, its mode stays, and root
 *   may own it
 * @throws CliError `cannot_write`, exit 1, with the path and a hint
 */
export async function ensurePrivateDirectory(
  path: string,
  existing: 'tighten' | 'leave' = 'tighten',
): Promise<void> {
  await makeDirectory(path)
  if (!IS_POSIX) return
  try {
    const link = await lstat(path)
    if (link.isSymbolicLink() && link.uid !== ownUserId() && link.uid !== 0)
      throw directoryUnusable(path, 'it is a link that another user made')
    const target = await stat(path)
    if (!target.isDirectory()) throw directoryUnusable(path, 'it is not a directory')
    const fits = target.uid === ownUserId() || (existing === 'leave' && target.uid === 0)
    if (!fits) throw directoryUnusable(path, 'it belongs to another user')
    if (existing === 'tighten' && (target.mode & 0o777) !== 0o700) await chmod(path, 0o700)
  } catch (error) {
    if (error instanceof CliError) throw error
    throw directoryUnusable(path, `it can't be examined or kept from others (${reasonOf(error)})`, error)
  }
}

async function makeDirectory(path: string, parentExists = false): Promise<void> {
  try {
    await mkdir(path, { mode: 0o700 })
    // Set the mode again: an unusual umask may have removed permissions that the owner needs to create files in the directory.
    if (IS_POSIX) await chmod(path, 0o700)
  } catch (error) {
    const code = errnoCode(error)
    if (code === 'EEXIST') return
    // Retry only once: below a dangling link, in /proc and in automounted directories, `mkdir` fails with ENOENT although
    // the parent exists, so the recursion would be endless.
    if (code !== 'ENOENT' || parentExists || dirname(path) === path) {
      throw directoryUnusable(path, `it can't be created (${reasonOf(error)})`, error)
    }
    await makeDirectory(dirname(path))
    await makeDirectory(path, true)
  }
}

function directoryUnusable(path: string, why: string, cause?: unknown): CliError {
  return new CliError('cannot_write', `the directory ${path} can't be used: ${why}`, {
    hint:
      createChownHint(path) ??
      hintForErrno(
        cause,
        'fix its owner and permissions, or set MAILCLAIM_STATE_DIR and MAILCLAIM_CONFIG_DIR to directories of yours',
      ),
    cause,
  })
}

/**
 * Lists the names in a directory; empty if the directory doesn't exist.
 *
 * @throws CliError `cannot_write`, exit 1, if it can't be read
 */
export function listDirectory(directory: string): string[] {
  try {
    return readdirSync(directory)
  } catch (error) {
    if (errnoCode(error) === 'ENOENT') return []
    throw directoryUnusable(directory, `it can't be read (${reasonOf(error)})`, error)
  }
}

/** Returns this process's user id; -1 on Windows, which has none. */
export function ownUserId(): number {
  return process.getuid?.() ?? -1
}
