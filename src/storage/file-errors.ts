import { statSync } from 'node:fs'
import { dirname } from 'node:path'
import { CliError } from '../errors.ts'

export const IS_POSIX = process.platform !== 'win32'

/**
 * Returns the error `cannot_write`, exit 1, for a file that can't be written, with a hint for its cause. Returns a `CliError`
 * unchanged.
 */
export function cannotWriteError(path: string, error: unknown): CliError {
  if (error instanceof CliError) return error
  const permissions =
    'check the owner and the permissions of that directory, or set MAILCLAIM_STATE_DIR and MAILCLAIM_CONFIG_DIR'
  return new CliError('cannot_write', `${path} can't be written: ${reasonOf(error)}`, {
    hint: createChownHint(path) ?? hintForErrno(error, permissions),
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

/** Returns the hint for a system error by its code. @param defaultHint hint for codes without one */
export function hintForErrno(error: unknown, defaultHint: string): string {
  return REMEDIES[errnoCode(error) ?? ''] ?? defaultHint
}

/**
 * Returns a hint with a `chown` command if root owns the path, or a directory above it, inside a directory of this user, as
 * after `sudo`; otherwise undefined.
 */
export function createChownHint(path: string): string | undefined {
  const parent = dirname(path)
  let owners: (number | undefined)[] = []
  catchError(() => {
    owners = [path, parent].map((at) => statSync(at, { throwIfNoEntry: false })?.uid)
  })
  // Suggest no chown if this process runs as root, which can write everywhere.
  if (owners[0] === 0 && owners[1] !== 0 && owners[1] === process.getuid?.())
    return `root owns it, as after sudo: sudo chown -R "$(id -u)" '${path}'`
  return parent === path ? undefined : createChownHint(parent)
}

/** Messages for errors of Linux, by `errno`, that libuv and so Node report only as `UNKNOWN`. */
const UNNAMED: Readonly<Record<string, string>> = {
  '-122': 'EDQUOT: disk quota exceeded',
  '-116': 'ESTALE: stale file handle',
}
const unnamed = (error: unknown) => UNNAMED[String((error as Partial<NodeJS.ErrnoException> | null)?.errno)]

/**
 * Returns the cause of an error in one line: "no space left on device" for "ENOSPC: no space left on device, write"; else the
 * error code, or the message if there is none.
 */
export function reasonOf(error: unknown): string {
  const message = unnamed(error) ?? (error instanceof Error ? error.message : String(error))
  return /^E[A-Z0-9]+: (?<words>[^,]+)/.exec(message)?.groups?.['words'] ?? errnoCode(error) ?? message
}

/** Returns an error's `code`, such as `ENOENT`; for `UNKNOWN`, the code of its `errno`, if known. Undefined without a `code`. */
export function errnoCode(error: unknown): string | undefined {
  if (!(error instanceof Error) || !('code' in error) || typeof error.code !== 'string') return undefined
  return unnamed(error)?.split(':')[0] ?? error.code
}

/**
 * Runs work, and returns its error instead of throwing.
 *
 * @returns the error; undefined after success
 */
export function catchError(work: () => void): Error | undefined {
  try {
    work()
    return undefined
  } catch (error) {
    return error as Error
  }
}
