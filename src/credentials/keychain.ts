import type { Context, KeychainAnswer, KeychainRequest } from '../context.ts'
import { CliError } from '../errors.ts'
import { withProfile } from '../settings/profiles.ts'

/** The name of the items in the system's keychain program. */
const SERVICE = 'mailclaim'

/** Enough for a slow bus. On a terminal there may be a person who has to unlock the keychain, which takes longer. */
const UNATTENDED_MS = 10_000
const ATTENDED_MS = 60_000

type Failure = Extract<KeychainAnswer, { ok: false }>

/** What went wrong, and the first of the ways on. */
const FAILURES: Readonly<Record<Failure['reason'], readonly [message: string, remedy: string]>> = {
  no_addon: ['mailclaim comes without a keychain library for this machine', ''],
  no_module: ['the keychain library (keytar) does not load here', 'install libsecret, '],
  no_keychain: ['there is no keychain here: no Secret Service answers on D-Bus', 'start one, '],
  locked: ['the keychain is locked', 'unlock it, '],
  timeout: ['the keychain did not answer in time', 'unlock it, '],
  refused: ['the keychain refused', 'unlock it, '],
  crashed: ['the program that talks to the keychain ended early', 'try again, '],
}

type KeychainCall = Pick<KeychainRequest, 'operation' | 'account' | 'secret' | 'signal'>

/**
 * One call to the keychain.
 *
 * @param profile for the hint.
 * @throws CliError `store_unavailable`, exit 4, with the ways on; what the request's signal says.
 */
export async function callKeychain(
  context: Pick<Context, 'keychain' | 'stdin' | 'stderr'>,
  profile: string,
  request: KeychainCall,
): Promise<string | boolean | null> {
  const attended = context.stdin.isTTY && context.stderr.isTTY
  const timeoutMs = attended ? ATTENDED_MS : UNATTENDED_MS
  const answer = await context.keychain.call({ ...request, service: SERVICE, timeoutMs })
  if (answer.ok) return answer.value
  request.signal?.throwIfAborted()
  const [message, remedy] = FAILURES[answer.reason]
  const detail = answer.detail === '' ? '' : ` (${answer.detail})`
  throw unavailable(`${message}${detail}`, remedy, profile, answer)
}

/** @param remedy the first of the ways on, with a comma, if there is one. */
function unavailable(message: string, remedy: string, profile: string, cause?: Failure): CliError {
  const hint = `${remedy}set MAILCLAIM_API_KEY, or use a file: ${withProfile('mailclaim login', profile)} --store file`
  return new CliError('store_unavailable', message, { hint, cause })
}

/** Whether an error says that this machine has no keychain at all, however long one waits. */
export function hasNoKeychain(error: unknown): boolean {
  if (!(error instanceof CliError)) return false
  const { reason } = (error.cause ?? {}) as Partial<Failure>
  return reason === 'no_addon' || reason === 'no_module' || reason === 'no_keychain'
}

/**
 * A round trip with a test item: the only way to learn whether a keychain exists, is unlocked and keeps what it is given.
 *
 * @throws CliError `store_unavailable`, exit 4.
 */
export async function proveKeychain(
  context: Pick<Context, 'keychain' | 'stdin' | 'stderr' | 'random' | 'interrupts'>,
  profile: string,
): Promise<void> {
  const { signal } = context.interrupts
  const account = `${profile} self-test ${Buffer.from(context.random.bytes(6)).toString('hex')}`
  const call = (request: Pick<KeychainCall, 'operation' | 'secret'>) =>
    callKeychain(context, profile, { ...request, account, signal })
  await call({ operation: 'set', secret: 'self-test' })
  const read = await call({ operation: 'get' }).finally(() => call({ operation: 'delete' }))
  if (read !== 'self-test') throw unavailable('the keychain does not keep what it is given', '', profile)
}
