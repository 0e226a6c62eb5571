import type { Context } from '../context.ts'
import { CliError, Exit } from '../errors.ts'
import { type Disk, realDisk } from './atomic-file.ts'
import { codeOf, reason, remedy } from './file-errors.ts'

/** The operating system's locks on open files. A lock is released when its process ends, however that happens. */
export interface FileLocks {
  /** False if another open file holds the lock. */
  tryLock(fd: number): boolean
}

export interface LockOptions<T> {
  /** Milliseconds to wait for another process. */
  readonly deadlineMs: number
  /** Called while another process holds the lock; a result ends the wait. */
  readonly meanwhile?: () => T | undefined
  /** Called once, when the wait has taken two seconds. */
  readonly onWait?: () => Promise<void>
  /** The error if another process holds the lock until the deadline; `session_busy` by default. */
  readonly busy?: () => CliError
  /** `continue`: the work is done without a lock where there is none, because it can't lose a refresh token. */
  readonly withoutLocks?: 'continue'
  readonly disk?: Disk
  /** Loads the locks; only tests replace it. */
  readonly load?: () => Promise<FileLocks>
}

/** What waiting for a lock needs. */
export type LockContext = Pick<Context, 'clock' | 'random' | 'interrupts'>

/** The first pause, and the longest: asking the kernel is cheap. */
const FIRST_PAUSE_MS = 20
const LONGEST_PAUSE_MS = 250
const SILENT_MS = 2_000

/**
 * Runs work while this process holds the lock on a file. The lock is never stolen because of its age: only the kernel knows
 * whether its holder is alive. It is for waiting politely: what must not happen twice doesn't rely on it.
 *
 * @throws CliError `store_unavailable`, exit 4, if this system has no such locks; `session_busy`, exit 7, if another process
 *   held it until the deadline; the reason of an interrupt.
 */
export async function withLock<T>(
  path: string,
  context: LockContext,
  options: LockOptions<T>,
  work: () => Promise<T>,
): Promise<T> {
  const { clock, random, interrupts } = context
  const { disk = realDisk, deadlineMs, meanwhile, busy = () => sessionBusy(path) } = options
  const start = clock.monotonic()
  let { onWait } = options
  for (let pause = FIRST_PAUSE_MS; ; pause = Math.min(pause * 1.5, LONGEST_PAUSE_MS)) {
    const fd = await takeLock(path, options)
    if (fd === 'none') return work()
    if (fd !== 'held') {
      try {
        return await work()
      } finally {
        // This releases the lock.
        disk.close(fd)
      }
    }
    const found = meanwhile?.()
    if (found !== undefined) return found
    const waited = clock.monotonic() - start
    if (waited >= deadlineMs) throw busy()
    if (waited >= SILENT_MS) {
      await onWait?.()
      onWait = undefined
    }
    const wait = Math.min(pause, deadlineMs - waited)
    await clock.sleep(wait * (0.5 + random.fraction() / 2), interrupts.signal)
  }
}

/** @returns the file that holds the lock now; `held` if another process has it; `none` if it works without. */
async function takeLock(
  path: string,
  {
    disk = realDisk,
    load = loadNative,
    withoutLocks,
  }: Pick<LockOptions<unknown>, 'disk' | 'load' | 'withoutLocks'>,
): Promise<number | 'held' | 'none'> {
  let fd: number | undefined
  try {
    const locks = await load()
    // Processes that we start don't inherit the descriptor (O_CLOEXEC), so they can't keep the lock.
    fd = disk.openLock(path)
    if (locks.tryLock(fd)) return fd
    disk.close(fd)
    return 'held'
  } catch (error) {
    if (fd !== undefined) disk.close(fd)
    if (withoutLocks === 'continue') return 'none'
    throw noLock(path, error)
  }
}

async function loadNative(): Promise<FileLocks> {
  // As it is installed it is CommonJS; in a bundle only its default export is whole.
  const { default: locks } = await import('fs-native-extensions')
  return locks
}

/** Whether another process holds the lock at this moment; undefined if that can't be found out. */
export async function isLocked(
  path: string,
  options: Pick<LockOptions<void>, 'disk' | 'load'> = {},
): Promise<boolean | undefined> {
  try {
    const fd = await takeLock(path, options)
    if (typeof fd === 'number') (options.disk ?? realDisk).close(fd)
    return fd === 'held'
  } catch {
    return undefined
  }
}

/** Without a lock two commands could be at the same session, so nothing is renewed. */
function noLock(path: string, error: unknown): CliError {
  const why =
    codeOf(error) === 'ELOOP' ? 'it is a symbolic link, which this program never creates' : reason(error)
  return new CliError('store_unavailable', Exit.notSignedIn, `${path} can't be locked: ${why}`, {
    hint: remedy(error, 'set MAILCLAIM_STATE_DIR to a directory of yours on a local disk, or use an API key'),
    cause: error,
  })
}

function sessionBusy(path: string): CliError {
  return new CliError(
    'session_busy',
    Exit.unavailable,
    `another mailclaim is using this session (it holds ${path})`,
    { hint: 'wait for it or stop it, then run this command again' },
  )
}
