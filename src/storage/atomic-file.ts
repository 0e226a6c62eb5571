import { randomBytes } from 'node:crypto'
import {
  closeSync,
  constants,
  fchmodSync,
  fsyncSync,
  openSync,
  renameSync,
  unlinkSync,
  writeSync,
} from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { CliError } from '../errors.ts'
import { catchError, errnoCode, hintFor, IS_POSIX, reasonOf, writeError } from './file-errors.ts'
import { readOwnFile } from './json-file.ts'
import { listDirectory } from './private-directory.ts'

// Follow links on Windows, which lacks O_NOFOLLOW: creating a link there requires permissions that other users don't have.
const NO_FOLLOW = constants.O_NOFOLLOW ?? 0
/**
 * Error codes of file systems that can't flush a directory. These errors are ignored: the file system's own guarantees must
 * suffice.
 */
const NO_DIRECTORY_SYNC: readonly (string | undefined)[] = ['EINVAL', 'ENOTSUP', 'EPERM']
/** Maximum number of retries of replacing a file that another program has open (Windows only). */
const MAX_RENAME_RETRIES = 20

/**
 * File operations of a session, one system call each, so that a test can cut the power between any two. Synchronous except `lock`,
 * because a note is written between two steps of a connection. Each operation throws the system's error unless its comment names
 * another.
 */
export const realDisk = {
  /** Reads a complete file; undefined if it doesn't exist. @throws CliError `file_unusable`, exit 4 */
  read: (path: string): string | undefined => readOwnFile(path, 'file_unusable'),
  /** Creates a file that must not exist (O_EXCL, 0600) and opens it for writing. */
  create(path: string): number {
    const fd = openSync(path, constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | NO_FOLLOW, 0o600)
    allowOwner(fd)
    return fd
  },
  /** Opens an existing file for writing. */
  open: (path: string): number => openSync(path, constants.O_WRONLY | NO_FOLLOW),
  /** Overwrites a file from its beginning, without truncating the rest. */
  write(fd: number, text: string): void {
    const bytes = Buffer.from(text, 'utf8')
    // A size limit (`ulimit -f`) or a full disk causes a short write first, and an error only at the next write. So write until no
    // bytes are left.
    for (let at = 0; at < bytes.length; ) at += writeSync(fd, bytes, at, bytes.length - at, at)
  },
  sync: (fd: number): void => fsyncSync(fd),
  /** Closes a descriptor. Never throws: important data was flushed before. */
  close: (fd: number): void => void catchError(() => closeSync(fd)),
  rename(from: string, to: string): void {
    for (let tries = 1; ; tries++) {
      try {
        renameSync(from, to)
        return
      } catch (error) {
        if (IS_POSIX || !['EPERM', 'EACCES', 'EBUSY'].includes(errnoCode(error) ?? '')) throw error
        // The program could write to the directory a moment ago, so permissions aren't the cause: another program has the file
        // open. Retry, and report that if retries don't help.
        const held = new Error('EBUSY: another program holds it open', { cause: error })
        if (tries > MAX_RENAME_RETRIES) throw Object.assign(held, { code: 'EBUSY' })
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 5 + tries * 5)
      }
    }
  },
  remove: (path: string): void => unlinkSync(path),
  /** Lists the names in a directory; none if it doesn't exist. @throws CliError `cannot_write`, exit 1 */
  names: listDirectory,
  /** Flushes a directory: without this, a power loss may undo creating, renaming or removing a file. */
  syncDirectory(path: string): void {
    if (!IS_POSIX) return
    const directory = openSync(path, constants.O_RDONLY)
    try {
      fsyncSync(directory)
    } catch (error) {
      if (!NO_DIRECTORY_SYNC.includes(errnoCode(error))) throw error
    } finally {
      closeSync(directory)
    }
  },
  /**
   * Acquires the kernel lock of a file, creating the file if necessary. Closing the descriptor releases the lock, as does the end
   * of the process for any reason.
   *
   * @returns the descriptor; undefined if another open file holds the lock
   */
  async lock(path: string): Promise<number | undefined> {
    // Use the default export: fs-native-extensions is CommonJS, and in the bundle, only its default export is complete.
    const { default: locks } = await import('fs-native-extensions')
    // Node opens files with O_CLOEXEC, so child processes don't inherit the descriptor and can't keep the lock.
    const fd = openSync(path, constants.O_RDWR | constants.O_CREAT | NO_FOLLOW, 0o600)
    let isTaken = false
    try {
      allowOwner(fd)
      isTaken = locks.tryLock(fd)
      return isTaken ? fd : undefined
    } finally {
      if (!isTaken) catchError(() => closeSync(fd))
    }
  },
}

/** File operations of a session; tests replace them to cut the power between two. */
export type SessionDisk = typeof realDisk

/**
 * Restores the owner's permissions, which an unusual umask removes, so that the next command can open the file. Some file systems
 * have no permissions; ignore their errors.
 */
function allowOwner(fd: number): void {
  if (IS_POSIX) catchError(() => fchmodSync(fd, 0o600))
}

/**
 * Replaces a file atomically: a reader sees either the complete old text or the complete new text, even after a power loss.
 * Replaces a link at the path instead of following it. Concurrent writers don't disturb each other.
 *
 * @throws CliError `cannot_write`, exit 1, with the path; the old file is unchanged
 */
export function writeFileDurably(path: string, text: string, disk: SessionDisk = realDisk): void {
  const directory = dirname(path)
  const temporary = join(directory, `.${basename(path)}.${randomBytes(6).toString('hex')}.tmp`)
  try {
    const fd = disk.create(temporary)
    try {
      disk.write(fd, text)
      disk.sync(fd)
    } finally {
      disk.close(fd)
    }
    disk.rename(temporary, path)
  } catch (error) {
    catchError(() => disk.remove(temporary))
    throw writeError(path, error)
  }
  // Ignore a failed flush: readers already see the new file.
  catchError(() => disk.syncDirectory(directory))
}

/**
 * Removes a file and flushes its directory.
 *
 * @returns whether there was a file
 * @throws CliError `cannot_write`, exit 1, if the file is still there
 */
export function removeFileDurably(path: string, disk: SessionDisk = realDisk): boolean {
  try {
    disk.remove(path)
  } catch (error) {
    if (errnoCode(error) === 'ENOENT') return false
    throw new CliError('cannot_write', `${path} can't be removed: ${reasonOf(error)}`, {
      hint: hintFor(error, 'remove it by hand: it may hold a secret'),
      cause: error,
    })
  }
  // Ignore a failed flush: no reader sees the file anymore, and if a power loss brings it back, the next command removes it again.
  catchError(() => disk.syncDirectory(dirname(path)))
  return true
}
