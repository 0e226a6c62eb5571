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
import { cannotWriteError, catchError, errnoCode, hintForErrno, IS_POSIX, reasonOf } from './file-errors.ts'
import { readMailclaimFile } from './json-file.ts'
import { listDirectory } from './private-directory.ts'

// 0 on Windows, which lacks O_NOFOLLOW: links are followed there.
const NO_FOLLOW = constants.O_NOFOLLOW ?? 0
/**
 * Error codes of file systems that can't flush a directory. The program ignores the error, so a power loss there may undo a
 * rename.
 */
const NO_DIRECTORY_SYNC: readonly (string | undefined)[] = ['EINVAL', 'ENOTSUP', 'EPERM']
/** Maximum number of retries of a rename to a file that another program holds open (Windows only). */
const MAX_RENAME_RETRIES = 20

/**
 * File operations; tests replace them to simulate a failure or a power loss at each operation. Synchronous except `lock`, because
 * the note file (`next.…`) is created after the connection to the service opens and before the first byte of the refresh request,
 * where nothing can be awaited. An operation throws the system's error unless its comment says otherwise.
 */
export const realDisk = {
  /** Reads a file; undefined if there is none. @throws CliError `file_unusable`, exit 4, as `readMailclaimFile` */
  read: (path: string): string | undefined => readMailclaimFile(path, 'file_unusable'),
  /** Creates a file (O_EXCL, mode 0600) and opens it for writing. Fails with EEXIST if the file exists. */
  create(path: string): number {
    const fd = openSync(path, constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | NO_FOLLOW, 0o600)
    allowOwner(fd)
    return fd
  },
  open: (path: string): number => openSync(path, constants.O_WRONLY | NO_FOLLOW),
  /** Overwrites a file from its beginning, without truncating it: the rest of a longer content stays after the text. */
  write(fd: number, text: string): void {
    const bytes = Buffer.from(text, 'utf8')
    // Repeat until no bytes are left: at a size limit (`ulimit -f`) or on a full disk, the first write may be short, and
    // only the next one reports the error.
    for (let at = 0; at < bytes.length; ) at += writeSync(fd, bytes, at, bytes.length - at, at)
  },
  sync: (fd: number): void => fsyncSync(fd),
  /** Closes a descriptor. Never throws: data that must last was flushed before, or its write has already failed. */
  close: (fd: number): void => void catchError(() => closeSync(fd)),
  rename(from: string, to: string): void {
    for (let tries = 1; ; tries++) {
      try {
        renameSync(from, to)
        return
      } catch (error) {
        if (IS_POSIX || !['EPERM', 'EACCES', 'EBUSY'].includes(errnoCode(error) ?? '')) throw error
        // On Windows, EPERM, EACCES and EBUSY usually mean that another program holds the file open. If repeating the rename
        // doesn't help, report EBUSY for all three.
        const held = new Error('EBUSY: another program holds it open', { cause: error })
        if (tries > MAX_RENAME_RETRIES) throw Object.assign(held, { code: 'EBUSY' })
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 5 + tries * 5)
      }
    }
  },
  remove: (path: string): void => unlinkSync(path),
  /** Lists the names in a directory; empty if it doesn't exist. @throws CliError `cannot_write`, exit 1, if it can't be read */
  names: listDirectory,
  /** Flushes a directory (not on Windows): otherwise a power loss may undo creating, renaming or removing a file. */
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
   * Acquires the kernel lock of a file without waiting; creates the file if necessary. The lock ends when the descriptor is
   * closed, or with the process.
   *
   * @returns the descriptor; undefined if another open file holds the lock
   */
  async lock(path: string): Promise<number | undefined> {
    // Use the default export: fs-native-extensions is CommonJS, and esbuild's bundle provides only that export in full.
    const { default: locks } = await import('fs-native-extensions')
    // Child processes can't keep the lock, because Node opens files with O_CLOEXEC.
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

export type Disk = typeof realDisk

/**
 * Sets mode 0600, since an unusual umask may have removed permissions of the owner, so that the next command couldn't open the
 * file. Ignores an error, as on a file system without permissions.
 */
function allowOwner(fd: number): void {
  if (IS_POSIX) catchError(() => fchmodSync(fd, 0o600))
}

/**
 * Writes a file atomically, through a temporary file and a rename: a reader, or a power loss, finds either the complete old text
 * or the complete new one. A link at the path is replaced, not followed.
 *
 * @throws CliError `cannot_write`, exit 1; the old file is unchanged
 */
export function writeFileDurably(path: string, text: string, disk: Disk = realDisk): void {
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
    throw cannotWriteError(path, error)
  }
  // Ignore a failed flush of the directory, because the new file is already in place.
  catchError(() => disk.syncDirectory(directory))
}

/**
 * Removes a file, and tries to flush its directory, so that a power loss doesn't bring the file back.
 *
 * @returns whether there was a file
 * @throws CliError `cannot_write`, exit 1, if the file can't be removed
 */
export function removeFileDurably(path: string, disk: Disk = realDisk): boolean {
  try {
    disk.remove(path)
  } catch (error) {
    if (errnoCode(error) === 'ENOENT') return false
    throw new CliError('cannot_write', `${path} can't be removed: ${reasonOf(error)}`, {
      hint: hintForErrno(error, 'remove it by hand: it may hold a secret'),
      cause: error,
    })
  }
  // Ignore a failed flush of the directory, because the file is already removed.
  catchError(() => disk.syncDirectory(dirname(path)))
  return true
}
