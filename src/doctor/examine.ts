import type { Context, Input } from '../context.ts'
import { CliError } from '../errors.ts'
import { profilesWithSession } from '../session/profiles.ts'
import type { Settings } from '../settings/settings.ts'
import { createIo, type Io } from '../terminal/io.ts'
import { examineDirectDns, examineResolvers } from './dns.ts'
import { examineConfiguration, examineDirectories, examineLock, examineStore } from './machine.ts'
import { examineNetwork } from './network.ts'
import { type Diagnosis, skipped, warning } from './report.ts'
import { examineSession } from './session.ts'

/** The time limit of each check; all run in parallel. */
const CHECK_TIMEOUT_MS = 9000
/** Shorter than usual: a keychain that waits for someone to unlock it is reported as such. */
const KEYCHAIN_TIMEOUT_MS = 4000

/** Runs all checks. Changes nothing, except for a test item in the keychain, which it deletes again. */
export async function examine(context: Io): Promise<Diagnosis[]> {
  const { settings } = context
  const bounded: Context = {
    ...context,
    stdin: withoutTerminal(context.stdin),
    keychain: {
      call: (request) =>
        context.keychain.call({ ...request, timeoutMs: Math.min(request.timeoutMs, KEYCHAIN_TIMEOUT_MS) }),
    },
  }
  const run = (check: string, work: () => Promise<Diagnosis | Diagnosis[]>) =>
    withTimeout(check, work, context)
  // One after the other: both take the lock, and would block each other.
  const lockAndSession = async () => {
    const lock = await examineLock(bounded, settings)
    return [lock, await examineSession(createIo(bounded, settings))]
  }
  const found = await Promise.all([
    run('configuration', () => examineConfiguration(bounded, settings)),
    run('folders', () => examineDirectories(bounded)),
    run('credential store', () => examineStore(bounded, settings)),
    run('session', lockAndSession),
    run('network', () => examineNetwork(bounded, settings)),
    run('DNS resolvers', () => examineResolvers(bounded, settings)),
    run('direct DNS', () => examineDirectDns(bounded, settings)),
  ])
  const diagnoses = found.flat()
  return isSetUp(context, settings) ? diagnoses : diagnoses.map(withoutAccount)
}

/** Whether this machine has anything of an account: an address, a client id, a credential, or a profile that was chosen. */
function isSetUp({ environment, directories }: Context, settings: Settings): boolean {
  const { profile, baseUrl, clientId, configProblem } = settings
  return (
    profile.source !== 'default' ||
    [baseUrl, clientId, configProblem, environment.apiKey].some((found) => found !== undefined) ||
    profilesWithSession({ directories }).includes(profile.value)
  )
}

/** What only a command with an account needs, which isn't a problem as long as nothing is set up. */
const NEED_ACCOUNT: readonly string[] = ['configuration', 'credential store', 'session']

function withoutAccount(diagnosis: Diagnosis): Diagnosis {
  const { check, status, message } = diagnosis
  if (status !== 'problem' || !NEED_ACCOUNT.includes(check)) return diagnosis
  return skipped(check, `not set up (${message}); claims check DOMAIN doesn't need it`)
}

async function withTimeout(
  check: string,
  work: () => Promise<Diagnosis | Diagnosis[]>,
  { clock, interrupts }: Pick<Context, 'clock' | 'interrupts'>,
): Promise<Diagnosis | Diagnosis[]> {
  const over = new AbortController()
  const timeout = clock.sleep(CHECK_TIMEOUT_MS, AbortSignal.any([over.signal, interrupts.signal])).then(
    () =>
      warning(
        check,
        `this took longer than ${CHECK_TIMEOUT_MS / 1000} seconds`,
        'for details, run: mailclaim doctor --verbose',
      ),
    (reason) => {
      if (reason instanceof CliError) throw reason
      return []
    },
  )
  try {
    return await Promise.race([work(), timeout])
  } finally {
    over.abort()
  }
}

/** The same input without a terminal, so that nothing waits for a person. */
function withoutTerminal(stdin: Input): Input {
  return {
    isTTY: false,
    get stream() {
      return stdin.stream
    },
  }
}
