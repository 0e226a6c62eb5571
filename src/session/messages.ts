import { CliError, Exit } from '../errors.ts'
import { loginCommand } from '../settings/login-command.ts'
import type { OAuthRecord, SessionRecord } from './record.ts'

/** What a hint needs to know of a session to sign in to the same place again. */
type SignedIn = Pick<SessionRecord, 'profile' | 'store'>

/** The refresh token lives this long from when it was issued (interface, section 8). */
export const REFRESH_TOKEN_DAYS = 60

function withProfile(command: string, profile: string): string {
  return profile === 'default' ? command : `${command} --profile ${profile}`
}

export function notSignedIn(profile: string): CliError {
  return new CliError('not_signed_in', Exit.notSignedIn, `profile ${profile} is not signed in`, {
    hint: `run ${loginCommand({ profile })}, or set MAILCLAIM_API_KEY`,
  })
}

/** Step 4 of a refresh: the token may have been sent, and nobody knows whether the service took it. */
export function interrupted(session: SignedIn, sentAt: number | undefined): CliError {
  return new CliError(
    'refresh_interrupted',
    Exit.notSignedIn,
    `the last refresh of profile ${session.profile}${at(sentAt)} has no known outcome: the refresh token may have been sent, and no usable response was stored. A refresh token works once and a second use ends the session, so it is kept and not sent again`,
    { hint: waysOn(session) },
  )
}

/** The question that is asked of a person instead. */
export function interruptedQuestion(profile: string, sentAt: number | undefined): string {
  return `The last refresh of profile ${profile}${at(sentAt)} has no known outcome: the service may or may not have taken the refresh token. Send it once more? If it was taken, this ends the session everywhere, and you sign in again`
}

function at(ms: number | undefined): string {
  return ms === undefined ? '' : `, at ${time(ms)},`
}

function waysOn({ profile, store }: SignedIn): string {
  return `sign in again, which is always safe: ${loginCommand({ profile, store })}. Or try the old token: ${withProfile('mailclaim auth refresh --retry-interrupted', profile)}; if the service did take it, that ends this session everywhere`
}

/** The refresh that was just sent has no known outcome. */
export function outcomeUnknown(session: SignedIn, why: string): CliError {
  return new CliError(
    'refresh_unknown',
    Exit.unavailable,
    `the service did not answer the refresh of profile ${session.profile} in a way that can be used (${why}). It may have taken the refresh token; a second use would end the session, so the token is kept and not sent again`,
    { hint: waysOn(session) },
  )
}

/** The service does not accept the session any more. */
export function sessionOver(record: OAuthRecord): CliError {
  const ended = record.ended
  const said = ended?.description ? ` It says: ${ended.description}` : ''
  const why = {
    expired: `its refresh token was last renewed more than ${REFRESH_TOKEN_DAYS} days ago, on ${time(ended?.renewedAt ?? record.signedInAt)}`,
    interrupted:
      'its refresh token had been used by a refresh whose answer was lost, so the service ended it',
    refused: 'the service refused its refresh token (invalid_grant): it was revoked, or used elsewhere',
  }[ended?.cause ?? 'refused']
  return new CliError(
    'session_over',
    Exit.notSignedIn,
    `the session of profile ${record.profile} is over: ${why}.${said}`,
    { hint: `run ${loginCommand(record)}` },
  )
}

/** Something deletes or replaces the lock file again and again. */
export function lockReplaced(profile: string, path: string): CliError {
  return new CliError(
    'session_busy',
    Exit.unavailable,
    `the session of profile ${profile} cannot be renewed: something keeps deleting or replacing its lock file (${path}). Nothing was sent, and the session is untouched`,
    { hint: 'find out what cleans up that directory, and run this command again' },
  )
}

/** The note that says "this token may have been sent" cannot be removed, though the service has not used the token. */
export function journalStays(profile: string, cause: unknown, failure: unknown): CliError {
  const error = cause instanceof CliError ? cause : new CliError('cannot_write', Exit.bug, String(cause))
  const retry = withProfile('mailclaim auth refresh --retry-interrupted', profile)
  const hint = `once that can be removed, ${retry} is safe here and goes on with the session`
  return withMore(
    error,
    `The service has not used the refresh token, but ${messageOf(failure)}`,
    failure,
    hint,
  )
}

/** The session is renewed, and its new access token could not be put in the place of the old one. */
export function accessTokenNotStored(cause: unknown, oldStays: boolean): CliError {
  if (!(cause instanceof CliError)) throw cause
  const then = oldStays ? 'the one before it is still stored and may still be used' : 'it is not stored'
  return withMore(cause, `The session is renewed, but its new access token is lost: ${then}`, cause)
}

/** The session is renewed, but the access token that came with it is stored nowhere or is useless. */
export function accessTokenUnusable(profile: string, why: string): CliError {
  return new CliError(
    'access_token_unusable',
    Exit.unavailable,
    `the service renewed the session of profile ${profile}, and the new refresh token is stored, but its response has no usable access token: ${why}`,
    { hint: 'run the command again, which renews the session once more' },
  )
}

/** The service rotated the token and the new one could be stored nowhere. */
export function tokenLost(session: SignedIn, cause: unknown): CliError {
  return new CliError(
    'refresh_token_lost',
    Exit.notSignedIn,
    `the service renewed the session of profile ${session.profile}, but the new refresh token could not be stored: ${messageOf(cause)}. The old one is used up, so the session cannot go on`,
    { hint: `make the store work again, then run ${loginCommand(session)}`, cause },
  )
}

/** What the service said counts; that it could not be noted here is told beside it, for the way on may be shut as well. */
export function notNoted(error: CliError, failure: unknown): CliError {
  const hints = [failure instanceof CliError ? failure.hint : undefined, error.hint]
  const hint = hints.filter(Boolean).join('\n') || undefined
  return withMore(error, `Nor could that be noted on this machine: ${messageOf(failure)}`, failure, hint)
}

/** The disk cannot take what a refresh has to write before it sends the token. */
export function nothingSent(profile: string, error: unknown): unknown {
  if (!(error instanceof CliError)) return error
  const message = `the session of profile ${profile} cannot be renewed: ${error.message}. Nothing was sent, and the session is untouched`
  return new CliError(error.code, error.exit, message, { hint: error.hint, cause: error })
}

/** The same error with one more sentence, and with another hint where one is given. */
function withMore(error: CliError, more: string, cause: unknown, hint = error.hint): CliError {
  const message = `${error.message.replace(/\.$/, '')}. ${more}`
  return new CliError(error.code, error.exit, message, { hint, status: error.status, cause })
}

function messageOf(failure: unknown): string {
  return failure instanceof Error ? failure.message : String(failure)
}

function time(ms: number): string {
  return `${new Date(ms).toISOString().slice(0, 19).replace('T', ' ')} UTC`
}
