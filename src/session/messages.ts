import { CliError, Exit } from '../errors.ts'
import { loginCommand } from '../settings/login-command.ts'
import type { Journal, OAuthRecord, SessionRecord } from './record.ts'

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

/** Step 4 of a refresh: the token was sent and nobody knows whether the service took it. */
export function interrupted({ profile, store }: SignedIn, journal: Journal): CliError {
  return new CliError(
    'refresh_interrupted',
    Exit.notSignedIn,
    `the last refresh of profile ${profile}, at ${time(journal.sentAt)}, was cut off: the refresh token was sent, and no answer was stored. A refresh token works once and a second use ends the session, so it is kept and not sent again`,
    {
      hint: `sign in anew, which is always safe: ${loginCommand({ profile, store })}. Or try the old token: ${withProfile('mailclaim auth refresh --retry-interrupted', profile)}; if the service did take it, that ends this session everywhere`,
    },
  )
}

/** The question that is asked of a person instead. */
export function interruptedQuestion(profile: string, journal: Journal): string {
  return `The last refresh of profile ${profile}, at ${time(journal.sentAt)}, was cut off: the service may or may not have taken the refresh token. Send it once more? If it was taken, this ends the session everywhere, and you sign in anew`
}

/** The refresh that was just sent has no known outcome. */
export function outcomeUnknown({ profile, store }: SignedIn, why: string): CliError {
  return new CliError(
    'refresh_unknown',
    Exit.unavailable,
    `the service did not answer the refresh of profile ${profile} in a way that can be used (${why}). It may have taken the refresh token; a second use would end the session, so the token is kept and not sent again`,
    {
      hint: `sign in anew, which is always safe: ${loginCommand({ profile, store })}. Or try the old token: ${withProfile('mailclaim auth refresh --retry-interrupted', profile)}; if the service did take it, that ends this session everywhere`,
    },
  )
}

/** The service does not accept the session any more. */
export function sessionOver(record: OAuthRecord): CliError {
  const ended = record.ended
  const said = ended?.description ? ` It says: ${ended.description}` : ''
  const why = {
    expired: `its refresh token was last renewed more than ${REFRESH_TOKEN_DAYS} days ago, on ${time(record.issuedAt)}`,
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

/** The secret store holds an older token than the record knows of: the service would take it for a stolen one. */
export function staleCopy({ profile, store }: SignedIn): CliError {
  return new CliError(
    'refresh_token_outdated',
    Exit.notSignedIn,
    `the stored refresh token of profile ${profile} is older than the last one received (was a backup restored?). Sending it would revoke the grant, so it is not sent`,
    { hint: `run ${loginCommand({ profile, store })}` },
  )
}

/** The secret of a session that its record knows of is not where it should be. */
export function secretMissing({ profile, store }: SignedIn, path: string): CliError {
  return new CliError(
    'refresh_token_missing',
    Exit.notSignedIn,
    `the refresh token of profile ${profile} is missing: ${path} is not there`,
    { hint: `run ${loginCommand({ profile, store })}` },
  )
}

/** The service rotated the token and the new one could be stored nowhere. */
export function tokenLost({ profile, store }: SignedIn, cause: unknown): CliError {
  const why = cause instanceof Error ? cause.message : String(cause)
  return new CliError(
    'refresh_token_lost',
    Exit.notSignedIn,
    `the service renewed the session of profile ${profile}, but the new refresh token could not be stored: ${why}. The old one is used up, so the session cannot go on`,
    { hint: `make the store work again, then run ${loginCommand({ profile, store })}`, cause },
  )
}

/** The service rotated the refresh token, which is stored, and sent no access token that can be used with it. */
export function accessTokenUnusable(profile: string, why: string | undefined): CliError {
  return new CliError(
    'access_token_unusable',
    Exit.unavailable,
    `the service renewed the session of profile ${profile}, but its access token cannot be used${why === undefined ? '' : ` (${why})`}`,
    { hint: 'the session is kept; run the command again' },
  )
}

/** What the service said counts; that it could not be noted here is told beside it, for the way on may be shut as well. */
export function notNoted(error: CliError, failure: unknown): CliError {
  const { message, hint } =
    failure instanceof CliError ? failure : { message: String(failure), hint: undefined }
  return new CliError(
    error.code,
    error.exit,
    `${error.message.replace(/\.$/, '')}. Nor could that be noted on this machine: ${message}`,
    {
      hint: [hint, error.hint].filter(Boolean).join('\n') || undefined,
      status: error.status,
      cause: failure,
    },
  )
}

/** The disk cannot take what a refresh has to write before it sends the token. */
export function nothingSent(profile: string, error: unknown): unknown {
  if (!(error instanceof CliError)) return error
  return new CliError(
    error.code,
    error.exit,
    `the session of profile ${profile} cannot be renewed: ${error.message}. Nothing was sent, and the session is untouched`,
    { hint: error.hint, cause: error },
  )
}

function time(ms: number): string {
  return `${new Date(ms).toISOString().slice(0, 19).replace('T', ' ')} UTC`
}
