import type { Clock } from '../context.ts'
import type { Secret } from '../credentials/store.ts'
import { leastSecondsSince, secondsSince } from '../storage/moment.ts'
import type { AccessToken } from './access-token.ts'

/** The refresh token lives this long from when it was issued (interface, section 8). */
export const REFRESH_TOKEN_DAYS = 60

const LIFETIME_SECONDS = REFRESH_TOKEN_DAYS * 24 * 3600

/** Wall-clock milliseconds at which a refresh token expires. */
export function expiryOf(issuedAt: number): number {
  return issuedAt + LIFETIME_SECONDS * 1000
}

/**
 * Whether a refresh token is older than it can get. The wall clock alone, which can jump, is no proof, and decides nothing
 * if the access token that came with the refresh token is still there and the machine has been running since.
 *
 * @param session the sign-in that the secret belongs to.
 * @param token the access token that is stored, of any sign-in.
 * @returns `by the wall clock` if nothing else says so.
 */
export function hasExpired(
  session: string,
  secret: Secret,
  token: AccessToken | undefined,
  clock: Clock,
): boolean | 'by the wall clock' {
  const cameTogether = token?.session === session && token.generation === secret.generation
  if (cameTogether && leastSecondsSince(token.received, clock) > LIFETIME_SECONDS) return true
  const age = cameTogether ? secondsSince(token.received, clock) : (clock.now() - secret.issuedAt) / 1000
  // Infinite if nobody knows.
  return Number.isFinite(age) && age > LIFETIME_SECONDS && 'by the wall clock'
}
