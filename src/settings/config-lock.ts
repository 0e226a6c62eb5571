import { join } from 'node:path'
import type { Context } from '../context.ts'
import { CliError, Exit } from '../errors.ts'
import { withLockIfAny } from '../storage/lock.ts'

/** A change takes milliseconds; whoever holds the lock this long is stopped in the middle. */
const DEADLINE_MS = 5000

/**
 * Runs a change of the configuration while no other process makes one: reading, changing and writing are one step, so
 * that none loses what another wrote. Where the system has no locks the change is made all the same: what can be lost is
 * a setting, not a session.
 *
 * @throws CliError `config_busy`, exit 1.
 */
export async function withConfigLock<T>(
  context: Pick<Context, 'directories' | 'clock' | 'random' | 'interrupts'>,
  work: () => Promise<T>,
): Promise<T> {
  const path = join(context.directories.config, 'config.lock')
  const busy = () =>
    new CliError('config_busy', Exit.bug, `another mailclaim is changing the settings (${path})`, {
      hint: 'let it finish, or end it, and run this command again; do not delete the lock file',
    })
  return withLockIfAny(path, context, { deadlineMs: DEADLINE_MS, busy }, work)
}
