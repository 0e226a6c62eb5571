import type { Clock } from '../context.ts'
import type { Secret } from '../credentials/store.ts'
import { secondsSince } from '../storage/moment.ts'
import type { AccessToken } from './access-token.ts'

/** The refresh token lives this long from when it was issued (interface, section 8). */
export const REFRESH_TOKEN_DAYS = 60

const LIFETIME_SECONDS = REFRESH_TOKEN_DAYS * 24 * 3600

/** Wall-clock milliseconds at which a refresh token expires. */
export function expiryOf(issuedAt: number): number {
  return issuedAt + LIFETIME_SECONDS * 1000
}

/**
 * Whether a refresh token is older than it can get. A wall clock that jumped decides nothing if the access token that came
 * with it is still there: its age is measured by the time since boot, as for the access token itself.
 *
 * @param session the sign-in that the secret belongs to.
 * @param token the access token that is stored, of any sign-in.
 */
export function hasExpired(
  session: string,
  secret: Secret,
  token: AccessToken | undefined,
  clock: Clock,
): boolean {
  const cameTogether = token?.session === session && token.generation === secret.generation
  const age = cameTogether ? secondsSince(token.received, clock) : (clock.now() - secret.issuedAt) / 1000
  // Infinite if nobody knows.
  return Number.isFinite(age) && age > LIFETIME_SECONDS
}
