import { constants, fchmodSync, openSync } from 'node:fs'
import type { Context } from '../context.ts'
import { CliError, Exit } from '../errors.ts'
import { isAt } from './durable-file.ts'
import { closeQuietly, reason, remedy } from './file-errors.ts'

/** The operating system's locks on open files. A lock is released when its process ends, however that happens. */
export interface FileLocks {
  /** False if another process holds the lock. A shared lock, which others can share, works on a read-only disk too. */
  tryLock(fd: number, options?: { readonly shared?: boolean }): boolean
}

export interface LockOptions<T> {
  /** Milliseconds to wait for another process. */
  readonly deadlineMs: number
  /** Called while another process holds the lock; a result ends the wait. */
  readonly meanwhile?: () => Promise<T | undefined>
  /** Called once, when the wait has taken two seconds. */
  readonly onWait?: () => Promise<void>
  /** The error if another process holds the lock until the deadline; `session_busy` by default. */
  readonly busy?: () => CliError
  /** Loads the locks; only tests replace it. */
  readonly load?: () => Promise<FileLocks>
}

/** What waiting for a lock needs. */
export type LockContext = Pick<Context, 'clock' | 'random' | 'interrupts'>

export interface HeldLock extends FileLocks {
  /**
   * Whether the locked file is still the one at its path. If something deleted or replaced it, another process can hold
   * "the" lock as well.
   */
  isCurrent(): boolean
}

/** What the work returns to wait on, because another process is still at it although its lock file was deleted. */
export const STILL_HELD = Symbol('still held')

const FIRST_PAUSE_MS = 20
const MAX_PAUSE_MS = 250
const SILENT_MS = 2_000

/**
 * Runs work while this process holds the lock on a file. The lock is never stolen because of its age: only the kernel
 * knows whether its holder is alive.
 *
 * @throws CliError `lock_unavailable`, exit 4, if this system has no such locks; `session_busy`, exit 7, if another
 *   process held it until the deadline; the reason of an interrupt.
 */
export async function withLock<T>(
  path: string,
  context: LockContext,
  options: LockOptions<T>,
  work: (lock: HeldLock) => Promise<T | typeof STILL_HELD>,
): Promise<T> {
  const locks = await loadLocks(options.load ?? loadNative)
  const start = context.clock.monotonic()
  let onWait = options.onWait
  for (let pause = FIRST_PAUSE_MS; ; pause *= 1.5) {
    const fd = openLockFile(path)
    try {
      // If the file was deleted between opening and locking it, the next process would lock another one.
      if (take(locks, fd, path) && isAt(fd, path)) {
        const result = await work({ isCurrent: () => isAt(fd, path), tryLock: locks.tryLock })
        if (result !== STILL_HELD) return result
      }
    } finally {
      // This releases the lock.
      closeQuietly(fd)
    }
    const found = await options.meanwhile?.()
    if (found !== undefined) return found
    const waited = context.clock.monotonic() - start
    if (waited >= options.deadlineMs) throw options.busy?.() ?? sessionBusy(path, options.deadlineMs)
    if (waited >= SILENT_MS) {
      await onWait?.()
      onWait = undefined
    }
    const wait = Math.min(pause, MAX_PAUSE_MS, options.deadlineMs - waited)
    await context.clock.sleep(wait * (0.5 + context.random.fraction() / 2), context.interrupts.signal)
  }
}

/** As `withLock`, but runs the work without a lock on a system that has none: for work that can't lose a refresh token. */
export async function withLockIfAny<T>(
  path: string,
  context: LockContext,
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

/** Processes that we start don't inherit the descriptor (O_CLOEXEC), so they can't keep the lock. */
function openLockFile(path: string): number {
  try {
    const fd = openSync(path, constants.O_RDWR | constants.O_CREAT | (constants.O_NOFOLLOW ?? 0), 0o600)
    try {
      // The umask may have removed our own permissions, and with them the next command's.
      fchmodSync(fd, 0o600)
    } catch {
      // A file system without permissions.
    }
    return fd
  } catch (error) {
    const why =
      (error as NodeJS.ErrnoException).code === 'ELOOP'
        ? 'it is a symbolic link, which this program never creates'
        : reason(error)
    throw new CliError('lock_unavailable', Exit.notSignedIn, `the lock ${path} cannot be opened: ${why}`, {
      hint: remedy(
        error,
        'check the owner and the permissions of that file and its directory; until then MAILCLAIM_API_KEY works',
      ),
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

/** The locks of this system, for whoever only looks whether others hold one; undefined if it has none. */
export async function locksIfAny(): Promise<FileLocks | undefined> {
  return loadNative().catch(() => undefined)
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
      { hint: remedy(error, 'use an API key (MAILCLAIM_API_KEY), which needs no lock'), cause: error },
    )
  }
}

function sessionBusy(path: string, deadlineMs: number): CliError {
  return new CliError(
    'session_busy',
    Exit.unavailable,
    `another mailclaim has held the lock of this session for ${Math.round(deadlineMs / 1000)} seconds (${path})`,
    { hint: 'wait for it or stop it, then run this command again; do not delete the lock file' },
  )
}
