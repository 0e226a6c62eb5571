import { CliError } from '../errors.ts'
import { addProfileFlag } from '../settings/profiles.ts'

export function signInHint(profile: string): string {
  return `sign in again: ${addProfileFlag('mailclaim login', profile)}`
}

/**
 * Returns the error for a profile that isn't signed in.
 *
 * @param signedIn profiles with a session, for the hint
 * @param why a further cause, appended to the message
 */
export function notSignedInError(profile: string, signedIn: readonly string[] = [], why = ''): CliError {
  const hint =
    signedIn.length === 0
      ? `set MAILCLAIM_API_KEY, or sign in: ${addProfileFlag('mailclaim login', profile)}`
      : `sign in, or use a profile that is signed in (${signedIn.join(', ')}): mailclaim auth switch ${signedIn[0]}`
  return new CliError('not_signed_in', `profile ${profile} is not signed in${why}`, { hint })
}

/** Returns the error for an expired access token in a command that doesn't renew tokens. */
export function expiredAccessTokenError(profile: string): CliError {
  const message = `the access token of profile ${profile} has expired, and this command doesn't renew it`
  const hint = `to renew it: ${addProfileFlag('mailclaim auth refresh', profile)}`
  return new CliError('not_signed_in', message, { hint })
}

/** Returns the error for a refresh token that may have been sent, with unknown outcome. @param why cause, for the message */
export function refreshInterruptedError(profile: string, why = 'the last renewal was interrupted'): CliError {
  const message = `the refresh token of profile ${profile} may have been sent: ${why}`
  const hint = `see docs/token-safety.md#after-an-interrupted-renewal, or ${signInHint(profile)}`
  return new CliError('refresh_interrupted', message, { hint })
}

/**
 * Returns the error for a renewal that was cut off while it created its note file (`next.…`), and so before it sent the refresh
 * token. Only `--retry-interrupted` may send the unsent token: the note file could also be that of a renewal in another process
 * that is about to send it.
 */
export function unsentRefreshTokenError(profile: string): CliError {
  const message = `the last renewal of profile ${profile} was cut off before it sent the refresh token`
  const hint = `this is safe here: ${addProfileFlag('mailclaim auth refresh --retry-interrupted', profile)}`
  return new CliError('refresh_interrupted', message, { hint })
}

/** Returns the error for a session that has ended. @param reason given by the service or the sign-out, if there is one */
export function sessionOverError(profile: string, reason: string | null | undefined): CliError {
  const message = `the session of profile ${profile} is over: ${reason ?? 'the service refused its refresh token'}`
  const hint = `if this machine was copied or restored, see docs/token-safety.md; ${signInHint(profile)}`
  return new CliError('session_over', message, { hint })
}

/** Returns the error for a new refresh token that couldn't be stored. */
export function tokenLostError(
  profile: string,
  reason = 'something removed its file',
  cause?: unknown,
): CliError {
  const message = `the new refresh token of profile ${profile} could not be stored: ${reason}`
  return new CliError('refresh_token_lost', message, { hint: signInHint(profile), cause })
}

/** Returns the error for settings that name another service or client than the session's. */
export function sessionSettingsMismatchError(
  what: 'service' | 'client',
  sessionValue: string,
  settingsValue: string,
  profile: string,
): CliError {
  const message = `the session of profile ${profile} belongs to the ${what} ${sessionValue}, not to ${settingsValue}; it is not sent there`
  const hint = `use the ${what} of the session, or sign in to that ${what} in another profile (--profile NAME)`
  return new CliError('session_elsewhere', message, { hint })
}
