import type { Context, KeychainRequest, KeychainResult } from '../context.ts'
import { CliError } from '../errors.ts'
import { addProfileFlag } from '../settings/profiles.ts'

const SERVICE = 'mailclaim'

/**
 * Maximum milliseconds of a keychain call if stdin or stderr isn't a terminal, so that no user can be expected to answer a
 * prompt.
 */
const UNATTENDED_MS = 10_000
/** Maximum milliseconds of a keychain call if stdin and stderr are a terminal, where a user may have to unlock the keychain. */
const ATTENDED_MS = 60_000

type Failure = Extract<KeychainResult, { ok: false }>

/** Message, and beginning of the hint, for each reason why a keychain call can fail. */
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
 * Makes one keychain call, with a shorter time limit if no user can answer a prompt at a terminal.
 *
 * @param profile named in the hint
 * @returns the secret for `get`, null if there is no item; whether there was an item for `delete`; true for `set`
 * @throws CliError `store_unavailable`, exit 4, if the call fails; the abort reason of the request's signal
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

/** Returns the error for an unavailable keychain. @param remedy start of the hint, with a comma at its end; may be empty */
function unavailable(message: string, remedy: string, profile: string, cause?: Failure): CliError {
  const hint = `${remedy}set MAILCLAIM_API_KEY, or use a file: ${addProfileFlag('mailclaim login', profile)} --store file`
  return new CliError('store_unavailable', message, { hint, cause })
}

/** Whether an error of `callKeychain` says that this machine has no keychain or no library for it. */
export function isNoKeychainError(error: unknown): boolean {
  if (!(error instanceof CliError)) return false
  const { reason } = (error.cause ?? {}) as Partial<Failure>
  return reason === 'no_addon' || reason === 'no_module' || reason === 'no_keychain'
}

/**
 * Tests the keychain with a test item: only storing and reading an item show whether a keychain is unlocked and keeps its items.
 *
 * @throws CliError `store_unavailable`, exit 4, if the test fails; the abort reason after Ctrl-C
 */
export async function testKeychain(
  context: Pick<Context, 'keychain' | 'stdin' | 'stderr' | 'random' | 'interrupts'>,
  profile: string,
): Promise<void> {
  const account = `${profile} self-test ${Buffer.from(context.random.bytes(6)).toString('hex')}`
  const call = (request: Pick<KeychainCall, 'operation' | 'secret'>) =>
    callKeychain(context, profile, { ...request, account, signal: context.interrupts.signal })
  await call({ operation: 'set', secret: 'self-test' })
  const read = await call({ operation: 'get' }).finally(() => call({ operation: 'delete' }))
  if (read !== 'self-test') throw unavailable('the keychain does not keep what it is given', '', profile)
}
