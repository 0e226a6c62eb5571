import { randomBytes } from 'node:crypto'
import {
  closeSync,
  constants,
  fchmodSync,
  fstatSync,
  fsyncSync,
  lstatSync,
  openSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  unlinkSync,
  writeSync,
} from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { CliError, Exit } from '../errors.ts'
import { cannotWrite, closeQuietly, codeOf, POSIX, reason, remedy } from './file-errors.ts'

/** A temporary file that is this much older than a newer write belongs to a process that died. */
const STALE_MS = 10 * 60 * 1000
const TEMPORARY = /^\.(?<name>.+)\.(?<pid>\d+)-[0-9a-f]{12}\.tmp$/

// Windows has no such flag, but creating a link there takes permissions that others don't have.
const NO_FOLLOW = constants.O_NOFOLLOW ?? 0

/**
 * What is known about a write: `durable`, or only `replaced`, if readers find the new text but the disk didn't confirm it, so
 * a power loss may bring the old one back.
 */
export type Written = 'durable' | 'replaced'

/**
 * Replaces a file atomically: a reader finds either the old or the new text, whole, even after a power loss. Temporary file
 * in the same directory (0600), fsync, rename, fsync of the directory. A link in its place is replaced, not followed.
 * Synchronous: the files are small, and a journal entry has to be written between two steps of a connection.
 *
 * @param temporaries `leave` those of dead processes, for a directory of so many files that looking for them takes long.
 * @throws CliError `cannot_write`, exit 1, with the path; the old file is untouched.
 */
export function writeDurable(
  path: string,
  text: string,
  temporaries: 'remove' | 'leave' = 'remove',
): Written {
  const temporary = join(dirname(path), `.${basename(path)}.${uniqueSuffix()}.tmp`)
  let written: Written
  try {
    const fd = createFile(temporary, text)
    try {
      written = rename(fd, temporary, path)
    } finally {
      closeQuietly(fd)
    }
  } catch (error) {
    removeQuietly(temporary)
    throw cannotWrite(path, error)
  }
  if (temporaries === 'remove') removeStaleTemporaries(dirname(path), { of: basename(path) })
  return written
}

/**
 * Appends whole lines to a file, which is created if necessary, and flushes them. Processes that append at the same time
 * lose nothing: the system writes each text in one piece (O_APPEND). If something removes the file meanwhile, the text
 * goes to a new one.
 *
 * @param lines ends with a line break. An empty line precedes them, because a full disk may have cut off the last one.
 * @throws CliError `cannot_write`, exit 1; part of the text may be in the file.
 */
export function appendDurable(path: string, lines: string): void {
  const flags = constants.O_WRONLY | constants.O_APPEND | constants.O_CREAT | NO_FOLLOW
  const bytes = Buffer.from(`\n${lines}`, 'utf8')
  try {
    for (let isWritten = false; !isWritten; ) {
      const fd = openSync(path, flags, 0o600)
      try {
        if (POSIX) fchmodSync(fd, 0o600)
        const written = writeSync(fd, bytes)
        // The rest of a short write could come behind another process's line; writing it says what is wrong.
        if (written < bytes.length) writeSync(fd, bytes, written)
        if (written < bytes.length) throw new Error('only a part of the text was written')
        fsyncSync(fd)
        isWritten = isAt(fd, path)
      } finally {
        closeQuietly(fd)
      }
    }
    syncDirectory(dirname(path))
  } catch (error) {
    throw cannotWrite(path, error)
  }
}

/**
 * Creates a file that must not exist yet, with its text on the disk before this returns. Of several processes that create
 * it at the same time, one succeeds.
 *
 * @param onOpen called with its descriptor before anything is in it; must not throw.
 * @returns the open file, which the caller closes; undefined if the file exists.
 * @throws CliError `cannot_write`, exit 1. A file that was begun is removed again if possible: see `isThere`.
 */
export function createDurable(path: string, text: string, onOpen?: (fd: number) => void): number | undefined {
  let fd: number | undefined
  try {
    fd = createFile(path, text, onOpen)
    syncDirectory(dirname(path))
    return fd
  } catch (error) {
    if (codeOf(error) === 'EEXIST') return undefined
    if (fd !== undefined) abandon(fd, path)
    throw cannotWrite(path, error)
  }
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

/** A file whose space on the disk is reserved before its text is known. */
export interface PreallocatedFile {
  readonly path: string
  /**
   * Writes the text over the reserved space and flushes it. @throws CliError `cannot_write`, exit 1, also if the file is
   * no longer at its path.
   */
  write(text: string): void
  /** Removes it. Never throws. */
  discard(): void
}

/**
 * Creates a file of `bytes` spaces, which JSON ignores. A text can be written into it later even if the disk is full.
 *
 * @throws CliError `cannot_write`, exit 1.
 */
export function preallocate(path: string, bytes: number): PreallocatedFile {
  let fd: number
  try {
    fd = createFile(path, ' '.repeat(bytes))
    syncDirectory(dirname(path))
  } catch (error) {
    removeQuietly(path)
    throw cannotWrite(path, error)
  }
  return {
    path,
    write(text) {
      try {
        writeAll(fd, text)
        fsyncSync(fd)
        if (!isAt(fd, path)) throw new Error('something removed the file')
      } catch (error) {
        throw cannotWrite(path, error)
      } finally {
        closeQuietly(fd)
      }
    },
    discard() {
      closeQuietly(fd)
      removeQuietly(path)
    },
  }
}

/**
 * Renames a file within its directory without opening it, whatever it is: a link or a pipe as well.
 *
 * @throws CliError `cannot_write`, exit 1: it is still under its old name.
 */
export function moveDurable(from: string, to: string): Written {
  try {
    renamePatiently(from, to)
  } catch (error) {
    // Despite the error it may have happened.
    if (isThere(from) || !isThere(to)) throw cannotWrite(to, error)
    return 'replaced'
  }
  return flushed(to)
}

/** Contains the process id, so that files of processes that died can be recognized. */
export function uniqueSuffix(): string {
  return `${process.pid}-${randomBytes(6).toString('hex')}`
}

function createFile(path: string, text: string, onOpen?: (fd: number) => void): number {
  const fd = openSync(path, constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | NO_FOLLOW, 0o600)
  try {
    onOpen?.(fd)
    if (POSIX) fchmodSync(fd, 0o600)
    writeAll(fd, text)
    fsyncSync(fd)
    return fd
  } catch (error) {
    abandon(fd, path)
    throw error
  }
}

/** Closes and removes a file that this process created, and only that one: another may have taken its place. Never throws. */
function abandon(fd: number, path: string): void {
  if (isAt(fd, path)) removeQuietly(path)
  closeQuietly(fd)
}

function writeAll(fd: number, text: string): void {
  const bytes = Buffer.from(text, 'utf8')
  // A limit on file sizes causes a short write first, and then an error.
  for (let at = 0; at < bytes.length; ) at += writeSync(fd, bytes, at, bytes.length - at, at)
}

/**
 * Renames an open file. Despite an error it may have happened (a network file system may lose the answer), so the path is
 * checked first.
 */
function rename(fd: number, from: string, to: string): Written {
  try {
    renamePatiently(from, to)
  } catch (error) {
    if (!isAt(fd, to)) throw error
    return 'replaced'
  }
  return flushed(to)
}

function flushed(path: string): Written {
  try {
    syncDirectory(dirname(path))
    return 'durable'
  } catch {
    return 'replaced'
  }
}

/** Windows refuses to replace a file while another process reads it: that passes. */
function renamePatiently(from: string, to: string): void {
  for (let attempt = 0; ; attempt++) {
    try {
      renameSync(from, to)
      return
    } catch (error) {
      const passing = !POSIX && ['EPERM', 'EACCES', 'EBUSY'].includes(codeOf(error) ?? '')
      if (!passing || attempt >= 20) throw error
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 10 + attempt * 5)
    }
  }
}

/** Whether the open file is the one at this path: same device and inode. False if that can't be found out. */
export function isAt(fd: number, path: string): boolean {
  try {
    const open = fstatSync(fd, { bigint: true })
    const found = lstatSync(path, { bigint: true })
    return open.ino === found.ino && open.dev === found.dev
  } catch {
    return false
  }
}

function removeQuietly(path: string): void {
  try {
    rmSync(path, { force: true })
  } catch {
    // A later command removes it.
  }
}

/** Removes a file for good; true if there was one. @throws CliError `cannot_write`, exit 1: it is still there. */
export function removeDurable(path: string): boolean {
  try {
    unlinkSync(path)
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return false
    // Despite the error it may have happened.
    if (isThere(path)) {
      throw new CliError('cannot_write', Exit.bug, `${path} cannot be removed: ${reason(error)}`, {
        hint: remedy(error, 'remove it by hand: it may hold a secret'),
        cause: error,
      })
    }
  }
  try {
    syncDirectory(dirname(path))
  } catch {
    // It is gone for every reader. A power loss may bring it back, and then the next command removes it again.
  }
  return true
}

/** Without this, a power loss may undo a new name. Windows has no equivalent. */
function syncDirectory(path: string): void {
  if (!POSIX) return
  const directory = openSync(path, constants.O_RDONLY)
  try {
    fsyncSync(directory)
  } catch (error) {
    // Some network and user-space file systems don't support it; their own guarantees have to be enough.
    if (!['EINVAL', 'ENOTSUP', 'EPERM', 'EROFS'].includes(codeOf(error) ?? '')) throw error
  } finally {
    closeSync(directory)
  }
}

/**
 * Removes temporary files of processes that have ended, if they are older than ten minutes by the file system's clock: a
 * process in another container looks as if it had ended. Never throws.
 *
 * @param of only the temporary files for this name.
 * @param ofAnyAge younger ones too: under a lock that every writer holds, or if a secret must not stay.
 */
export function removeStaleTemporaries(
  directory: string,
  { of, ofAnyAge = false }: { readonly of?: string; readonly ofAnyAge?: boolean } = {},
): void {
  try {
    const temporaries = readdirSync(directory).filter((name) => {
      const target = TEMPORARY.exec(name)?.groups?.['name']
      return target !== undefined && (of === undefined || target === of)
    })
    for (const name of temporaries) {
      const path = join(directory, name)
      const isAbandoned = !isProcessAlive(Number(TEMPORARY.exec(name)?.groups?.['pid']))
      if (isAbandoned && (ofAnyAge || isOld(path))) removeQuietly(path)
    }
  } catch {
    // They only take up space.
  }
}

/** Whether a process with this id runs on this machine, as any user. */
export function isProcessAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return codeOf(error) === 'EPERM'
  }
}

/** By the file system's clock, not ours: compared with a directory that was just written to. */
function isOld(path: string): boolean {
  return statSync(dirname(path)).mtimeMs - lstatSync(path).mtimeMs >= STALE_MS
}
