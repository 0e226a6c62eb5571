import { CliError, Exit } from '../errors.ts'
import { loginCommand } from '../settings/login-command.ts'
import { similarWord } from '../settings/parse-value.ts'
import { type Settings, settingValue } from '../settings/settings.ts'
import { formatTime } from '../terminal/relative-time.ts'
import { excerpt } from '../terminal/sanitize.ts'
import type { SessionRecord, SignIn } from './record.ts'
import { expiryOf, REFRESH_TOKEN_DAYS } from './refresh-token.ts'
import type { SessionValue } from './session-store.ts'

type SignedIn = Pick<SessionRecord | SignIn, 'profile' | 'store'>

/** The command that signs in to the profile again and keeps its store; the settings of the profile give the rest. */
export function signInAgain({ profile, store }: SignedIn): string {
  return loginCommand({ profile, store })
}

/** The command for a profile. */
export function withProfile(command: string, profile: string): string {
  return profile === 'default' ? command : `${command} --profile ${profile}`
}

/**
 * Nobody has signed in to the profile. The store that settings choose may be only a variable of this shell.
 *
 * @param others the profiles that have a session
 */
export function notSignedIn(
  { profile, chosen }: Pick<Settings, 'profile' | 'chosen'>,
  others: readonly string[] = [],
): CliError {
  const store = chosen.store?.value === 'file' ? 'file' : undefined
  const login = loginCommand({ profile: profile.value, store })
  const hints = [otherProfile(profile, others), `run ${login}, or set MAILCLAIM_API_KEY`]
  return new CliError('not_signed_in', Exit.notSignedIn, `profile ${profile.value} is not signed in`, {
    hint: hints.filter(Boolean).join(' Otherwise '),
  })
}

/** As many profiles as a hint names. */
const NAMED = 3
const LIST = new Intl.ListFormat('en-US')

/** The profile that was probably meant if one was named, else those that could be used; undefined if there is none. */
function otherProfile({ value, source }: Settings['profile'], all: readonly string[]): string | undefined {
  const others = all.filter((name) => name !== value)
  if (source === 'flag' || source === 'environment') {
    const meant = similarWord(value, others)
    return meant && `did you mean --profile ${meant}?`
  }
  const [first, ...rest] = others
  if (first === undefined || others.length > NAMED) return undefined
  const [signedIn, name] =
    rest.length === 0
      ? [`profile ${first} is signed in`, first]
      : [`profiles ${LIST.format(others)} are signed in`, 'NAME']
  return `${signedIn}: add --profile ${name}, or run mailclaim auth switch ${name}.`
}

/** Step 4 of a refresh: the token may have been sent, with no known outcome. */
export function interrupted(
  session: SignedIn,
  sentAt: number | undefined,
  settings: Pick<Settings, 'chosen'>,
): CliError {
  return new CliError(
    'refresh_interrupted',
    Exit.notSignedIn,
    `the last refresh of profile ${session.profile}${at(sentAt)} has no known outcome: the refresh token may have been sent, and no usable response was stored. A refresh token works once and a second use ends the session, so it is kept${sentAgain(settings)}`,
    { hint: signInOrRetry(session) },
  )
}

/** Asks a person instead. */
export function interruptedQuestion(profile: string, sentAt: number | undefined): string {
  return `The last refresh of profile ${profile}${at(sentAt)} has no known outcome: the service may or may not have taken the refresh token. Send it once more? If it was taken, this ends the session everywhere, and you sign in again`
}

function at(ms: number | undefined): string {
  return ms === undefined ? '' : `, at ${formatTime(ms)},`
}

function signInOrRetry(session: SignedIn): string {
  return `sign in again, which is always safe: ${signInAgain(session)}. Or try the old token: ${retryInterrupted(session.profile)}; if the service did take it, that ends this session everywhere`
}

/** What the next command does with a token that may have been sent. */
function sentAgain(settings: Pick<Settings, 'chosen'>): string {
  return settingValue('on_interrupted', settings) === 'retry'
    ? '; the next command that needs it sends it once more, because on-interrupted is set to retry'
    : ' and not sent again'
}

/** The refresh that was just sent has no known outcome. */
export function outcomeUnknown(session: SignedIn, why: string, settings: Pick<Settings, 'chosen'>): CliError {
  return new CliError(
    'refresh_unknown',
    Exit.unavailable,
    `the service gave no usable answer to the refresh of profile ${session.profile} (${why}). It may have taken the refresh token; a second use would end the session, so the token is kept${sentAgain(settings)}`,
    { hint: signInOrRetry(session) },
  )
}

/** The service no longer accepts the session. */
export function sessionOver(record: SignIn): CliError {
  const ended = record.ended
  const said = ended?.description ? ` It says: ${ended.description}` : ''
  const why = {
    expired: `its refresh token was last renewed more than ${REFRESH_TOKEN_DAYS} days ago, on ${formatTime(ended?.renewedAt ?? record.signedInAt)}`,
    interrupted:
      'the service refused its refresh token (invalid_grant). It was sent before, in a refresh whose answer was lost: if the service took it then, the second use ended the session. Or it was revoked, or used elsewhere',
    refused: `the service refused its refresh token (invalid_grant): it was revoked, it was used elsewhere, or it expired${
      ended && ended.at > expiryOf(ended.renewedAt) ? `: ${lastRenewed(ended.renewedAt)}` : ''
    }`,
  }[ended?.cause ?? 'refused']
  return new CliError(
    'session_over',
    Exit.notSignedIn,
    `the session of profile ${record.profile} is over: ${why}.${said}`,
    { hint: `run ${signInAgain(record)}` },
  )
}

/** Nothing but the wall clock, which may have jumped, says that the refresh token is too old. */
export function mayHaveExpired(profile: string, renewedAt: number): string {
  return `the session of profile ${profile} may have expired: ${lastRenewed(renewedAt)}`
}

function lastRenewed(at: number): string {
  return `by this machine's clock, it was last renewed more than ${REFRESH_TOKEN_DAYS} days ago, on ${formatTime(at)}`
}

/** Somebody signed in to the profile while its previous session was being renewed. */
export function replacedMeanwhile({ profile }: SignIn): CliError {
  return new CliError(
    'session_busy',
    Exit.unavailable,
    `profile ${profile} was signed in again while this command renewed the session before, which is no longer used`,
    { hint: 'run this command again' },
  )
}

/** Somebody signed out of the profile while its session was being renewed. */
export function signedOutMeanwhile(session: SignedIn): CliError {
  return new CliError(
    'not_signed_in',
    Exit.notSignedIn,
    `profile ${session.profile} was signed out while this command renewed its session, so its new tokens are not used`,
    { hint: `to sign in again, run ${signInAgain(session)}` },
  )
}

/** The answer to storing a sign-in for a fleet was lost, and now there is another one. */
export function perhapsReplaced({ profile, store }: SignedIn): CliError {
  return new CliError(
    'session_busy',
    Exit.unavailable,
    `the new session of profile ${profile} may have been stored, but somebody else has signed in or out before that was confirmed`,
    { hint: `see mailclaim auth status; to replace what is there, run ${loginCommand({ profile, store })}` },
  )
}

/** A logout of a fleet has found another session than the one that it was to remove. */
export function perhapsSignedInAgain(profile: string): CliError {
  return new CliError(
    'session_busy',
    Exit.unavailable,
    `the session of profile ${profile} may have been removed, but somebody may have signed in again before that was confirmed. What is in etcd now was left as it is`,
    {
      hint: `see ${withProfile('mailclaim auth status', profile)}; to sign every machine out of that session too, run ${withProfile('mailclaim logout', profile)}`,
    },
  )
}

/** One address of etcd may be wrong, and nobody knows. @param silent the members that didn't answer, at least one */
export function maybeElsewhere(silent: readonly URL[]): string {
  const names = silent.map(({ host }) => host).join(', ')
  return `no answer from ${names}: if that is another cluster of etcd, a session there was left as it is. Once it answers, mailclaim doctor shows whether it is`
}

/** Somebody has signed the whole fleet out. @param by `unknown`: a session that this machine has used is gone. */
export function removedForAll(
  profile: string,
  by: { readonly host: string; readonly at: number } | 'unknown',
): CliError {
  const who =
    by === 'unknown'
      ? 'somebody has removed its session from etcd'
      : `by ${excerpt(by.host, 100)}, at ${formatTime(by.at)}`
  return new CliError(
    'not_signed_in',
    Exit.notSignedIn,
    `profile ${profile} was signed out for every machine${by === 'unknown' ? ': ' : ' '}${who}`,
    { hint: `to sign in again, for the whole fleet, run ${loginCommand({ profile })}` },
  )
}

/** Something keeps deleting or replacing the lock file. */
export function lockReplaced(profile: string, path: string): CliError {
  return new CliError(
    'session_busy',
    Exit.unavailable,
    `the session of profile ${profile} cannot be renewed: something keeps deleting or replacing its lock file (${path}). Nothing was sent, and the session is untouched`,
    { hint: 'find out what cleans up that directory, and run this command again' },
  )
}

/** The token is unused, but its journal entry can't be removed. @param failure why; that of etcd says what to do. */
export function journalStays({ profile, store }: SignedIn, cause: unknown, failure: unknown): CliError {
  const error = cause instanceof CliError ? cause : new CliError('cannot_write', Exit.bug, String(cause))
  const hint =
    store === 'etcd' && failure instanceof CliError
      ? failure.hint
      : `once that file can be removed, this is safe and continues the session: ${retryInterrupted(profile)}`
  return withSentence(
    error,
    `The service has not used the refresh token, but ${messageOf(failure)}`,
    failure,
    hint,
  )
}

/** The way on if this machine keeps that the token is unused. */
export const ENTRY_IS_KEPT =
  'run any command on this machine once etcd answers: it removes the journal entry from etcd'

/** The way on if nothing keeps that the token is unused. */
export function entryStays(profile: string): string {
  return `the journal entry may be in etcd. If machines then say that this refresh has no known outcome, this is safe, because the token was not used: ${retryInterrupted(profile)}`
}

function retryInterrupted(profile: string): string {
  return withProfile('mailclaim auth refresh --retry-interrupted', profile)
}

/** The session is renewed, but its new access token couldn't replace the old one. */
export function accessTokenNotStored(cause: unknown, oldStays: boolean): CliError {
  if (!(cause instanceof CliError)) throw cause
  const then = oldStays ? 'the previous one is still stored and may be used' : 'it is not stored'
  return withSentence(cause, `The session is renewed, but its new access token is lost: ${then}`, cause)
}

/** The session is renewed, but nothing on this machine says so anymore. */
export function recordDeleted(session: SignedIn): CliError {
  return new CliError(
    'session_deleted',
    Exit.notSignedIn,
    `the session of profile ${session.profile} was renewed, but its files were deleted meanwhile, so no other command can use it`,
    { hint: `run ${signInAgain(session)}` },
  )
}

/** The session is renewed, but the access token that came with it is missing or unusable. */
export function accessTokenUnusable(profile: string, why: string): CliError {
  return new CliError(
    'access_token_unusable',
    Exit.unavailable,
    `the service renewed the session of profile ${profile}, and the new refresh token is stored, but its response has no usable access token: ${why}`,
    { hint: 'run the command again, which renews the session once more' },
  )
}

/** The service rotated the token, and the new one couldn't be stored anywhere. */
export function tokenLost(session: SignedIn, cause: unknown): CliError {
  return new CliError(
    'refresh_token_lost',
    Exit.notSignedIn,
    `the service renewed the session of profile ${session.profile}, but the new refresh token could not be stored: ${messageOf(cause)}. The old one is used up, so the session cannot continue`,
    { hint: `make the store work again, then run ${signInAgain(session)}`, cause },
  )
}

/** The service's error, with the reason why it couldn't be recorded, which may prevent the next sign-in as well. */
export function notRecorded(error: CliError, failure: unknown): CliError {
  const hints = [failure instanceof CliError ? failure.hint : undefined, error.hint]
  const hint = hints.filter(Boolean).join('\n') || undefined
  return withSentence(
    error,
    `This could not be recorded on this machine: ${messageOf(failure)}`,
    failure,
    hint,
  )
}

/** The refresh failed before the token was sent. */
export function nothingSent(profile: string, error: unknown): unknown {
  if (!(error instanceof CliError)) return error
  const message = `the session of profile ${profile} cannot be renewed: ${error.message}. Nothing was sent, and the session is untouched`
  return new CliError(error.code, error.exit, message, { hint: error.hint, cause: error })
}

/**
 * Nothing was sent, but the store may still say that something was: there is nowhere to keep that it wasn't. An earlier refresh
 * with no known outcome keeps having none.
 */
export function entryMayStay(
  { record, journal: earlier }: SessionValue,
  sentAt: number,
  error: CliError,
): CliError {
  const before =
    earlier && `, and the outcome of the refresh before it${at(earlier.sentAt)} is still not known`
  const message = `the session of profile ${record.profile} cannot be renewed: ${error.message}. Nothing was sent, but the journal entry of ${formatTime(sentAt)} may be in etcd, or arrive there later${before ?? ''}`
  const hint = earlier
    ? signInOrRetry(record)
    : `run the command again later. If machines then say that the refresh of that time has no known outcome, this is safe and continues the session: ${retryInterrupted(record.profile)}`
  return new CliError(error.code, error.exit, message, { hint, cause: error })
}

/** The same error with one more sentence, and with another hint if one is given. */
function withSentence(error: CliError, sentence: string, cause: unknown, hint = error.hint): CliError {
  const message = `${error.message.replace(/\.$/, '')}. ${sentence}`
  return new CliError(error.code, error.exit, message, { hint, status: error.status, cause })
}

function messageOf(failure: unknown): string {
  return failure instanceof Error ? failure.message : String(failure)
}
