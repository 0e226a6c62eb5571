import { constants, fchmodSync, openSync } from 'node:fs'
import type { Context } from '../context.ts'
import { CliError, Exit } from '../errors.ts'
import { isAt } from './durable-file.ts'
import { closeQuietly, reason } from './file-errors.ts'

/** The operating system's lock on an open file; it is gone when the process is, however that ends. */
export interface FileLocks {
  /** False where another process holds it. */
  tryLock(fd: number): boolean
}

export interface LockOptions<T> {
  /** Milliseconds to wait for another process. */
  readonly deadlineMs: number
  /** Asked while another process holds the lock: what it brings about may be all that is needed. */
  readonly meanwhile?: () => Promise<T | undefined>
  /** Called once, when the wait has taken two seconds. */
  readonly onWait?: () => Promise<void>
  /** The error where another process holds it until the deadline; that of a session where absent. */
  readonly busy?: () => CliError
  /** Loads the locks; only tests give another. */
  readonly load?: () => Promise<FileLocks>
}

export interface HeldLock {
  /**
   * Whether the locked file is still the one at its path. Where something has deleted or replaced it, another process can
   * hold "the" lock as well.
   */
  isCurrent(): boolean
}

const FIRST_PAUSE_MS = 20
const LONGEST_PAUSE_MS = 250
const SILENT_MS = 2_000

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
  work: (lock: HeldLock) => Promise<T>,
): Promise<T> {
  const locks = await loadLocks(options.load ?? loadNative)
  const start = context.clock.monotonic()
  let onWait = options.onWait
  for (let pause = FIRST_PAUSE_MS; ; pause *= 1.5) {
    const fd = openLockFile(path)
    try {
      // Not the one at its path: deleted between opening and locking it, so the next to come would lock another.
      if (take(locks, fd, path) && isAt(fd, path)) return await work({ isCurrent: () => isAt(fd, path) })
    } finally {
      // Which releases the lock.
      closeQuietly(fd)
    }
    const enough = await options.meanwhile?.()
    if (enough !== undefined) return enough
    const waited = context.clock.monotonic() - start
    if (waited >= options.deadlineMs) throw options.busy?.() ?? sessionBusy(path, options.deadlineMs)
    if (waited >= SILENT_MS) {
      await onWait?.()
      onWait = undefined
    }
    const wait = Math.min(pause, LONGEST_PAUSE_MS, options.deadlineMs - waited)
    await context.clock.sleep(wait * (0.5 + context.random.fraction() / 2), context.interrupts.signal)
  }
}

/** As `withLock`, for work that goes on where there are no locks: what it may lose is no refresh token. */
export async function withLockIfAny<T>(
  path: string,
  context: Pick<Context, 'clock' | 'random' | 'interrupts'>,
  options: LockOptions<T>,
  work: () => Promise<T>,
): Promise<T> {
  let started = false
  const locked = () => {
    started = true
    return work()
  }
  try {
    return await withLock(path, context, options, locked)
  } catch (error) {
    if (error instanceof CliError && error.code === 'lock_unavailable' && !started) return work()
    throw error
  }
}

/** The file's descriptor is not inherited by the processes that we start (O_CLOEXEC), so none of them keeps the lock. */
function openLockFile(path: string): number {
  try {
    const fd = openSync(path, constants.O_RDWR | constants.O_CREAT | (constants.O_NOFOLLOW ?? 0), 0o600)
    try {
      // The umask may have taken our own rights as well, and with them the next command's.
      fchmodSync(fd, 0o600)
    } catch {
      // A file system without rights.
    }
    return fd
  } catch (error) {
    const why =
      (error as NodeJS.ErrnoException).code === 'ELOOP'
        ? 'it is a link, and this program makes none'
        : reason(error)
    throw new CliError('lock_unavailable', Exit.notSignedIn, `the lock ${path} cannot be opened: ${why}`, {
      hint: 'check the owner and the permissions of that file and its directory; until then MAILCLAIM_API_KEY works',
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
  return import('./native-locks.ts')
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

function sessionBusy(path: string, deadlineMs: number): CliError {
  return new CliError(
    'session_busy',
    Exit.unavailable,
    `another mailclaim has held the lock of this session for ${Math.round(deadlineMs / 1000)} seconds (${path})`,
    { hint: 'let it finish, or end it, and run this command again; do not delete the lock file' },
  )
}
