import type { Clock } from '../context.ts'
import { CliError } from '../errors.ts'
import { removeDurable, writeDurable } from '../storage/durable-file.ts'
import { accessTokenFormat } from '../storage/file-formats.ts'
import { readJson } from '../storage/json-file.ts'
import { secondsSince } from '../storage/moment.ts'
import type { Contents } from '../storage/schema.ts'
import type { SessionPaths } from './paths.ts'

/** The cached access token. */
export type AccessToken = Contents<typeof accessTokenFormat>

/** An access token that expires within this many seconds is renewed first, because the request takes time as well. */
const MARGIN_SECONDS = 60

/** Seconds until the token expires, `expires_in` from its receipt; 0 or less if it has. */
export function secondsLeft(token: AccessToken, clock: Clock): number {
  return token.expiresInSeconds - secondsSince(token.received, clock)
}

/** Whether a command can start with it: a minute is left (docs/token-safety.md, step 1). */
export function isFresh(token: AccessToken, clock: Clock): boolean {
  return secondsLeft(token, clock) >= MARGIN_SECONDS
}

/**
 * Whether a token that another process has just got can be used. For tokens that live only a few minutes, a quarter of
 * their lifetime is enough: otherwise fifty processes would renew one after the other.
 */
export function isAdoptable(token: AccessToken, clock: Clock): boolean {
  return secondsLeft(token, clock) >= Math.min(MARGIN_SECONDS, token.expiresInSeconds / 4)
}

/**
 * Reads the cached access token: no lock, no keychain, no network. A damaged file counts as missing, because the token
 * can be renewed at any time and the next write replaces the file.
 */
export async function readAccessToken(paths: SessionPaths): Promise<AccessToken | undefined> {
  try {
    return await readJson(paths.accessToken, accessTokenFormat.parse)
  } catch (error) {
    if (error instanceof CliError) return undefined
    throw error
  }
}

/** @throws CliError `cannot_write`, exit 1. */
export function writeAccessToken(paths: SessionPaths, token: AccessToken): void {
  writeDurable(paths.accessToken, accessTokenFormat.text(token))
}

/** @throws CliError `cannot_write`, exit 1. */
export function removeAccessToken(paths: SessionPaths): void {
  removeDurable(paths.accessToken)
}
