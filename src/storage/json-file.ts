import { closeSync, constants, fstatSync, openSync, readFileSync } from 'node:fs'
import { CliError, type ErrorCode } from '../errors.ts'
import { catchError, errnoCode, hintFor, IS_POSIX, reasonOf, rootOwnerHint } from './file-errors.ts'
import { ownUserId } from './private-directory.ts'

type FileCode = Extract<ErrorCode, 'cannot_read' | 'file_unusable'>

/** Maximum size of a file in bytes, far more than any file of this program has: a larger file is refused. */
const MAX_FILE_BYTES = 4 * 1024 * 1024

/**
 * Reads a file of this program; undefined if it doesn't exist. Synchronous, because the files are small, every command reads two,
 * and loading `node:fs/promises` takes longer.
 *
 * @param code error code for an unusable file: `file_unusable` for a file of a session
 * @throws CliError with the path and a hint if the file is a link, belongs to another user or can't be read; never changes the file
 */
export function readOwnFile(path: string, code: FileCode = 'cannot_read'): string | undefined {
  const refuse = (why: string, more = {}) => fileError(path, why, { code, ...more })
  let file: number | undefined
  try {
    // Open with O_NONBLOCK, so that a named pipe in the file's place is refused: without the flag, opening would wait for a writer.
    file = openSync(path, constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0))
    const found = fstatSync(file)
    if (!found.isFile()) throw refuse('it is not a file')
    // Accept a file of root, since system tools may manage settings and root can read everything anyway. Only a session's file must
    // belong to this user.
    if (IS_POSIX && found.uid !== ownUserId() && (found.uid !== 0 || code !== 'cannot_read')) {
      const hint = rootOwnerHint(path) ?? 'run this command as that user (without sudo)'
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
    const hint = rootOwnerHint(path) ?? hintFor(error, permissions)
    throw refuse(`it can't be read (${reasonOf(error)})`, { hint, cause: error })
  } finally {
    const opened = file
    if (opened !== undefined) catchError(() => closeSync(opened))
  }
}

/**
 * Reads a JSON file of this program; undefined if it doesn't exist.
 *
 * @param parse validates the value; throws an Error naming the defect, or a CliError with its own hint
 * @throws CliError `cannot_read`, as `readOwnFile`, and if the file is empty, damaged or of a later version
 */
export function readJsonFile<T>(path: string, parse: (value: unknown) => T): T | undefined {
  const text = readOwnFile(path)
  if (text === undefined) return undefined
  if (text.trim() === '') throw fileError(path, 'it is empty')
  try {
    return parse(JSON.parse(text))
  } catch (error) {
    if (error instanceof CliError) throw error
    const isInvalid = error instanceof SyntaxError
    // Don't include the parser's message: it quotes the file, which may hold a secret.
    throw fileError(path, isInvalid ? 'it is damaged: it is not valid JSON' : (error as Error).message)
  }
}

/** Returns the error for a file of this program that is damaged, of a later version, or can't be read. */
export function fileError(
  path: string,
  why: string,
  { hint, code = 'cannot_read', cause }: { hint?: string | undefined; code?: FileCode; cause?: unknown } = {},
): CliError {
  return new CliError(code, `the file ${path} can't be used: ${why}`, {
    hint: hint ?? 'it was left as it is; fix it, or move it away',
    cause,
  })
}

/** Refuses a file format that this version of the program doesn't read. @throws Error naming the found and the known format */
export function requireFileFormat(found: unknown, known: number): void {
  if (found === known) return
  throw new Error(
    typeof found === 'number' && found > known
      ? `it was written by a later version of mailclaim (format ${found}, this one knows ${known})`
      : 'it is damaged: it has no format number',
  )
}
