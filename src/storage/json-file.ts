import { constants, fstatSync, openSync, readFileSync } from 'node:fs'
import { basename } from 'node:path'
import { CliError, Exit, type ExitCode } from '../errors.ts'
import { shellQuote } from '../shell-quote.ts'
import { closeQuietly, codeOf, POSIX, reason } from './file-errors.ts'
import { ownUser } from './private-directory.ts'

/** No file of this program comes near it; a larger one is not ours. */
const MAX_FILE_BYTES = 4 * 1024 * 1024

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
    file = openSync(path, constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0))
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
    closeQuietly(file)
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
