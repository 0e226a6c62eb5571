import { constants } from 'node:fs'
import { open } from 'node:fs/promises'
import { join } from 'node:path'
import type { Context } from '../context.ts'
import { CliError, Exit } from '../errors.ts'
import { cannotWrite } from './files.ts'

/** A change takes milliseconds; whoever holds the lock this long is stopped in the middle. */
const DEADLINE_MS = 5000
const PAUSE_MS = 15

/**
 * Runs a change of the configuration while no other process makes one: reading, changing and writing are one step, so
 * that none loses what another wrote. The kernel releases the lock when its holder dies. Where the system has no such
 * locks the change is made all the same: what can be lost is a setting, not a session.
 *
 * @throws CliError `config_busy` and `cannot_write`, exit 1.
 */
export async function withConfigLock<T>(
  context: Pick<Context, 'directories' | 'clock' | 'random' | 'interrupts'>,
  work: () => Promise<T>,
): Promise<T> {
  const locks = await import('./native-locks.ts').catch(() => undefined)
  if (locks === undefined) return work()
  const path = join(context.directories.config, 'config.lock')
  const flags = constants.O_RDWR | constants.O_CREAT | (constants.O_NOFOLLOW ?? 0)
  const file = await open(path, flags, 0o600).catch((error: unknown) => {
    throw cannotWrite(path, error)
  })
  try {
    // The umask may have taken our own rights as well, and with them the next command's.
    await file.chmod(0o600).catch(() => undefined)
    const end = context.clock.monotonic() + DEADLINE_MS
    while (!tryLock(locks, file.fd)) {
      if (context.clock.monotonic() >= end) {
        throw new CliError('config_busy', Exit.bug, `another mailclaim is changing the settings (${path})`, {
          hint: 'let it finish, or end it, and run this command again; do not delete the lock file',
        })
      }
      await context.clock.sleep(PAUSE_MS * (0.5 + context.random.fraction()), context.interrupts.signal)
    }
    return await work()
  } finally {
    // Closing the file releases the lock.
    await file.close()
  }
}

/** Some network file systems have no locks: going on is then all that can be done. */
function tryLock(locks: { tryLock(fd: number): boolean }, fd: number): boolean {
  try {
    return locks.tryLock(fd)
  } catch {
    return true
  }
}
