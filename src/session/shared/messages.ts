import type { Context } from '../../context.ts'
import { CliError, Exit } from '../../errors.ts'
import { signInHint } from '../messages.ts'
import type { Note } from './value.ts'

/** Nobody knows what became of the token, on any machine; the one that sent it may hold the next. */
export function interruptedAt(
  profile: string,
  { host }: Note,
  { program }: Pick<Context, 'program'>,
  why?: string,
): CliError {
  const elsewhere = `run mailclaim auth refresh on ${host} first, which may hold the new token; else `
  return new CliError(
    'refresh_interrupted',
    Exit.notSignedIn,
    `the refresh token of profile ${profile} may have been sent by ${host}${why === undefined ? '' : `: ${why}`}`,
    { hint: `${host === program.host ? '' : elsewhere}${signInHint(profile)}` },
  )
}

/** A member or the whole cluster came back from a backup. */
export function restored(profile: string): CliError {
  return new CliError(
    'store_unavailable',
    Exit.notSignedIn,
    `etcd holds an older token of profile ${profile} than this machine has seen: it was set back`,
    { hint: signInHint(profile) },
  )
}

/** Before anything was sent. */
export function nothingSent(cause: CliError): CliError {
  const { code, exit, message, hint } = cause
  return new CliError(code, exit, `${message}; nothing was sent`, { hint, cause })
}

/** The note was in etcd for so long that others may count it as lost. */
export function tooLate(): CliError {
  return new CliError(
    'store_unavailable',
    Exit.unavailable,
    'it took too long to reach the service; nothing was sent',
    { hint: 'run the command again' },
  )
}
