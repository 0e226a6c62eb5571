import { statSync } from 'node:fs'
import { dirname } from 'node:path'
import { CliError } from '../errors.ts'

export const POSIX = process.platform !== 'win32'

/** The error for a file that can't be written: `cannot_write`, exit 1, with what to do about it. */
export function cannotWrite(path: string, error: unknown): CliError {
  if (error instanceof CliError) return error
  const permissions =
    'check the owner and the permissions of that directory, or set MAILCLAIM_STATE_DIR and MAILCLAIM_CONFIG_DIR'
  return new CliError('cannot_write', `${path} can't be written: ${reason(error)}`, {
    hint: rootOwnerHint(path) ?? remedy(error, permissions),
    cause: error,
  })
}

const REMEDIES: Readonly<Record<string, string>> = {
  EBUSY: 'close what has it open, such as an editor or a backup, and run the command again',
  EIO: 'run the command again; if this happens again, check the disk',
  EMFILE: 'raise the limit on open files (ulimit -n) and run the command again',
  ENFILE: 'run the command again when fewer files are open',
  ENOMEM: 'run the command again when more memory is free',
  ENOSPC: 'free some space on that disk and run the command again',
  EDQUOT: 'free some of your quota on that disk and run the command again',
  EFBIG: 'raise the limit on file sizes (ulimit -f) and run the command again',
}

/** What to do about a file that can't be used. @param otherwise if the error doesn't say. */
export function remedy(error: unknown, otherwise: string): string {
  return REMEDIES[codeOf(error) ?? ''] ?? otherwise
}

/**
 * The command that gives back what a command with sudo has left: of a path, the part that is root's in a directory of this user's;
 * undefined if there is none.
 */
export function rootOwnerHint(path: string): string | undefined {
  const parent = dirname(path)
  let owners: (number | undefined)[] = []
  catchError(() => {
    owners = [path, parent].map((at) => statSync(at, { throwIfNoEntry: false })?.uid)
  })
  // To root itself, everything is root's.
  if (owners[0] === 0 && owners[1] !== 0 && owners[1] === process.getuid?.())
    return `root owns it, as after sudo: sudo chown -R "$(id -u)" '${path}'`
  return parent === path ? undefined : rootOwnerHint(parent)
}

/** Messages for the `errno` values of Linux that libuv, and so Node, reports as `UNKNOWN`. */
const UNNAMED: Readonly<Record<string, string>> = {
  '-122': 'EDQUOT: disk quota exceeded',
  '-116': 'ESTALE: stale file handle',
}
const unnamed = (error: unknown) => UNNAMED[String((error as Partial<NodeJS.ErrnoException> | null)?.errno)]

/** What went wrong with a file: of "ENOSPC: no space left on device, write", the middle; else the code, on one line. */
export function reason(error: unknown): string {
  const message = unnamed(error) ?? (error instanceof Error ? error.message : String(error))
  return /^E[A-Z0-9]+: (?<words>[^,]+)/.exec(message)?.groups?.['words'] ?? codeOf(error) ?? message
}

/** The system's code of an error, such as `ENOENT`. */
export function codeOf(error: unknown): string | undefined {
  if (!(error instanceof Error) || !('code' in error) || typeof error.code !== 'string') return undefined
  return unnamed(error)?.split(':')[0] ?? error.code
}

/** Does what needn't succeed, such as removing what is of no use to anybody. @returns why it has failed; it never throws. */
export function catchError(work: () => void): Error | undefined {
  try {
    work()
    return undefined
  } catch (error) {
    return error as Error
  }
}
