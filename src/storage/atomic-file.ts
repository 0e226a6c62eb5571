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
import { cannotWrite, catchError, codeOf, POSIX, reason, remedy } from './file-errors.ts'
import { readOwnFile } from './json-file.ts'
import { namesIn } from './private-directory.ts'

// Windows has no such flag, but creating a link there takes permissions that others don't have.
const NO_FOLLOW = constants.O_NOFOLLOW ?? 0
/** What file systems say that can't flush a directory; their own guarantees have to be enough. */
const NO_DIRECTORY_SYNC: readonly (string | undefined)[] = ['EINVAL', 'ENOTSUP', 'EPERM', 'EROFS']
/** How often Windows is asked to replace a file that another program has open. */
const RENAME_TRIES = 20

/**
 * What a session does with a disk, one system call a function, so that a test can cut the power between any two of them. Nearly all
 * of it is synchronous: the files are small, and a note has to be written between two steps of a connection. Each throws the
 * system's error, unless it says otherwise.
 */
export const realDisk = {
  /** The whole file; undefined if there is none. @throws CliError `file_unusable`, exit 4. */
  read: (path: string): string | undefined => readOwnFile(path, 'file_unusable'),
  /** Creates a file that must not exist (O_EXCL, 0600) and opens it. */
  create(path: string): number {
    const fd = openSync(path, constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | NO_FOLLOW, 0o600)
    allowOwner(fd)
    return fd
  },
  /** Opens a file that exists, to write into it. */
  open: (path: string): number => openSync(path, constants.O_WRONLY | NO_FOLLOW),
  /** Writes from the beginning of the file; what it had beyond that stays. */
  write(fd: number, text: string): void {
    const bytes = Buffer.from(text, 'utf8')
    // A limit on file sizes causes a short write first, and then an error.
    for (let at = 0; at < bytes.length; ) at += writeSync(fd, bytes, at, bytes.length - at, at)
  },
  sync: (fd: number): void => fsyncSync(fd),
  /** Never throws: everything that matters was flushed before. */
  close: (fd: number): void => void catchError(() => closeSync(fd)),
  rename(from: string, to: string): void {
    for (let tries = 1; ; tries++) {
      try {
        renameSync(from, to)
        return
      } catch (error) {
        if (POSIX || !['EPERM', 'EACCES', 'EBUSY'].includes(codeOf(error) ?? '')) throw error
        // Since it could write beside it a moment ago.
        const held = new Error('EBUSY: another program holds it open', { cause: error })
        if (tries > RENAME_TRIES) throw Object.assign(held, { code: 'EBUSY' })
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 5 + tries * 5)
      }
    }
  },
  remove: (path: string): void => unlinkSync(path),
  /** The names in a directory; none if it doesn't exist. @throws CliError `cannot_write`, exit 1. */
  names: namesIn,
  /** Without this, a power loss may undo a new name. */
  syncDirectory(path: string): void {
    if (!POSIX) return
    const directory = openSync(path, constants.O_RDONLY)
    try {
      fsyncSync(directory)
    } catch (error) {
      if (!NO_DIRECTORY_SYNC.includes(codeOf(error))) throw error
    } finally {
      closeSync(directory)
    }
  },
  /**
   * Takes the system's lock on a file, and creates the file if necessary. Closing it releases the lock; so does the end of the
   * process, however that happens.
   *
   * @returns undefined if another open file holds the lock.
   */
  async lock(path: string): Promise<number | undefined> {
    // As it is installed it is CommonJS; in a bundle only its default export is whole.
    const { default: locks } = await import('fs-native-extensions')
    // Processes that we start don't inherit the descriptor (O_CLOEXEC), so they can't keep the lock.
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

/** The umask may have removed our own permissions, and with them the next command's. Some file systems have none. */
function allowOwner(fd: number): void {
  if (POSIX) catchError(() => fchmodSync(fd, 0o600))
}

/**
 * Replaces a file atomically: a reader finds either the old or the new text, whole, even after a power loss. A link in its
 * place is replaced, not followed. Writers that do this at the same time don't disturb each other.
 *
 * @throws CliError `cannot_write`, exit 1, with the path; the old file is untouched.
 */
export function writeDurable(path: string, text: string, disk: Disk = realDisk): void {
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
    throw cannotWrite(path, error)
  }
  // Every reader sees the new name already.
  catchError(() => disk.syncDirectory(directory))
}

/** Removes a file for good; true if there was one. @throws CliError `cannot_write`, exit 1: it is still there. */
export function removeDurable(path: string, disk: Disk = realDisk): boolean {
  try {
    disk.remove(path)
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return false
    throw new CliError('cannot_write', `${path} can't be removed: ${reason(error)}`, {
      hint: remedy(error, 'remove it by hand: it may hold a secret'),
      cause: error,
    })
  }
  // It is gone for every reader. A power loss may bring it back, and then the next command removes it again.
  catchError(() => disk.syncDirectory(dirname(path)))
  return true
}
