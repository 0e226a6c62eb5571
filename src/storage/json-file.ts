import { closeSync, constants, fstatSync, openSync, readFileSync } from 'node:fs'
import { CliError, type ErrorCode } from '../errors.ts'
import { catchError, createChownHint, errnoCode, hintForErrno, IS_POSIX, reasonOf } from './file-errors.ts'
import { ownUserId } from './private-directory.ts'

type FileCode = Extract<ErrorCode, 'cannot_read' | 'file_unusable'>

/** Maximum size in bytes of a file of this program; a larger one is refused unread. */
const MAX_FILE_BYTES = 4 * 1024 * 1024

/**
 * Reads a file of this program; undefined if there is none. Synchronous, because most commands read two small files, and loading
 * `node:fs/promises` would take longer.
 *
 * @param code error code for an unusable file; `file_unusable` for a file of a session
 * @throws CliError with that code if the file can't be used, such as a symbolic link or a file of another user
 */
export function readMailclaimFile(path: string, code: FileCode = 'cannot_read'): string | undefined {
  const refuse = (why: string, more = {}) => unusableFileError(path, why, { code, ...more })
  let file: number | undefined
  try {
    // Open with O_NONBLOCK: otherwise a named pipe at this path would block until somebody writes to it. The pipe is then
    // refused as not being a file.
    file = openSync(path, constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0))
    const found = fstatSync(file)
    if (!found.isFile()) throw refuse('it is not a file')
    // Accept a file of root unless it is a session's: a system's administrator may manage the settings.
    if (IS_POSIX && found.uid !== ownUserId() && (found.uid !== 0 || code !== 'cannot_read')) {
      const hint = createChownHint(path) ?? 'run this command as that user (without sudo)'
      throw refuse(`it belongs to ${found.uid === 0 ? 'root' : 'another user'}`, { hint })
    }
    if (found.size > MAX_FILE_BYTES) throw refuse(`it is too large (${found.size} bytes)`)
    return readFileSync(file, 'utf8')
  } catch (error) {
    if (error instanceof CliError) throw error
    const problem = errnoCode(error)
    if (problem === 'ENOENT') return undefined
    if (problem === 'ELOOP' || problem === 'EMLINK')
      throw refuse('it is a symbolic link, which is not followed')
    const permissions = 'check the owner and the permissions of that file and its directory'
    const hint = createChownHint(path) ?? hintForErrno(error, permissions)
    throw refuse(`it can't be read (${reasonOf(error)})`, { hint, cause: error })
  } finally {
    const opened = file
    if (opened !== undefined) catchError(() => closeSync(opened))
  }
}

/**
 * Reads and parses a JSON file of this program; undefined if there is none.
 *
 * @param parse validates the value; throws an Error that names the defect, or a CliError with a hint
 * @throws CliError `cannot_read` if the file can't be used; as `parse`
 */
export function readJsonFile<T>(path: string, parse: (value: unknown) => T): T | undefined {
  const text = readMailclaimFile(path)
  if (text === undefined) return undefined
  if (text.trim() === '') throw unusableFileError(path, 'it is empty')
  try {
    return parse(JSON.parse(text))
  } catch (error) {
    if (error instanceof CliError) throw error
    const isNoJson = error instanceof SyntaxError
    // Leave out the parser's message, because it quotes the file, which may hold a secret.
    throw unusableFileError(path, isNoJson ? 'it is damaged: it is not valid JSON' : (error as Error).message)
  }
}

/** Returns the error for an unusable file of this program. @param defect why it can't be used, for the message */
export function unusableFileError(
  path: string,
  defect: string,
  { hint, code = 'cannot_read', cause }: { hint?: string | undefined; code?: FileCode; cause?: unknown } = {},
): CliError {
  return new CliError(code, `the file ${path} can't be used: ${defect}`, {
    hint: hint ?? 'it was left as it is; fix it, or move it away',
    cause,
  })
}

/**
 * Rejects a format number that differs from the one that this version reads.
 *
 * @throws Error that says that the file is damaged or was written by a later version
 */
export function requireFormatNumber(actual: unknown, supported: number): void {
  if (actual === supported) return
  throw new Error(
    typeof actual === 'number' && actual > supported
      ? `it was written by a later version of mailclaim (format ${actual}, this one knows ${supported})`
      : 'it is damaged: it has no format number',
  )
}
