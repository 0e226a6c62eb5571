import { join } from 'node:path'
import { CliError } from '../../errors.ts'
import { writeFileDurably } from '../../storage/atomic-file.ts'
import { catchError } from '../../storage/file-errors.ts'
import { decodeSession, encodeSession, type ProfileFiles, type Session } from '../session-file.ts'

const pathOf = ({ directory }: ProfileFiles) => join(directory, 'shared.json')

/** Reads this machine's copy of a session in etcd, with the access token; undefined if the copy is missing or damaged. */
export function readCachedSession(files: ProfileFiles): Session | undefined {
  try {
    const text = files.disk.read(pathOf(files))
    const session = text === undefined ? undefined : decodeSession(text)
    return session?.profile === files.profile ? session : undefined
  } catch {
    return undefined
  }
}

/**
 * Writes this machine's copy of a session in etcd, without the refresh token. Ignores a failure: without a copy, the next command
 * reads etcd.
 */
export async function writeCachedSession(files: ProfileFiles, session: Session): Promise<void> {
  const { refreshToken: _inEtcd, ...kept } = session
  try {
    await files.prepare()
    writeFileDurably(pathOf(files), encodeSession(kept), files.disk)
  } catch (error) {
    if (!(error instanceof CliError)) throw error
  }
}

export function removeCachedSession(files: ProfileFiles): void {
  catchError(() => files.disk.remove(pathOf(files)))
}

/**
 * A refresh token, identified by its sign-in and generation, and the id (`writer`) of the marker that entitles this machine to send
 * the token.
 */
export interface RenewalAttempt {
  /** Id of the sign-in. */
  readonly id: string
  readonly generation: number
  readonly writer: string
}

/** Returns the name of the pending file, which holds the outcome of a sent token until etcd confirms it. */
export function pendingFileName({ id, generation, writer }: RenewalAttempt): string {
  return `pending.${id}.${generation}.${writer}`
}

/** Lists the pending files of a profile: outcomes that etcd hasn't confirmed. @throws CliError `cannot_write`, exit 1 */
export function listPendingFiles({ disk, directory }: ProfileFiles): (RenewalAttempt & { path: string })[] {
  return disk.names(directory).flatMap((name) => {
    const [kind, id = '', generation, writer = ''] = name.split('.')
    return kind === 'pending'
      ? [{ path: join(directory, name), id, generation: Number(generation), writer }]
      : []
  })
}

/** Removes every file that this machine keeps of a session in etcd. Never throws. */
export function removeLocalCopies(files: ProfileFiles): void {
  removeCachedSession(files)
  // Ignore a directory that can't be read: the next command that writes to it reports the error.
  catchError(() => {
    for (const { path } of listPendingFiles(files)) catchError(() => files.disk.remove(path))
  })
}
