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
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  unlinkSync,
  writeSync,
} from 'node:fs'
import { chmod, lstat, mkdir, stat } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { CliError, Exit, type ExitCode } from '../errors.ts'
import { shellQuote } from '../shell-quote.ts'

/** No file of this program comes near it; a larger one is not ours. */
const MAX_FILE_BYTES = 4 * 1024 * 1024
/** A temporary file that is this much older than a newer write was left behind by a process that died. */
const LEFTOVER_MS = 10 * 60 * 1000
const TEMPORARY = /^\.(?<name>.+)\.(?<pid>\d+)-[0-9a-f]{12}\.tmp$/

const POSIX = process.platform !== 'win32'
// Where the flag does not exist (Windows), links need rights that others do not have.
const NO_FOLLOW = constants.O_NOFOLLOW ?? 0

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

export interface ReadOptions {
  /** What a person can do about a file that cannot be used. */
  readonly remedy?: string
  /** The exit code where the file cannot be used; 1 where nothing is said. */
  readonly exit?: ExitCode
}

/**
 * Reads a JSON file of ours. A missing file is undefined.
 *
 * @param parse turns the value into what the caller trusts; throws an Error that says what is wrong with it.
 * @throws CliError `file_unusable`, with the path and a remedy: the file is empty, damaged, of a later version, a link,
 *   or belongs to another user. It is left as it is.
 */
export async function readJson<T>(
  path: string,
  parse: (value: unknown) => T,
  options: ReadOptions = {},
): Promise<T | undefined> {
  const unusable = (why: string, cause?: unknown) =>
    new CliError('file_unusable', options.exit ?? Exit.bug, `the file ${path} cannot be used: ${why}`, {
      hint: options.remedy ?? `it was left as it is; correct it, or move it away: ${moveAway(path)}`,
      cause,
    })
  // Whoever reads again and again, waiting for a lock, lets others have their turn.
  await new Promise((resolve) => setImmediate(resolve))
  // At once: the files are small, every command reads two, and loading `node:fs/promises` takes longer than that.
  let file: number
  try {
    // A pipe in its place must not stop us: O_NONBLOCK.
    file = openSync(path, constants.O_RDONLY | NO_FOLLOW | (constants.O_NONBLOCK ?? 0))
  } catch (error) {
    const code = codeOf(error)
    if (code === 'ENOENT') return undefined
    if (code === 'ELOOP' || code === 'EMLINK') throw unusable('it is a link, and this program makes none')
    throw unusable(`it cannot be read (${reason(error)})`, error)
  }
  let text: string
  try {
    const found = fstatSync(file)
    if (!found.isFile()) throw unusable('it is not a file')
    if (POSIX && found.uid !== ownUser()) throw unusable('it belongs to another user')
    if (found.size > MAX_FILE_BYTES) throw unusable(`it is ${found.size} bytes long, which is too much`)
    text = readFileSync(file, 'utf8')
  } catch (error) {
    throw error instanceof CliError ? error : unusable(`it cannot be read (${reason(error)})`, error)
  } finally {
    closeSync(file)
  }
  if (text.trim() === '') throw unusable('it is empty')
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    // What the parser says would quote the file, and the file may hold a secret.
    throw unusable('it is damaged: it is not whole JSON')
  }
  try {
    return parse(value)
  } catch (error) {
    throw unusable(error instanceof Error ? error.message : String(error))
  }
}

/** Throws an Error that says so where a file is not of the format that this program knows. */
export function requireFormat(found: unknown, known: number): void {
  if (found === known) return
  throw new Error(
    typeof found === 'number' && found > known
      ? `it was written by a later version of mailclaim (format ${found}, this one knows ${known})`
      : 'it is damaged: it has no format number',
  )
}

/** The command that moves a file out of the way and keeps it. */
export function moveAway(path: string): string {
  const quoted = (text: string) => shellQuote(text, process.platform)
  return POSIX
    ? `mv ${quoted(path)} ${quoted(`${path}.bad`)}`
    : `ren ${quoted(path)} ${quoted(`${basename(path)}.bad`)}`
}

/**
 * What a write that took place is known to be: `durable`, or only `replaced`: readers find the new text, but the disk
 * refused to confirm it, so a power loss may bring the old one back.
 */
export type Written = 'durable' | 'replaced'

/**
 * Replaces a file by a new text so that a reader, and a machine that loses power, finds either the old or the new one,
 * whole: temporary file in the same folder (0600), fsync, rename, fsync of the folder. A link in its place is replaced,
 * not followed. Synchronous: the files are small, and a journal has to be written between two steps of a connection.
 *
 * @throws CliError `cannot_write`, exit 1, with the path; the old file is untouched.
 */
export function writeDurable(path: string, text: string): Written {
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
  removeStaleTemporaries(dirname(path), basename(path))
  return written
}

/**
 * Creates a file that must not be there yet, with its text on the disk before this returns. Of several processes that
 * create the same one at the same time, one succeeds.
 *
 * @returns false where the file exists.
 * @throws CliError `cannot_write`, exit 1. What was begun is removed again where the disk lets us: `isThere` tells.
 */
export function createDurable(path: string, text: string): boolean {
  try {
    closeSync(createFile(path, text))
    syncDirectory(dirname(path))
    return true
  } catch (error) {
    if (codeOf(error) === 'EEXIST') return false
    removeQuietly(path)
    throw cannotWrite(path, error)
  }
}

/** Whether there is a file, folder or link at the path; true where that cannot be found out. */
export function isThere(path: string): boolean {
  try {
    lstatSync(path)
    return true
  } catch (error) {
    return codeOf(error) !== 'ENOENT'
  }
}

/** A file whose space on the disk is taken before its text is known. */
export interface PreallocatedFile {
  readonly path: string
  /**
   * Writes the text over the reserved space and flushes it. @throws CliError `cannot_write`, exit 1, also where the file
   * is not at its path any more.
   */
  write(text: string): void
  /** Removes it. Never throws. */
  discard(): void
}

/**
 * Creates a file of `bytes` spaces, which JSON ignores, so that a disk that runs full cannot stop a text from being
 * written into it later.
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
 * Moves a file of ours to its final name in the same folder.
 *
 * @throws CliError `cannot_write`, exit 1: it is still under its old name.
 */
export function moveDurable(from: string, to: string): Written {
  let fd: number | undefined
  try {
    fd = openSync(from, constants.O_RDONLY | NO_FOLLOW)
    return rename(fd, from, to)
  } catch (error) {
    throw cannotWrite(to, error)
  } finally {
    if (fd !== undefined) closeQuietly(fd)
  }
}

/** Names the process, so that its files can be told from those of processes that died. */
export function uniqueSuffix(): string {
  return `${process.pid}-${randomBytes(6).toString('hex')}`
}

function createFile(path: string, text: string): number {
  const fd = openSync(path, constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | NO_FOLLOW, 0o600)
  try {
    if (POSIX) fchmodSync(fd, 0o600)
    writeAll(fd, text)
    fsyncSync(fd)
    return fd
  } catch (error) {
    closeQuietly(fd)
    throw error
  }
}

function writeAll(fd: number, text: string): void {
  const bytes = Buffer.from(text, 'utf8')
  // A limit on file sizes shows up as a short write first, and as an error at the next.
  for (let at = 0; at < bytes.length; ) at += writeSync(fd, bytes, at, bytes.length - at, at)
}

/**
 * Renames an open file. An error does not mean that it did not happen (a network file system may lose the answer), so
 * the path is looked at before the old name is believed to be in use.
 */
function rename(fd: number, from: string, to: string): Written {
  try {
    renamePatiently(from, to)
  } catch (error) {
    if (!isAt(fd, to)) throw error
    return 'replaced'
  }
  try {
    syncDirectory(dirname(to))
    return 'durable'
  } catch {
    return 'replaced'
  }
}

/** Windows refuses to replace a file that someone is just reading: that passes. */
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

/** Whether the open file is the one at this path: same device and inode. False where that cannot be found out. */
export function isAt(fd: number, path: string): boolean {
  try {
    const open = fstatSync(fd, { bigint: true })
    const found = lstatSync(path, { bigint: true })
    return open.ino === found.ino && open.dev === found.dev
  } catch {
    return false
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

function closeQuietly(fd: number): void {
  try {
    closeSync(fd)
  } catch {
    // Closed already, or the disk complains of what fsync has told.
  }
}

function removeQuietly(path: string): void {
  try {
    rmSync(path, { force: true })
  } catch {
    // What stays is removed by a later command.
  }
}

/** Removes a file for good; true where there was one. @throws CliError `cannot_write`, exit 1: it is still there. */
export function removeDurable(path: string): boolean {
  try {
    unlinkSync(path)
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return false
    // An error does not mean that it did not happen.
    if (isThere(path)) {
      throw new CliError('cannot_write', Exit.bug, `${path} cannot be removed: ${reason(error)}`, {
        hint: 'remove it by hand: it may hold a secret',
        cause: error,
      })
    }
  }
  try {
    syncDirectory(dirname(path))
  } catch {
    // Gone for every reader; a power loss may bring it back, and the next command removes it again.
  }
  return true
}

/** Without this, a new name may be lost when the machine loses power. Windows has no such thing. */
function syncDirectory(path: string): void {
  if (!POSIX) return
  const directory = openSync(path, constants.O_RDONLY)
  try {
    fsyncSync(directory)
  } catch (error) {
    // Some network and user-space file systems cannot; what they promise without it has to do.
    if (!['EINVAL', 'ENOTSUP', 'EPERM', 'EROFS'].includes(codeOf(error) ?? '')) throw error
  } finally {
    closeSync(directory)
  }
}

/**
 * Removes temporary files that processes left behind: of processes that are gone, and older than ten minutes by the
 * clock of the file system, since a process of another container looks gone. Never throws.
 *
 * @param of only those that were to replace the file of this name.
 */
export function removeStaleTemporaries(directory: string, of?: string): void {
  try {
    const temporaries = readdirSync(directory).filter((name) => {
      const target = TEMPORARY.exec(name)?.groups?.['name']
      return target !== undefined && (of === undefined || target === of)
    })
    for (const name of temporaries) {
      const path = join(directory, name)
      if (!isProcessAlive(Number(TEMPORARY.exec(name)?.groups?.['pid'])) && isOld(path)) removeQuietly(path)
    }
  } catch {
    // They take up space and do no other harm.
  }
}

/** Whether this machine runs a process of this number; one of another user counts too. */
export function isProcessAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return codeOf(error) === 'EPERM'
  }
}

/** Compared with a folder that was just written to: the clock of the file system, not ours. */
function isOld(path: string): boolean {
  return statSync(dirname(path)).mtimeMs - lstatSync(path).mtimeMs >= LEFTOVER_MS
}

/** The error for a file that cannot be written: `cannot_write`, exit 1, with what to do about it. */
export function cannotWrite(path: string, error: unknown): CliError {
  if (error instanceof CliError) return error
  const code = codeOf(error)
  const hint =
    code === 'ENOSPC' || code === 'EDQUOT'
      ? 'make room on that disk and run the command again'
      : code === 'EFBIG'
        ? 'a limit on file sizes is in force (ulimit -f): raise it and run the command again'
        : 'check the owner and the rights of that folder, or set MAILCLAIM_STATE_DIR and MAILCLAIM_CONFIG_DIR'
  return new CliError('cannot_write', Exit.bug, `${path} cannot be written: ${reason(error)}`, {
    hint,
    cause: error,
  })
}

const REASONS: Readonly<Record<string, string>> = {
  ENOENT: 'a part of the path is not there',
  ENOSPC: 'the disk is full',
  EDQUOT: 'the disk quota is used up',
  EFBIG: 'the file would be larger than this process may write',
  EROFS: 'the file system is read-only',
  EACCES: 'permission denied',
  EPERM: 'permission denied',
  ENOTDIR: 'a part of the path is not a folder',
  EISDIR: 'it is a folder',
  ELOOP: 'it goes through a link',
  EIO: 'the disk reports an error',
  EMFILE: 'too many files are open',
}

/** What went wrong with a file, in words where we have them. */
export function reason(error: unknown): string {
  const code = codeOf(error)
  if (code === undefined) return error instanceof Error ? error.message : String(error)
  return REASONS[code] ?? code
}

function codeOf(error: unknown): string | undefined {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : undefined
}

function ownUser(): number {
  return process.getuid?.() ?? -1
}
