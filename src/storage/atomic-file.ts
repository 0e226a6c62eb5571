import { randomBytes } from 'node:crypto'
import {
  closeSync,
  constants,
  fchmodSync,
  fsyncSync,
  lstatSync,
  openSync,
  readdirSync,
  renameSync,
  unlinkSync,
  writeSync,
} from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { CliError, Exit } from '../errors.ts'
import { cannotWrite, closeQuietly, codeOf, POSIX, reason, remedy } from './file-errors.ts'
import { readOwnFile } from './json-file.ts'

/**
 * What a session does with a disk, one system call a function, so that a test can cut the power between any two of them. All
 * of it is synchronous: the files are small, and a note has to be written between two steps of a connection. Each throws the
 * system's error, unless it says otherwise.
 */
export interface Disk {
  /** The whole file; undefined if there is none. @throws CliError `file_unusable`, exit 4 */
  read(path: string): string | undefined
  /** Creates a file that must not exist (O_EXCL, 0600) and opens it. */
  create(path: string): number
  /** Opens a file that exists, to write into it. */
  open(path: string): number
  /** Writes from the beginning of the file; what it had beyond that stays. */
  write(fd: number, text: string): void
  sync(fd: number): void
  /** Never throws. */
  close(fd: number): void
  rename(from: string, to: string): void
  remove(path: string): void
  /** The names in a directory; none if it doesn't exist. */
  names(directory: string): string[]
  /** Without this, a power loss may undo a new name. */
  syncDirectory(path: string): void
  /** Opens the file of a lock, and creates it if necessary. */
  openLock(path: string): number
}

// Windows has no such flag, but creating a link there takes permissions that others don't have.
const NO_FOLLOW = constants.O_NOFOLLOW ?? 0
/** What file systems say that can't flush a directory; their own guarantees have to be enough. */
const NO_DIRECTORY_SYNC: readonly (string | undefined)[] = ['EINVAL', 'ENOTSUP', 'EPERM', 'EROFS']
/** How often Windows is asked to replace a file while another process reads it. */
const RENAME_TRIES = 20

export const realDisk: Disk = {
  read: (path) => readOwnFile(path, { exit: Exit.notSignedIn }),
  create(path) {
    const fd = openSync(path, constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | NO_FOLLOW, 0o600)
    allowOwner(fd)
    return fd
  },
  open: (path) => openSync(path, constants.O_WRONLY | NO_FOLLOW),
  write(fd, text) {
    const bytes = Buffer.from(text, 'utf8')
    // A limit on file sizes causes a short write first, and then an error.
    for (let at = 0; at < bytes.length; ) at += writeSync(fd, bytes, at, bytes.length - at, at)
  },
  sync: fsyncSync,
  close: closeQuietly,
  rename(from, to) {
    for (let tries = 1; ; tries++) {
      try {
        return renameSync(from, to)
      } catch (error) {
        const isPassing = !POSIX && ['EPERM', 'EACCES', 'EBUSY'].includes(codeOf(error) ?? '')
        if (!isPassing || tries > RENAME_TRIES) throw error
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 5 + tries * 5)
      }
    }
  },
  remove: unlinkSync,
  names(directory) {
    try {
      return readdirSync(directory)
    } catch (error) {
      if (codeOf(error) === 'ENOENT') return []
      throw error
    }
  },
  syncDirectory(path) {
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
  openLock(path) {
    const fd = openSync(path, constants.O_RDWR | constants.O_CREAT | NO_FOLLOW, 0o600)
    allowOwner(fd)
    return fd
  },
}

/** The umask may have removed our own permissions, and with them the next command's. */
function allowOwner(fd: number): void {
  try {
    if (POSIX) fchmodSync(fd, 0o600)
  } catch {
    // A file system without permissions.
  }
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
    removeQuietly(temporary, disk)
    throw cannotWrite(path, error)
  }
  syncQuietly(directory, disk)
}

/** Removes a file for good; true if there was one. @throws CliError `cannot_write`, exit 1: it is still there. */
export function removeDurable(path: string, disk: Disk = realDisk): boolean {
  try {
    disk.remove(path)
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return false
    throw new CliError('cannot_write', Exit.bug, `${path} can't be removed: ${reason(error)}`, {
      hint: remedy(error, 'remove it by hand: it may hold a secret'),
      cause: error,
    })
  }
  // It is gone for every reader. A power loss may bring it back, and then the next command removes it again.
  syncQuietly(dirname(path), disk)
  return true
}

/** Whether there is a file, directory or link at the path; true if that can't be found out. */
export function isThere(path: string): boolean {
  try {
    lstatSync(path)
    return true
  } catch (error) {
    return codeOf(error) !== 'ENOENT'
  }
}

/** Never throws. */
export function removeQuietly(path: string, disk: Disk = realDisk): void {
  try {
    disk.remove(path)
  } catch {
    // What stays is of no use to anybody.
  }
}

/** Flushes a directory if possible. Never throws. */
export function syncQuietly(directory: string, disk: Disk = realDisk): void {
  try {
    disk.syncDirectory(directory)
  } catch {
    // Every reader sees the new names already.
  }
}
