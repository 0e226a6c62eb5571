import type { Context } from '../context.ts'
import { CliError } from '../errors.ts'
import { backoffMs, NOTICE_DELAY_MS } from '../timeout.ts'
import { type Disk, realDisk } from './atomic-file.ts'
import { errnoCode, hintForErrno, reasonOf } from './file-errors.ts'

export interface LockOptions<Result> {
  /** Milliseconds to wait for another process to release the lock. */
  readonly timeoutMs: number
  /**
   * Called after each attempt that finds the lock held. A result other than undefined ends the wait and becomes the result
   * of `withLock`, without running the work.
   */
  readonly meanwhile?: () => Result | undefined
  /** Called once if the wait exceeds `NOTICE_DELAY_MS`, to tell the user what the command waits for. */
  readonly onWait?: () => Promise<void>
  /** Creates the error for a lock that is still held at the timeout; `session_busy` by default. */
  readonly busy?: () => CliError
  /** `continue` runs the work unlocked if the file can't be locked; allowed only for work that sends no refresh token. */
  readonly withoutLocks?: 'continue'
  readonly disk?: Disk
}

/** Delays in milliseconds between attempts to lock; short, because an attempt is cheap. */
const PAUSES = { firstMs: 20, maxMs: 250, factor: 1.5, jitter: 0.5 } as const

/**
 * Runs work while this process holds the kernel lock of a file, which is created if necessary. Waits for another holder, but
 * never takes the lock from it: only the kernel knows whether the holder is alive. A session is safe even without the lock: the
 * exclusive creation of the note file (`next.…`) lets only one process send a refresh token.
 *
 * @throws CliError `store_unavailable`, exit 4, if the file can't be locked (not with `withoutLocks`); `session_busy`, exit 7, or
 *   the error of `busy`, after the timeout; the abort reason if interrupted while waiting
 */
export async function withLock<Result>(
  path: string,
  { clock, random, interrupts }: Pick<Context, 'clock' | 'random' | 'interrupts'>,
  options: LockOptions<Result>,
  work: () => Promise<Result>,
): Promise<Result> {
  const { disk = realDisk, timeoutMs, meanwhile } = options
  const start = clock.monotonic()
  let { onWait } = options
  for (let tries = 1; ; tries++) {
    const held = await disk.lock(path).catch((error: unknown) => {
      if (options.withoutLocks === 'continue') return 'no locks' as const
      throw lockError(path, error)
    })
    if (held === 'no locks') return work()
    if (held !== undefined) return work().finally(() => disk.close(held))
    const found = meanwhile?.()
    if (found !== undefined) return found
    const waited = clock.monotonic() - start
    if (waited >= timeoutMs) {
      const message = `another mailclaim is using this session (it holds ${path})`
      const hint = 'wait for it or stop it, then run this command again'
      throw options.busy?.() ?? new CliError('session_busy', message, { hint })
    }
    if (waited >= NOTICE_DELAY_MS) {
      await onWait?.()
      onWait = undefined
    }
    await clock.sleep(Math.min(backoffMs(tries, PAUSES, random), timeoutMs - waited), interrupts.signal)
  }
}

/** Whether the lock is held; undefined if that can't be told, for example on a system without file locks. */
export async function isLocked(path: string, disk: Disk = realDisk): Promise<boolean | undefined> {
  try {
    const fd = await disk.lock(path)
    if (fd !== undefined) disk.close(fd)
    return fd === undefined
  } catch {
    return undefined
  }
}

/** Returns the error for a file that can't be locked. */
function lockError(path: string, error: unknown): CliError {
  const code = errnoCode(error) ?? ''
  if (['MODULE_NOT_FOUND', 'ERR_DLOPEN_FAILED'].includes(code)) {
    const message = `mailclaim comes without file locks for this machine (${process.platform}-${process.arch})`
    const hint = 'set MAILCLAIM_API_KEY: unlike a session, it needs no locks'
    return new CliError('store_unavailable', message, { hint, cause: error })
  }
  const why = code === 'ELOOP' ? 'it is a symbolic link, which this program never creates' : reasonOf(error)
  const fallback = 'set MAILCLAIM_STATE_DIR to a directory of yours on a local disk, or use an API key'
  const message = `${path} can't be locked: ${why}`
  return new CliError('store_unavailable', message, { hint: hintForErrno(error, fallback), cause: error })
}
