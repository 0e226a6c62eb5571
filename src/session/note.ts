import { join } from 'node:path'
import { CliError } from '../errors.ts'
import { removeFileDurably } from '../storage/atomic-file.ts'
import { cannotWriteError, catchError, errnoCode } from '../storage/file-errors.ts'
import { tokenLostError } from './messages.ts'
import { decodeSession, NOTE_BYTES, type ProfileFiles, type Session, tryReadSession } from './session-file.ts'

/**
 * Returns the name of a refresh token's note file (`next.…`), which a renewal creates before sending the token, and into which it
 * writes the next session. A login uses `generation` 0.
 */
export function noteFileName({ id, generation }: Pick<Session, 'id' | 'generation'>): string {
  return `next.${id}.${generation}`
}

/**
 * Reads a note file (`next.…`), which shows how far a renewal has come.
 *
 * @returns the next session if the file holds one; `unsent` if the file has fewer than `NOTE_BYTES` bytes, which are written and
 *   flushed before the refresh token is sent; `incomplete` if the token may have been sent, or the file can't be read; `absent`
 *   if there is no file
 */
export function readNoteFile(
  { disk, directory }: ProfileFiles,
  name: string,
): Session | 'absent' | 'unsent' | 'incomplete' {
  let text: string | undefined
  try {
    text = disk.read(join(directory, name))
    return text === undefined ? 'absent' : decodeSession(text)
  } catch {
    return text !== undefined && Buffer.byteLength(text) < NOTE_BYTES ? 'unsent' : 'incomplete'
  }
}

/**
 * Whether a note file (`next.…`) holds a session that may replace `session.json`: one with its refresh token or API key, or one
 * that has ended. Any other session is unusable: its token isn't in the note file, and may not be in the keychain either.
 */
export function isUsableSuccessor(next: ReturnType<typeof readNoteFile> | undefined): next is Session {
  return typeof next === 'object' && (next.refreshToken !== undefined || next.ended !== undefined)
}

/**
 * Lists the names of a profile's note files (`next.…`).
 *
 * @throws CliError `cannot_write`, exit 1, if the directory can't be read
 */
export function listNoteFileNames({ disk, directory }: ProfileFiles): string[] {
  return disk.names(directory).filter((name) => name.startsWith('next.'))
}

/**
 * Creates a note file (`next.…`) or an outcome file (`pending.…`), fills it with spaces and flushes it, to allocate disk space
 * for the tokens to come. The creation is exclusive (O_EXCL): of several processes, one succeeds.
 *
 * @param mode `retry` opens the note file that an earlier use of the token has left, instead of creating it
 * @throws CliError `session_busy`, exit 7, if the file exists or, with `retry`, is gone; `cannot_write`, exit 1
 */
export function preallocateFile(
  { disk, directory, profile }: ProfileFiles,
  name: string,
  mode: 'new' | 'retry' = 'new',
  bytes = NOTE_BYTES,
) {
  const path = join(directory, name)
  const isOwn = mode === 'new'
  let fd: number
  try {
    fd = isOwn ? disk.create(path) : disk.open(path)
  } catch (error) {
    if (errnoCode(error) === (isOwn ? 'EEXIST' : 'ENOENT')) throw sessionChangedError(profile)
    throw cannotWriteError(path, error)
  }
  let isOpen = true
  const put = (text: string) => {
    disk.write(fd, text.padEnd(bytes))
    disk.sync(fd)
  }
  const reservation = {
    path,
    /**
     * Writes a text into the allocated space and flushes the file; tries again once after an error.
     *
     * @throws the system error of the second attempt
     */
    fill(text: string) {
      try {
        put(text)
      } catch {
        // The text may hold the only copy of a new refresh token: one more attempt may save it.
        put(text)
      }
    },
    close() {
      if (isOpen) disk.close(fd)
      isOpen = false
    },
    /**
     * Closes the preallocated file (`next.…` or `pending.…`), and removes it if this process has created it (mode `new`).
     *
     * @returns the error if removing failed
     */
    discard(): Error | undefined {
      reservation.close()
      return isOwn ? catchError(() => void removeFileDurably(path, disk)) : undefined
    },
  }
  try {
    put('')
    disk.syncDirectory(directory)
    return reservation
  } catch (error) {
    reservation.discard()
    throw cannotWriteError(path, error)
  }
}

/** An open note file (`next.…`) or outcome file (`pending.…`), whose disk space is already allocated. */
export type AllocatedFile = ReturnType<typeof preallocateFile>

/**
 * Returns the error for a session that another process changed during a renewal. The renewal starts over, and reports the error
 * only if the session keeps changing.
 */
export function sessionChangedError(profile: string): CliError {
  const message = `the session of profile ${profile} keeps changing`
  return new CliError('session_busy', message, { hint: 'run this command again' })
}

/**
 * Renames a note file (`next.…`) to `session.json`, which in one step stores the next session and removes the note file. Then
 * tries to remove the note files of earlier tokens of the sign-in.
 *
 * @throws CliError `refresh_token_lost`, exit 4, if the note file is gone; `cannot_write`, exit 1, if it can't be renamed;
 *   neither if `session.json` already holds the next session or a later one of the sign-in
 */
export function promoteNoteFile(files: ProfileFiles, path: string, { id, generation }: Session): void {
  const { disk, directory, profile } = files
  try {
    disk.rename(path, files.session)
  } catch (error) {
    // Read `session.json` again, since the session may be stored despite the error: another process renamed the same note file
    // (`next.…`), or the file system reported an error after renaming.
    const now = tryReadSession(files)
    const isStored = now?.id === id && now.generation >= generation
    if (!isStored)
      throw errnoCode(error) === 'ENOENT' ? tokenLostError(profile) : cannotWriteError(files.session, error)
  }
  // Flush the directory before removing earlier note files (`next.…`): otherwise a power loss could bring back the former
  // `session.json` without its note file, and its used token would be sent again.
  catchError(() => {
    disk.syncDirectory(directory)
    for (const name of listNoteFileNames(files)) {
      const [, ofId, ofGeneration] = name.split('.')
      if (ofId === id && Number(ofGeneration) < generation)
        catchError(() => disk.remove(join(directory, name)))
    }
  })
}

/**
 * Stores the next session, which an earlier process left in its note file (`next.…`). Flushes the file before renaming it:
 * otherwise a power loss could leave an empty `session.json`.
 *
 * @throws CliError `cannot_write`, exit 1, if the file can't be opened or flushed; as `promoteNoteFile`
 */
export function storeSessionFromNote(files: ProfileFiles, fileName: string, session: Session): void {
  const { disk, directory } = files
  const path = join(directory, fileName)
  try {
    const fd = disk.open(path)
    try {
      disk.sync(fd)
    } finally {
      disk.close(fd)
    }
  } catch (error) {
    throw cannotWriteError(path, error)
  }
  promoteNoteFile(files, path, session)
}
