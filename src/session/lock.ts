import { constants } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import type { Context } from '../context.ts'
import { CliError, Exit } from '../errors.ts'

/** The operating system's lock on an open file; it is gone when the process is, however that ends. */
export interface FileLocks {
  /** False where another process holds it. */
  tryLock(fd: number): boolean
  unlock(fd: number): void
}

export interface LockOptions<T> {
  /** Milliseconds to wait for another process. */
  readonly deadlineMs: number
  /** Asked while another process holds the lock: what it brings about may be all that is needed. */
  readonly meanwhile?: () => Promise<T | undefined>
  /** Loads the locks; only tests give another. */
  readonly load?: () => Promise<FileLocks>
}

const FIRST_PAUSE_MS = 20
const LONGEST_PAUSE_MS = 250

/**
 * Runs work while this process holds the lock on a file. The lock is never stolen, whatever its age: only the kernel
 * knows whether its holder lives.
 *
 * @throws CliError `lock_unavailable`, exit 4, where this system has no such locks; `session_busy`, exit 7, where
 *   another process held it until the deadline; the reason of an interrupt.
 */
export async function withLock<T>(
  path: string,
  context: Pick<Context, 'clock' | 'random' | 'interrupts'>,
  options: LockOptions<T>,
  work: () => Promise<T>,
): Promise<T> {
  const locks = await loadLocks(options.load ?? loadNative)
  const file = await openLockFile(path)
  try {
    const end = context.clock.monotonic() + options.deadlineMs
    for (let pause = FIRST_PAUSE_MS; !take(locks, file.fd, path); pause *= 1.5) {
      const enough = await options.meanwhile?.()
      if (enough !== undefined) return enough
      const left = end - context.clock.monotonic()
      if (left <= 0) throw busy(path, options.deadlineMs)
      const wait = Math.min(pause, LONGEST_PAUSE_MS, left) * (0.5 + context.random.fraction() / 2)
      await context.clock.sleep(wait, context.interrupts.signal)
    }
    try {
      return await work()
    } finally {
      locks.unlock(file.fd)
    }
  } finally {
    await file.close()
  }
}

/** The file's descriptor is not inherited by the processes that we start (O_CLOEXEC), so none of them keeps the lock. */
async function openLockFile(path: string): Promise<FileHandle> {
  try {
    const file = await open(path, constants.O_RDWR | constants.O_CREAT | (constants.O_NOFOLLOW ?? 0), 0o600)
    // The umask may have taken our own rights as well, and with them the next command's.
    await file.chmod(0o600).catch(() => undefined)
    return file
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code ?? ''
    const why = code === 'ELOOP' ? 'it is a link, and this program makes none' : code
    throw new CliError('lock_unavailable', Exit.notSignedIn, `the lock ${path} cannot be opened: ${why}`, {
      hint: 'check the owner and the rights of that file and its folder; until then MAILCLAIM_API_KEY works',
      cause: error,
    })
  }
}

function take(locks: FileLocks, fd: number, path: string): boolean {
  try {
    return locks.tryLock(fd)
  } catch (error) {
    throw new CliError(
      'lock_unavailable',
      Exit.notSignedIn,
      `${path} cannot be locked: ${error instanceof Error ? error.message : String(error)}`,
      {
        hint: 'without a lock two commands could use one refresh token, so nothing is refreshed; set MAILCLAIM_STATE_DIR to a local disk, or use MAILCLAIM_API_KEY',
        cause: error,
      },
    )
  }
}

async function loadNative(): Promise<FileLocks> {
  return import('../settings/native-locks.ts')
}

async function loadLocks(load: () => Promise<FileLocks>): Promise<FileLocks> {
  try {
    return await load()
  } catch (error) {
    throw new CliError(
      'lock_unavailable',
      Exit.notSignedIn,
      'the file lock (fs-native-extensions) does not work on this system, so sessions cannot be refreshed safely',
      { hint: 'use an API key (MAILCLAIM_API_KEY), which needs no lock', cause: error },
    )
  }
}

function busy(path: string, deadlineMs: number): CliError {
  return new CliError(
    'session_busy',
    Exit.unavailable,
    `another mailclaim has held the lock of this session for ${Math.round(deadlineMs / 1000)} seconds (${path})`,
    { hint: 'let it finish, or end it, and run this command again; do not delete the lock file' },
  )
}
