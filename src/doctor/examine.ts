import { CliError, Exit, InterruptedError } from '../errors.ts'
import type { Io } from '../terminal/io.ts'
import { type CheckResult, type NamedCheckResult, problemResult, warningResult } from './check-result.ts'
import { examineDirectDns, examineResolvers } from './dns.ts'
import {
  examineConfigAndStateDirectories,
  examineConfiguration,
  examineCredentialOffline,
  examineFileLocking,
  examineKeychainIfUsed,
} from './machine.ts'
import { examineNetwork } from './network.ts'

/** Maximum milliseconds for a keychain call: short, so that `doctor` soon reports a keychain that waits to be unlocked. */
const KEYCHAIN_TIMEOUT_MS = 4000

/**
 * Runs the checks of `doctor` in parallel, except that the check of the lock waits for the check of the directories, which creates
 * them.
 *
 * @throws the reason of the interrupt signal; an error that isn't a `CliError`, which is a bug
 */
export async function examineSetup(commandIo: Io): Promise<NamedCheckResult[]> {
  const { keychain, interrupts } = commandIo
  const io: Io = {
    ...commandIo,
    keychain: {
      call: (request) =>
        keychain.call({ ...request, timeoutMs: Math.min(request.timeoutMs, KEYCHAIN_TIMEOUT_MS) }),
    },
  }
  const hasKey = io.environment.apiKey !== undefined
  const run = async (check: string, result: Promise<CheckResult>, need?: 'not with a key') => ({
    check,
    ...(await result.catch((error) => toCheckResult(error, hasKey && need !== undefined))),
  })
  const examined = examineNetwork(io)
  const network = examined.then((results) => results.network)
  const clock = examined.then((results) => results.clock)
  const folders = run('folders', examineConfigAndStateDirectories(io), 'not with a key')
  const lock = folders.then(() => examineFileLocking(io))
  const results = await Promise.all([
    run('configuration', examineConfiguration(io)),
    folders,
    run('credential store', examineKeychainIfUsed(io), 'not with a key'),
    run('lock', lock),
    run('session', examineCredentialOffline(io)),
    run('network', network),
    run('clock', clock),
    run('DNS resolvers', examineResolvers(io)),
    run('direct DNS', examineDirectDns(io)),
  ])
  interrupts.signal.throwIfAborted()
  return results
}

/**
 * Converts a check's error into a result: a `warning` if the checked part is optional and the error isn't a usage error, otherwise
 * a `problem`.
 *
 * @param isOptional whether commands work without the checked part, because MAILCLAIM_API_KEY is set
 * @throws the error, if it is a bug or an interrupt
 */
function toCheckResult(error: unknown, isOptional: boolean): CheckResult {
  if (!(error instanceof CliError) || error instanceof InterruptedError) throw error
  return isOptional && error.exit !== Exit.usage
    ? warningResult(`${error.message}; MAILCLAIM_API_KEY works without it`, error.hint)
    : problemResult(error)
}
