import { join } from 'node:path'
import { CliError } from '../errors.ts'
import { removeDurable } from '../storage/atomic-file.ts'
import { cannotWrite, catchError, codeOf } from '../storage/file-errors.ts'
import { tokenLostError } from './messages.ts'
import { decode, type ProfileFiles, RESERVED_BYTES, readSessionIfAny, type Session } from './session-file.ts'

/** The name of the file that is the note of a token and the space for its successor. */
export function noteName({ id, generation }: Pick<Session, 'id' | 'generation'>): string {
  return `next.${id}.${generation}`
}

/**
 * Reads such a file: the next session if it is whole. `unsent`: it is shorter than its space, which is written and flushed before the
 * token is sent, so the token was not sent. `incomplete`: the token may have been sent.
 */
export function readNote(
  { disk, directory }: ProfileFiles,
  name: string,
): Session | 'absent' | 'unsent' | 'incomplete' {
  let text: string | undefined
  try {
    text = disk.read(join(directory, name))
    return text === undefined ? 'absent' : decode(text)
  } catch {
    return text !== undefined && Buffer.byteLength(text) < RESERVED_BYTES ? 'unsent' : 'incomplete'
  }
}

/** Whether a file can take the place of `session.json` by itself; without its token only if the keychain has that. */
export function canReplaceSession(next: ReturnType<typeof readNote> | undefined): next is Session {
  return typeof next === 'object' && (next.refreshToken !== undefined || next.ended !== undefined)
}

/** Every file that notes a token or reserves space, by name. @throws CliError `cannot_write`, exit 1. */
export function listNotes({ disk, directory }: ProfileFiles): string[] {
  return disk.names(directory).filter((name) => name.startsWith('next.'))
}

/**
 * Creates the note of a token, and takes the space for its successor from the disk. Of several processes that do it at the same
 * time, one succeeds.
 *
 * @param mode `retry` takes over the note of an earlier use.
 * @throws CliError `session_busy`, exit 7, if there is one already, or, for `retry`, none anymore; `cannot_write`, exit 1; an own note is
 *   removed again.
 */
export function reserveFile(
  { disk, directory, profile }: ProfileFiles,
  name: string,
  mode: 'new' | 'retry' = 'new',
  bytes = RESERVED_BYTES,
) {
  const path = join(directory, name)
  const isOwn = mode === 'new'
  let fd: number
  try {
    fd = isOwn ? disk.create(path) : disk.open(path)
  } catch (error) {
    if (codeOf(error) === (isOwn ? 'EEXIST' : 'ENOENT')) throw sessionChangedError(profile)
    throw cannotWrite(path, error)
  }
  let isOpen = true
  const put = (text: string) => {
    disk.write(fd, text.padEnd(bytes))
    disk.sync(fd)
  }
  const reservation = {
    path,
    /** Writes what it is for into its space, and flushes it. @throws the system's error, of the second try. */
    fill(text: string) {
      try {
        put(text)
      } catch {
        // Nobody else has the token, so once more.
        put(text)
      }
    },
    close() {
      if (isOpen) disk.close(fd)
      isOpen = false
    },
    /** Closes it, and removes it if this process created it. Somebody else's stays. @returns why it can't be removed; it never throws. */
    discard(): Error | undefined {
      reservation.close()
      return isOwn ? catchError(() => void removeDurable(path, disk)) : undefined
    },
  }
  try {
    put('')
    disk.syncDirectory(directory)
    return reservation
  } catch (error) {
    reservation.discard()
    throw cannotWrite(path, error)
  }
}

/** A file whose space is taken from the disk, open for what is going to be in it: a note until then. */
export type Reservation = ReturnType<typeof reserveFile>

/** Others have changed the session since it was read, perhaps each time. */
export function sessionChangedError(profile: string): CliError {
  const message = `the session of profile ${profile} keeps changing`
  return new CliError('session_busy', message, { hint: 'run this command again' })
}

/**
 * Puts a value that is whole on the disk in the place of `session.json`: this stores it and removes the note in one step. Then the
 * notes of earlier tokens of the sign-in, which are used up, go too.
 *
 * @throws CliError `refresh_token_lost`, exit 4, if something has removed it; `cannot_write`, exit 1: the next command does it.
 */
export function replaceSession(files: ProfileFiles, path: string, { id, generation }: Session): void {
  const { disk, directory } = files
  try {
    disk.rename(path, files.session)
  } catch (error) {
    // Somebody else may have finished it, or the system has, despite the error.
    const now = readSessionIfAny(files)
    const isStored = now?.id === id && now.generation >= generation
    if (!isStored)
      throw codeOf(error) === 'ENOENT' ? tokenLostError(files.profile) : cannotWrite(files.session, error)
  }
  // If it isn't flushed, every reader sees it already; but a power loss may bring the earlier value back, which needs its notes.
  catchError(() => {
    disk.syncDirectory(directory)
    for (const name of listNotes(files)) {
      const [, ofId, ofGeneration] = name.split('.')
      if (ofId === id && Number(ofGeneration) < generation)
        catchError(() => disk.remove(join(directory, name)))
    }
  })
}

/**
 * Finishes what an earlier process has written whole, but not put in place. It may be in memory only, so it is flushed first.
 *
 * @throws CliError `cannot_write`, exit 1.
 */
export function finishStore(files: ProfileFiles, name: string, session: Session): void {
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
    throw cannotWrite(path, error)
  }
  replaceSession(files, path, session)
}
