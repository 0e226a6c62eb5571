import type { Context, Keychain, KeychainAnswer, KeychainRequest } from '../context.ts'
import { CliError, Exit } from '../errors.ts'
import { loginCommand } from '../settings/login-command.ts'
import type { Settings } from '../settings/settings.ts'
import { withWaitingNote } from '../terminal/notices.ts'

/** The name of the items in the system's keychain program. */
const SERVICE = 'mailclaim'

/** Enough for a slow bus. On a terminal there may be a person who has to unlock the keychain, which takes longer. */
const UNATTENDED_MS = 10_000
const ATTENDED_MS = 60_000

/** How long the removal of items may take, all of them together: what stays can be removed later. */
const REMOVAL_MS = 15_000

/** What a call to the keychain needs. */
export type KeychainContext = Pick<Context, 'keychain' | 'stdin' | 'stderr'>

/** What `proveKeychain` needs. */
export type ProvingContext = KeychainContext & Pick<Context, 'random'>

type Failure = Extract<KeychainAnswer, { ok: false }>

/** What went wrong, for each error code `keychain_…`. */
const MESSAGES: Readonly<Record<Failure['reason'], string>> = {
  no_module: 'the keychain library (keytar) is not installed or does not load on this system',
  no_bus:
    'there is no keychain here: no D-Bus session is running, as in containers, under cron, and in many SSH logins',
  no_service: 'there is no keychain here: no gnome-keyring, KWallet or other Secret Service answers',
  locked: 'the keychain is locked',
  timeout: 'the keychain did not answer in time; it may be waiting for someone to unlock it',
  refused: 'the keychain refused',
  crashed: 'the program that talks to the keychain ended early',
}

/**
 * One call to the keychain.
 *
 * @throws CliError `keychain_…`, exit 4, with the three alternatives.
 */
export async function callKeychain(
  context: KeychainContext,
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

/**
 * The keychain, for calls that a person can interrupt: it says if it keeps them waiting, and a signal ends it immediately.
 *
 * @param limitMs for all calls together; 15 seconds by default, for removals.
 */
export function limitKeychain(
  context: Pick<Context, 'keychain' | 'clock' | 'interrupts' | 'stderr' | 'environment'>,
  settings: Pick<Settings, 'quiet'>,
  limitMs = REMOVAL_MS,
): Keychain {
  const { keychain, clock, interrupts } = context
  let left = limitMs
  return {
    async call(request) {
      const start = clock.monotonic()
      const timeoutMs = Math.min(request.timeoutMs, left)
      const answer = keychain.call({ ...request, timeoutMs, signal: interrupts.signal })
      try {
        return await withWaitingNote('Waiting for the keychain …', context, settings, answer)
      } finally {
        left = Math.max(0, left - (clock.monotonic() - start))
      }
    },
  }
}

/** The profile that an item belongs to: the first word of its account. */
export function profileOf(account: string): string {
  return account.split(' ', 1)[0] ?? account
}

function keychainError(failure: Failure, profile: string): CliError {
  const detail = failure.detail === '' ? '' : ` (${failure.detail})`
  return new CliError(
    `keychain_${failure.reason}`,
    Exit.notSignedIn,
    `${MESSAGES[failure.reason]}${detail}`,
    {
      hint: alternatives(failure.reason, profile),
    },
  )
}

/** What to do without a keychain. Nothing happens automatically: where a secret goes is the person's choice. */
function alternatives(reason: Failure['reason'], profile: string): string {
  const first =
    reason === 'no_module'
      ? 'install it (npm install -g mailclaim, with optional dependencies; on Linux it needs libsecret)'
      : reason === 'no_bus' || reason === 'no_service'
        ? 'start one'
        : 'unlock it'
  return `${first}, or use an API key (MAILCLAIM_API_KEY), or keep the secret in a file that only you can read: ${loginCommand({ profile, store: 'file' })}`
}

/** The error for an item that should exist and that the keychain doesn't return. */
export function lockedOrMissing(account: string): CliError {
  return new CliError(
    'keychain_locked_or_missing',
    Exit.notSignedIn,
    `the keychain is locked, or the secret of this session is missing from it (item ${JSON.stringify(account)})`,
    {
      hint: `unlock the keychain and run the command again; if it is unlocked, the item is gone: run ${loginCommand({ profile: profileOf(account) })} (without a keychain, add --store file or use MAILCLAIM_API_KEY)`,
    },
  )
}

/**
 * A round trip with a test item: the only way to learn whether a keychain exists, is unlocked and keeps what it is given.
 *
 * @param owner the profile that asks, or the account of one of its items; for the hint.
 * @throws CliError `keychain_…`, exit 4.
 */
export async function proveKeychain(context: ProvingContext, owner: string): Promise<void> {
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
