import { CliError, Exit, InterruptedError } from '../errors.ts'
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
import { type Diagnosis, type Finding, problem, warning } from './report.ts'

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
  const hasKey = io.environment.apiKey !== undefined
  const run = async (check: string, finding: Promise<Finding>, need?: 'not with a key') => ({
    check,
    ...(await inTime(finding, io).catch((error) => failed(error, hasKey && need !== undefined))),
  })
  const reached = examineNetwork(bounded)
  const part = (name: 'network' | 'clock') =>
    run(
      name,
      reached.then((both) => both[name]),
    )
  const lock = run('lock', examineLock(bounded))
  // Both take the lock, and would block each other.
  const session = lock.then(() => examineSession(bounded))
  return Promise.all([
    run('configuration', examineConfiguration(bounded)),
    run('folders', examineDirectories(bounded), 'not with a key'),
    run('credential store', examineStore(bounded), 'not with a key'),
    lock,
    run('session', session),
    part('network'),
    part('clock'),
    run('DNS resolvers', examineResolvers(bounded)),
    run('direct DNS', examineDirectDns(bounded)),
  ])
}

async function inTime(finding: Promise<Finding>, { clock, interrupts }: Io): Promise<Finding> {
  const over = new AbortController()
  const late = `this took longer than ${CHECK_TIMEOUT_MS / 1000} seconds`
  const timeout = clock
    .sleep(CHECK_TIMEOUT_MS, AbortSignal.any([over.signal, interrupts.signal]))
    .then(() => warning(late, 'for details, run: mailclaim doctor --verbose'))
  try {
    return await Promise.race([finding, timeout])
  } finally {
    over.abort()
  }
}

/** A problem, or only a warning while an API key is used, which needs neither sessions nor files. */
function failed(error: unknown, isOptional: boolean): Finding {
  if (!(error instanceof CliError) || error instanceof InterruptedError) throw error
  return isOptional && error.exit !== Exit.usage
    ? warning(`${error.message}; MAILCLAIM_API_KEY works without it`, error.hint)
    : problem(error)
}
