import { join } from 'node:path'
import { CliError } from '../../errors.ts'
import { writeFileDurably } from '../../storage/atomic-file.ts'
import { catchError } from '../../storage/file-errors.ts'
import { decodeSession, encodeSession, type ProfileFiles, type Session } from '../session-file.ts'

const pathOf = ({ directory }: ProfileFiles) => join(directory, 'shared.json')

/**
 * Reads the cached session: this machine's copy of the profile's session in etcd, without the refresh token.
 *
 * @returns undefined if the copy is missing, damaged or another profile's
 */
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
 * Caches a session of etcd on this machine, without the refresh token. Ignores a failure: without a valid copy, the next command
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

/** Removes the cached session of a profile, if there is one. Never throws. */
export function removeCachedSession(files: ProfileFiles): void {
  catchError(() => files.disk.remove(pathOf(files)))
}

/**
 * Identity of one process's attempt to renew a session in etcd. `id` and `generation`: those of the session whose refresh
 * token the attempt sends. `writer`: random id of the attempt's marker in etcd (`RenewalMarker`).
 */
export interface RenewalAttemptId {
  readonly id: string
  readonly generation: number
  readonly writer: string
}

/** Returns the name of an attempt's outcome file (`pending.…`), which holds the outcome until etcd confirms it. */
export function outcomeFileName({ id, generation, writer }: RenewalAttemptId): string {
  return `pending.${id}.${generation}.${writer}`
}

/**
 * Lists a profile's outcome files (`pending.…`): outcomes of refresh requests that etcd may not have confirmed.
 *
 * @throws CliError `cannot_write`, exit 1, if the directory can't be read
 */
export function listOutcomeFiles({ disk, directory }: ProfileFiles): (RenewalAttemptId & { path: string })[] {
  return disk.names(directory).flatMap((name) => {
    const [kind, id = '', generation, writer = ''] = name.split('.')
    return kind === 'pending'
      ? [{ path: join(directory, name), id, generation: Number(generation), writer }]
      : []
  })
}

/** Removes the cached session and the outcome files (`pending.…`) of a profile. Never throws. */
export function removeLocalEtcdFiles(files: ProfileFiles): void {
  removeCachedSession(files)
  // Ignore a failure to list the profile's directory: the next command that lists its outcome files reports the error.
  catchError(() => {
    for (const { path } of listOutcomeFiles(files)) catchError(() => files.disk.remove(path))
  })
}
