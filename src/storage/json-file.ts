import { constants, fstatSync, openSync, readFileSync } from 'node:fs'
import { basename } from 'node:path'
import { CliError, Exit, type ExitCode } from '../errors.ts'
import { shellQuote } from '../shell-quote.ts'
import { closeQuietly, codeOf, POSIX, reason, remedy } from './file-errors.ts'
import { ownUser } from './private-directory.ts'

/** Far more than any file of this program. */
const MAX_FILE_BYTES = 4 * 1024 * 1024

export interface ReadOptions {
  /** What a person can do about a file that can be read, but not used. */
  readonly remedy?: string
  /** The exit code if the file can't be used; 1 by default. */
  readonly exit?: ExitCode
}

/**
 * Reads a JSON file of this program; undefined if it doesn't exist.
 *
 * @param parse validates the value; throws an Error that says what is wrong with it, or a CliError that also says what to
 *   do about it.
 * @throws CliError `file_unusable`, with the path and a remedy: the file is empty, damaged, written by a later version, a
 *   link, or belongs to another user. It is left as it is.
 */
export async function readJson<T>(
  path: string,
  parse: (value: unknown) => T,
  options: ReadOptions = {},
): Promise<T | undefined> {
  // A loop that waits for a lock reads again and again: let other work run in between.
  await new Promise((resolve) => setImmediate(resolve))
  return readJsonSync(path, parse, options)
}

/** As `readJson`, for one of many files: between some of them, the caller lets other work run. */
export function readJsonSync<T>(
  path: string,
  parse: (value: unknown) => T,
  options: ReadOptions = {},
): T | undefined {
  const unusable = (
    why: string,
    hint = options.remedy ?? `it was left as it is; fix it, or move it away: ${moveAway(path)}`,
    cause?: unknown,
  ) =>
    new CliError('file_unusable', options.exit ?? Exit.bug, `the file ${path} cannot be used: ${why}`, {
      hint,
      cause,
    })
  const unreadable = (error: unknown) =>
    unusable(
      `it cannot be read (${reason(error)})`,
      remedy(error, 'check the owner and the permissions of that file and its directory'),
      error,
    )
  // Synchronous: the files are small, every command reads two, and loading `node:fs/promises` would take longer.
  let file: number
  try {
    // O_NONBLOCK: opening a pipe would wait for a writer.
    file = openSync(path, constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0))
  } catch (error) {
    const code = codeOf(error)
    if (code === 'ENOENT') return undefined
    if (code === 'ELOOP' || code === 'EMLINK')
      throw unusable('it is a symbolic link, which this program never creates')
    throw unreadable(error)
  }
  let text: string
  try {
    const found = fstatSync(file)
    if (!found.isFile()) throw unusable('it is not a file')
    if (POSIX && found.uid !== ownUser()) {
      // What a command with sudo has left may be moved away; another person's file is in use.
      const hint = found.uid === 0 ? undefined : 'run this command as that user (without sudo)'
      throw unusable('it belongs to another user', hint)
    }
    if (found.size > MAX_FILE_BYTES) throw unusable(`it is too large (${found.size} bytes)`)
    text = readFileSync(file, 'utf8')
  } catch (error) {
    throw error instanceof CliError ? error : unreadable(error)
  } finally {
    closeQuietly(file)
  }
  if (text.trim() === '') throw unusable('it is empty')
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    // The parser's message would quote the file, which may hold a secret.
    throw unusable('it is damaged: it is not valid JSON')
  }
  try {
    return parse(value)
  } catch (error) {
    if (error instanceof CliError) throw error
    throw unusable(error instanceof Error ? error.message : String(error))
  }
}

/** @throws Error if a file doesn't have the format that this version of the program reads. */
export function requireFormat(found: unknown, known: number): void {
  if (found === known) return
  throw new Error(
    typeof found === 'number' && found > known
      ? `it was written by a later version of mailclaim (format ${found}, this one knows ${known})`
      : 'it is damaged: it has no format number',
  )
}

/** The command that renames a file, so that it is kept but no longer used. */
export function moveAway(path: string): string {
  const quoted = (text: string) => shellQuote(text, process.platform)
  return POSIX
    ? `mv ${quoted(path)} ${quoted(`${path}.bad`)}`
    : `ren ${quoted(path)} ${quoted(`${basename(path)}.bad`)}`
}
