import { closeSync } from 'node:fs'
import { CliError, Exit } from '../errors.ts'

export const POSIX = process.platform !== 'win32'

/** The error for a file that cannot be written: `cannot_write`, exit 1, with what to do about it. */
export function cannotWrite(path: string, error: unknown): CliError {
  if (error instanceof CliError) return error
  const code = codeOf(error)
  const hint =
    code === 'ENOSPC' || code === 'EDQUOT'
      ? 'make room on that disk and run the command again'
      : code === 'EFBIG'
        ? 'a limit on file sizes is in force (ulimit -f): raise it and run the command again'
        : 'check the owner and the rights of that folder, or set MAILCLAIM_STATE_DIR and MAILCLAIM_CONFIG_DIR'
  return new CliError('cannot_write', Exit.bug, `${path} cannot be written: ${reason(error)}`, {
    hint,
    cause: error,
  })
}

const REASONS: Readonly<Record<string, string>> = {
  ENOENT: 'a part of the path is not there',
  ENOSPC: 'the disk is full',
  EDQUOT: 'the disk quota is used up',
  EFBIG: 'the file would be larger than this process may write',
  EROFS: 'the file system is read-only',
  EACCES: 'permission denied',
  EPERM: 'permission denied',
  ENOTDIR: 'a part of the path is not a folder',
  EISDIR: 'it is a folder',
  ELOOP: 'it goes through a link',
  EIO: 'the disk reports an error',
  EMFILE: 'too many files are open',
}

/** What went wrong with a file, in words where we have them. */
export function reason(error: unknown): string {
  const code = codeOf(error)
  if (code === undefined) return error instanceof Error ? error.message : String(error)
  return REASONS[code] ?? code
}

/** The system's code of an error, `ENOENT` say. */
export function codeOf(error: unknown): string | undefined {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : undefined
}

/** Closes a file, whatever the disk says of it: what had to be on it was flushed before. */
export function closeQuietly(fd: number): void {
  try {
    closeSync(fd)
  } catch {
    // Closed already, or the disk complains of what fsync has told.
  }
}
