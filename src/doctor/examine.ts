import type { Context, Input } from '../context.ts'
import { CliError } from '../errors.ts'
import type { Settings } from '../settings/settings.ts'
import { examineDirectDns, examineResolvers } from './dns.ts'
import { examineConfiguration, examineFolders, examineLock, examineStore } from './machine.ts'
import { examineNetwork } from './network.ts'
import { type Diagnosis, warning } from './report.ts'
import { examineSession } from './session.ts'

/** No look takes longer; all run side by side. */
const LOOK_MS = 9000
/** A keychain that waits for a person to unlock it must not hold the others up: that it waits is the finding. */
const KEYCHAIN_MS = 4000

/** Looks at the whole set-up. Changes nothing but a probe item in the keychain, which it takes back. */
export async function examine(context: Context, settings: Settings): Promise<Diagnosis[]> {
  const bounded: Context = {
    ...context,
    stdin: unattended(context.stdin),
    keychain: {
      call: (request) =>
        context.keychain.call({ ...request, timeoutMs: Math.min(request.timeoutMs, KEYCHAIN_MS) }),
    },
  }
  const look = (check: string, work: () => Promise<Diagnosis | Diagnosis[]>) => timed(check, work, context)
  // One after the other: both take the lock, and would find each other there.
  const lockAndSession = async () => {
    const lock = await examineLock(bounded, settings)
    return [lock, await examineSession(bounded, settings)]
  }
  const found = await Promise.all([
    look('configuration', () => examineConfiguration(bounded, settings)),
    look('folders', () => examineFolders(bounded)),
    look('credential store', () => examineStore(bounded, settings)),
    look('session', lockAndSession),
    look('network', () => examineNetwork(bounded, settings)),
    look('DNS resolvers', () => examineResolvers(bounded, settings)),
    look('direct DNS', () => examineDirectDns(bounded, settings)),
  ])
  return found.flat()
}

async function timed(
  check: string,
  work: () => Promise<Diagnosis | Diagnosis[]>,
  context: Context,
): Promise<Diagnosis | Diagnosis[]> {
  const over = new AbortController()
  const pause = context.clock.sleep(LOOK_MS, AbortSignal.any([over.signal, context.interrupts.signal])).then(
    () =>
      warning(
        check,
        `this took longer than ${LOOK_MS / 1000} seconds`,
        'run mailclaim doctor --verbose again',
      ),
    (reason) => {
      if (reason instanceof CliError) throw reason
      return []
    },
  )
  try {
    return await Promise.race([work(), pause])
  } finally {
    over.abort()
  }
}

/** The same input, at which nobody sits. */
function unattended(stdin: Input): Input {
  return {
    isTTY: false,
    get stream() {
      return stdin.stream
    },
  }
}
