import type { Context, KeychainAnswer, KeychainRequest } from '../context.ts'
import { CliError, Exit } from '../errors.ts'
import { loginCommand } from '../settings/login-command.ts'

/** The name under which a keychain's own program shows the items. */
const SERVICE = 'mailclaim'

/** Long enough for a slow bus; a keychain that asks a person to unlock it gets longer where one can be there. */
const UNATTENDED_MS = 10_000
const ATTENDED_MS = 60_000

type Failure = Extract<KeychainAnswer, { ok: false }>

/** What is said about each way in which a keychain fails; the first word of the code is always `keychain`. */
const WORDS: Readonly<Record<Failure['reason'], string>> = {
  no_module: 'the keychain library (keytar) is not installed or does not load on this system',
  no_bus:
    'there is no keychain here: no D-Bus session is running, as in containers, under cron and in many SSH logins',
  no_service: 'there is no keychain here: no gnome-keyring, KWallet or other Secret Service answers',
  locked: 'the keychain is locked',
  timeout: 'the keychain did not answer in time; it may be waiting for someone to unlock it',
  refused: 'the keychain refused',
  crashed: 'the program that talks to the keychain ended early',
}

/**
 * One call to the keychain.
 *
 * @throws CliError `keychain_…`, exit 4, with the three ways on.
 */
export async function callKeychain(
  context: Pick<Context, 'keychain' | 'stdin' | 'stderr'>,
  request: Pick<KeychainRequest, 'operation' | 'account' | 'secret'>,
): Promise<string | boolean | null> {
  const attended = context.stdin.isTTY && context.stderr.isTTY
  const answer = await context.keychain.call({
    ...request,
    service: SERVICE,
    timeoutMs: attended ? ATTENDED_MS : UNATTENDED_MS,
  })
  if (answer.ok) return answer.value
  throw keychainError(answer, profileOf(request.account))
}

/** The profile that an item belongs to: the first word of its account. */
function profileOf(account: string): string {
  return account.split(' ', 1)[0] ?? account
}

function keychainError(failure: Failure, profile: string): CliError {
  const detail = failure.detail === '' ? '' : ` (${failure.detail})`
  return new CliError(`keychain_${failure.reason}`, Exit.notSignedIn, `${WORDS[failure.reason]}${detail}`, {
    hint: waysOn(failure.reason, profile),
  })
}

/** What to do when a keychain cannot be used. Nothing is done by itself: where a secret goes is the person's choice. */
function waysOn(reason: Failure['reason'], profile: string): string {
  const first =
    reason === 'no_module'
      ? 'install it (npm install -g mailclaim, with optional dependencies; on Linux it needs libsecret)'
      : reason === 'no_bus' || reason === 'no_service'
        ? 'start one'
        : 'unlock it'
  return `${first}, or keep the secret in a file that only you can read (${loginCommand({ profile, store: 'file' })}), or use an API key (MAILCLAIM_API_KEY)`
}

/** The error for an item that our record says is there and the keychain does not give. */
export function lockedOrMissing(account: string): CliError {
  return new CliError(
    'keychain_locked_or_missing',
    Exit.notSignedIn,
    `the keychain is locked, or the secret of this session is missing from it (item ${JSON.stringify(account)})`,
    {
      hint: `unlock the keychain and run the command again; if it is unlocked, the item is gone: run ${loginCommand({ profile: profileOf(account) })} (in places without a keychain with --store file, or use MAILCLAIM_API_KEY)`,
    },
  )
}

/**
 * A round trip with an item of its own: the one way to learn that a keychain is there, unlocked and keeps what it takes.
 *
 * @param owner the profile that asks, or the account of one of its items; for the hint.
 * @throws CliError `keychain_…`, exit 4.
 */
export async function proveKeychain(
  context: Pick<Context, 'keychain' | 'stdin' | 'stderr' | 'random'>,
  owner: string,
): Promise<void> {
  const account = `${profileOf(owner)} self-test ${Buffer.from(context.random.bytes(6)).toString('hex')}`
  await callKeychain(context, { operation: 'set', account, secret: 'self-test' })
  let read: unknown
  try {
    read = await callKeychain(context, { operation: 'get', account })
  } finally {
    await callKeychain(context, { operation: 'delete', account })
  }
  if (read !== 'self-test') throw lockedOrMissing(account)
}
