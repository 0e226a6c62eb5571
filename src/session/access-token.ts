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

/** An access token that would end within this many seconds is renewed first: the request has to arrive as well. */
const MARGIN_SECONDS = 60

/** Seconds until the token ends, by `expires_in` from its receipt; not above 0 when it has ended. */
export function secondsLeft(token: AccessToken, clock: Clock): number {
  return token.expiresInSeconds - secondsSince(token.received, clock)
}

/** Whether a command can start out with it: a minute is left (docs/token-safety.md, step 1). */
export function isFresh(token: AccessToken, clock: Clock): boolean {
  return secondsLeft(token, clock) >= MARGIN_SECONDS
}

/**
 * Whether one that another process has just got will do: where tokens live for less than a few minutes, a quarter of
 * their life is enough, or fifty processes would renew one after the other.
 */
export function isAdoptable(token: AccessToken, clock: Clock): boolean {
  return secondsLeft(token, clock) >= Math.min(MARGIN_SECONDS, token.expiresInSeconds / 4)
}

/**
 * Reads the cached access token: no lock, no keychain, no network. One that cannot be read is as good as none, because
 * it can be renewed at any time and the next write replaces it.
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
