import { join } from 'node:path'
import { CliError } from '../errors.ts'
import { removeFileDurably } from '../storage/atomic-file.ts'
import { catchError, errnoCode, writeError } from '../storage/file-errors.ts'
import { tokenLostError } from './messages.ts'
import { decodeSession, findSession, type ProfileFiles, SESSION_BYTES, type Session } from './session-file.ts'

/**
 * Returns the file name of a refresh token's note. A note says that its token may have been sent, and reserves the disk space in
 * which the next session will be stored.
 */
export function noteFileName({ id, generation }: Pick<Session, 'id' | 'generation'>): string {
  return `next.${id}.${generation}`
}

/**
 * Reads a note: the next session if its text is complete. `unsent`: the note is shorter than the space that is written and flushed
 * before its token is sent, so the token wasn't sent. `incomplete`: the token may have been sent. `absent`: there is no such file.
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
    return text !== undefined && Buffer.byteLength(text) < SESSION_BYTES ? 'unsent' : 'incomplete'
  }
}

/**
 * Whether a note holds a complete next session, so that the note may replace `session.json`. A next session without its refresh
 * token is complete only if the session has ended: otherwise the token may be in no store.
 */
export function isCompleteSession(next: ReturnType<typeof readNoteFile> | undefined): next is Session {
  return typeof next === 'object' && (next.refreshToken !== undefined || next.ended !== undefined)
}

/** Returns the file names of all notes of a profile. @throws CliError `cannot_write`, exit 1 */
export function listNoteFiles({ disk, directory }: ProfileFiles): string[] {
  return disk.names(directory).filter((name) => name.startsWith('next.'))
}

/**
 * Creates a note, writes spaces into it and flushes file and directory, so that storing the next session needs no new disk space.
 * If several processes create the same note at the same time, one succeeds (O_EXCL).
 *
 * @param mode `retry` opens the existing note of an earlier use of the token
 * @throws CliError `session_busy`, exit 7, if the note exists or, with `retry`, no longer exists; `cannot_write`, exit 1, after
 *   removing a note created by this call
 */
export function reserveFile(
  { disk, directory, profile }: ProfileFiles,
  name: string,
  mode: 'new' | 'retry' = 'new',
  bytes = SESSION_BYTES,
) {
  const path = join(directory, name)
  const isOwn = mode === 'new'
  let fd: number
  try {
    fd = isOwn ? disk.create(path) : disk.open(path)
  } catch (error) {
    if (errnoCode(error) === (isOwn ? 'EEXIST' : 'ENOENT')) throw sessionChangedError(profile)
    throw writeError(path, error)
  }
  let isOpen = true
  const put = (text: string) => {
    disk.write(fd, text.padEnd(bytes))
    disk.sync(fd)
  }
  const reservation = {
    path,
    /** Writes a text over the reserved space and flushes the file. @throws the system error of the second attempt */
    fill(text: string) {
      try {
        put(text)
      } catch {
        // This process has the only copy of the new refresh token, so retry once before the token is lost.
        put(text)
      }
    },
    close() {
      if (isOpen) disk.close(fd)
      isOpen = false
    },
    /** Closes the file; removes the file only if this process created it. @returns the error if removing failed */
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
    throw writeError(path, error)
  }
}

/** An open file whose disk space is reserved for a text to come. */
export type ReservedFile = ReturnType<typeof reserveFile>

/** Returns the error for a session that other processes changed in every pass of a renewal, so that no pass could finish. */
export function sessionChangedError(profile: string): CliError {
  const message = `the session of profile ${profile} keeps changing`
  return new CliError('session_busy', message, { hint: 'run this command again' })
}

/**
 * Renames a complete note over `session.json`: one step stores the next session and removes the note. Then removes the notes of the
 * sign-in's earlier tokens, which the service has already rotated.
 *
 * @throws CliError `refresh_token_lost`, exit 4, if the note is gone; `cannot_write`, exit 1, if the rename failed: the next
 *   command repeats it
 */
export function replaceSession(files: ProfileFiles, path: string, { id, generation }: Session): void {
  const { disk, directory } = files
  try {
    disk.rename(path, files.session)
  } catch (error) {
    // The session may be stored despite the error: another process renamed the same note, or the file system reported an error
    // after renaming. So compare the stored generation.
    const now = findSession(files)
    const isStored = now?.id === id && now.generation >= generation
    if (!isStored)
      throw errnoCode(error) === 'ENOENT' ? tokenLostError(files.profile) : writeError(files.session, error)
  }
  // Remove the earlier notes only after flushing the directory: otherwise a power loss could bring back the former `session.json`
  // without its note, and its used token would be sent again.
  catchError(() => {
    disk.syncDirectory(directory)
    for (const name of listNoteFiles(files)) {
      const [, ofId, ofGeneration] = name.split('.')
      if (ofId === id && Number(ofGeneration) < generation)
        catchError(() => disk.remove(join(directory, name)))
    }
  })
}

/**
 * Stores the next session from a complete note of an earlier process. Flushes the note first, because its text may have reached
 * only the page cache, and a power loss after the rename would lose the text.
 *
 * @throws CliError `cannot_write`, exit 1
 */
export function storeSessionFromNote(files: ProfileFiles, name: string, session: Session): void {
  const { disk, directory } = files
  const path = join(directory, name)
  try {
    const fd = disk.open(path)
    try {
      disk.sync(fd)
    } finally {
      disk.close(fd)
    }
  } catch (error) {
    throw writeError(path, error)
  }
  replaceSession(files, path, session)
}
