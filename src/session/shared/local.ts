import { join } from 'node:path'
import { CliError } from '../../errors.ts'
import { writeDurable } from '../../storage/atomic-file.ts'
import { catchError } from '../../storage/file-errors.ts'
import { decode, encode, type ProfileFiles, type Session } from '../session-file.ts'

const pathOf = ({ directory }: ProfileFiles) => join(directory, 'shared.json')

/** What this machine last knew of a session in etcd, with its access token; undefined if there is nothing usable. */
export function readLocalCopy(files: ProfileFiles): Session | undefined {
  try {
    const text = files.disk.read(pathOf(files))
    const session = text === undefined ? undefined : decode(text)
    return session?.profile === files.profile ? session : undefined
  } catch {
    return undefined
  }
}

/** Keeps the access token on this machine, without the refresh token. If it can't, the next command asks etcd. */
export async function writeLocalCopy(files: ProfileFiles, session: Session): Promise<void> {
  const { refreshToken: _inEtcd, ...kept } = session
  try {
    await files.prepare()
    writeDurable(pathOf(files), encode(kept), files.disk)
  } catch (error) {
    if (!(error instanceof CliError)) throw error
  }
}

export function removeLocalCopy(files: ProfileFiles): void {
  catchError(() => files.disk.remove(pathOf(files)))
}

/** A refresh token that a machine may send, by the note that gives it the right to. */
export interface NotedToken {
  /** The sign-in. */
  readonly id: string
  readonly generation: number
  readonly writer: string
}

/** The name of the file that takes the outcome of a token, until etcd has it. */
export function pendingName({ id, generation, writer }: NotedToken): string {
  return `pending.${id}.${generation}.${writer}`
}

/** @throws CliError `cannot_write`, exit 1. */
export function listPending({ disk, directory }: ProfileFiles): (NotedToken & { readonly path: string })[] {
  return disk.names(directory).flatMap((name) => {
    const [kind, id = '', generation, writer = ''] = name.split('.')
    return kind === 'pending'
      ? [{ path: join(directory, name), id, generation: Number(generation), writer }]
      : []
  })
}

/** Removes everything that this machine keeps of a session in etcd. Never throws. */
export function removeLocalFiles(files: ProfileFiles): void {
  removeLocalCopy(files)
  // A directory that can't be read is named by whoever has to change it.
  catchError(() => {
    for (const { path } of listPending(files)) catchError(() => files.disk.remove(path))
  })
}
