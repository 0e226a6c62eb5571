import { CliError } from '../errors.ts'
import type { Io } from '../terminal/io.ts'
import { examineDirectDns, examineResolvers } from './dns.ts'
import {
  examineConfiguration,
  examineDirectories,
  examineLock,
  examineSession,
  examineStore,
} from './machine.ts'
import { examineNetwork } from './network.ts'
import { type Diagnosis, warning } from './report.ts'

/** The time limit of each check; all run in parallel. */
const CHECK_TIMEOUT_MS = 9000
/** Shorter than usual: a keychain that waits for someone to unlock it is reported as such. */
const KEYCHAIN_TIMEOUT_MS = 4000

/** Runs all checks. What they write to test (an item in the keychain, a file in each directory), they delete again. */
export async function examine(io: Io): Promise<Diagnosis[]> {
  const { stdin, keychain } = io
  const bounded: Io = {
    ...io,
    // Nothing waits for a person.
    stdin: {
      isTTY: false,
      get stream() {
        return stdin.stream
      },
    },
    keychain: {
      call: (request) =>
        keychain.call({ ...request, timeoutMs: Math.min(request.timeoutMs, KEYCHAIN_TIMEOUT_MS) }),
    },
  }
  const run = (check: string, work: (io: Io) => Promise<Diagnosis | Diagnosis[]>) =>
    withTimeout(check, work(bounded), io)
  const found = await Promise.all([
    run('configuration', examineConfiguration),
    run('folders', examineDirectories),
    run('credential store', examineStore),
    // One after the other: both take the lock, and would block each other.
    run('session', async () => [await examineLock(bounded), await examineSession(bounded)]),
    run('network', examineNetwork),
    run('DNS resolvers', examineResolvers),
    run('direct DNS', examineDirectDns),
  ])
  return found.flat()
}

async function withTimeout(
  check: string,
  work: Promise<Diagnosis | Diagnosis[]>,
  { clock, interrupts }: Io,
): Promise<Diagnosis | Diagnosis[]> {
  const over = new AbortController()
  const late = `this took longer than ${CHECK_TIMEOUT_MS / 1000} seconds`
  const timeout = clock.sleep(CHECK_TIMEOUT_MS, AbortSignal.any([over.signal, interrupts.signal])).then(
    () => warning(check, late, 'for details, run: mailclaim doctor --verbose'),
    (reason) => {
      if (reason instanceof CliError) throw reason
      return []
    },
  )
  try {
    return await Promise.race([work, timeout])
  } finally {
    over.abort()
  }
}
