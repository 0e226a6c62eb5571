import { randomBytes } from 'node:crypto'
import { closeSync, constants, fstatSync, openSync, readFileSync } from 'node:fs'
import { chmod, type FileHandle, lstat, mkdir, open, readdir, rename, rm, stat } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { CliError, Exit, type ExitCode } from '../errors.ts'
import { shellQuote } from '../shell-quote.ts'

/** No file of this program comes near it; a larger one is not ours. */
const MAX_FILE_BYTES = 4 * 1024 * 1024
/** A temporary file that is this much older than a newer write was left behind by a process that died. */
const LEFTOVER_MS = 10 * 60 * 1000
const TEMPORARY = /^\.(?<name>.+)\.\d+-[0-9a-f]{12}\.tmp$/

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
  const link = await lstat(path)
  if (link.isSymbolicLink() && link.uid !== ownUser() && link.uid !== 0) {
    throw directoryUnusable(path, 'it is a link that another user made')
  }
  const target = await stat(path).catch(() => undefined)
  if (target === undefined || !target.isDirectory()) throw directoryUnusable(path, 'it is not a folder')
  const fits = target.uid === ownUser() || (existing === 'leave' && target.uid === 0)
  if (!fits) throw directoryUnusable(path, 'it belongs to another user')
  if (existing === 'tighten' && (target.mode & 0o777) !== 0o700) await chmod(path, 0o700)
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
 * Replaces a file by a new text so that a reader, and a machine that loses power, finds either the old or the new one,
 * whole: temporary file in the same folder (0600), fsync, rename, fsync of the folder. A link in its place is replaced,
 * not followed.
 *
 * @throws CliError `cannot_write`, exit 1, with the path; the old file is untouched.
 */
export async function writeDurable(path: string, text: string): Promise<void> {
  const prepared = await prepareDurable(path, 0)
  await prepared.commit(text)
  await removeLeftovers(dirname(path), { of: basename(path), olderThanMs: LEFTOVER_MS }).catch(
    () => undefined,
  )
}

/** A file that is ready to take the place of another. */
export interface PreparedFile {
  /** Writes the text and puts the file in its place. @throws CliError `cannot_write`, exit 1. */
  commit(text: string): Promise<void>
  /** Removes it again. Never throws. */
  discard(): Promise<void>
}

/**
 * The first half of `writeDurable`: takes `bytes` of the disk now, as white space that JSON ignores, so that a disk
 * that runs full meanwhile cannot stop the text from being written later.
 *
 * @throws CliError `cannot_write`, exit 1.
 */
export async function prepareDurable(path: string, bytes: number): Promise<PreparedFile> {
  const temporary = join(
    dirname(path),
    `.${basename(path)}.${process.pid}-${randomBytes(6).toString('hex')}.tmp`,
  )
  let file: FileHandle
  try {
    file = await open(temporary, constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | NO_FOLLOW, 0o600)
  } catch (error) {
    throw cannotWrite(path, error)
  }
  const discard = async () => {
    await file.close().catch(() => undefined)
    await rm(temporary, { force: true }).catch(() => undefined)
  }
  try {
    if (POSIX) await file.chmod(0o600)
    if (bytes > 0) {
      await writeAll(file, ' '.repeat(bytes))
      await file.sync()
    }
  } catch (error) {
    await discard()
    throw cannotWrite(path, error)
  }
  return {
    discard,
    async commit(text) {
      try {
        await writeAll(file, text)
        await file.sync()
        await file.close()
        await replace(temporary, path)
        await syncDirectory(dirname(path))
      } catch (error) {
        await discard()
        throw cannotWrite(path, error)
      }
    },
  }
}

async function writeAll(file: FileHandle, text: string): Promise<void> {
  const bytes = Buffer.from(text, 'utf8')
  let written = 0
  while (written < bytes.length) {
    // A limit on file sizes shows up as a short write first, and as an error at the next.
    const { bytesWritten } = await file.write(bytes, written, bytes.length - written, written)
    written += bytesWritten
  }
}

/** Windows refuses to replace a file that someone is just reading: that passes. */
async function replace(from: string, to: string): Promise<void> {
  for (let attempt = 0; ; attempt++) {
    try {
      return await rename(from, to)
    } catch (error) {
      const passing = !POSIX && ['EPERM', 'EACCES', 'EBUSY'].includes(codeOf(error) ?? '')
      if (!passing || attempt >= 20) throw error
      await new Promise((resolve) => setTimeout(resolve, 10 + attempt * 5))
    }
  }
}

/** Removes a file for good; true where there was one. @throws CliError `cannot_write`, exit 1. */
export async function removeDurable(path: string): Promise<boolean> {
  try {
    await rm(path)
    await syncDirectory(dirname(path))
    return true
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return false
    throw new CliError('cannot_write', Exit.bug, `${path} cannot be removed: ${reason(error)}`, {
      hint: 'remove it by hand: it may hold a secret',
      cause: error,
    })
  }
}

/** Without this, the rename itself may be lost when the machine loses power. Windows has no such thing. */
async function syncDirectory(path: string): Promise<void> {
  if (!POSIX) return
  const directory = await open(path, constants.O_RDONLY)
  try {
    await directory.sync()
  } catch (error) {
    // Some network and user-space file systems cannot; what they promise without it has to do.
    if (!['EINVAL', 'ENOTSUP', 'EPERM', 'EROFS'].includes(codeOf(error) ?? '')) throw error
  } finally {
    await directory.close()
  }
}

/**
 * Removes temporary files that dead processes left in a folder. Only safe for files that nobody can be writing now:
 * older than `olderThanMs` by the file system's own clock, or with 0, under a lock that every writer holds.
 */
export async function removeLeftovers(
  directory: string,
  which: { readonly of?: string; readonly olderThanMs: number },
): Promise<void> {
  const names = (await readdir(directory)).filter((name) => {
    const match = TEMPORARY.exec(name)
    return match !== null && (which.of === undefined || match.groups?.['name'] === which.of)
  })
  if (names.length === 0) return
  // The file that was just written tells the time of that file system.
  const now = which.of === undefined ? 0 : (await stat(join(directory, which.of))).mtimeMs
  for (const name of names) {
    const path = join(directory, name)
    const found = await lstat(path).catch(() => undefined)
    if (found === undefined || (which.olderThanMs > 0 && now - found.mtimeMs < which.olderThanMs)) continue
    await rm(path, { force: true }).catch(() => undefined)
  }
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
function reason(error: unknown): string {
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
