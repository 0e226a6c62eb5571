import { generateKeyPair, jwtVerify, SignJWT } from 'jose'

/** What an access token says. */
interface AccessClaims {
  readonly grantId: string
  readonly clientId: string
  readonly scope: string
}

export interface AccessTokens {
  /** Valid from `now` for `seconds`; times in milliseconds since 1970. */
  sign(claims: AccessClaims & { id: string; audience: string; now: number; seconds: number }): Promise<string>
  /** What the token says, or undefined if it is not one of ours or no longer valid at `now`. */
  read(token: string, now: number): Promise<AccessClaims | undefined>
}

/** How many tokens are remembered as checked, so that a busy client does not pay for a signature each time. */
const REMEMBERED = 4096

/** JWTs signed with ES256 (interface, section 2.1) by a key that lives as long as the sandbox. */
export async function createAccessTokens(issuer: string): Promise<AccessTokens> {
  const { privateKey, publicKey } = await generateKeyPair('ES256')
  const checked = new Map<string, { claims: AccessClaims; expires: number }>()

  return {
    sign({ grantId, clientId, scope, id, audience, now, seconds }) {
      return (
        new SignJWT({ client_id: clientId, scope, grant_id: grantId })
          .setProtectedHeader({ alg: 'ES256', typ: 'at+jwt' })
          .setIssuer(issuer)
          .setSubject('sandbox-team')
          .setAudience(audience)
          .setIssuedAt(Math.floor(now / 1000))
          // Rounded up, so that no token is valid for less than its lifetime.
          .setExpirationTime(Math.ceil(now / 1000) + seconds)
          .setJti(id)
          .sign(privateKey)
      )
    },
    async read(token, now) {
      const known = checked.get(token)
      if (known !== undefined) return known.expires > now ? known.claims : undefined
      try {
        const { payload } = await jwtVerify(token, publicKey, {
          issuer,
          algorithms: ['ES256'],
          currentDate: new Date(now),
        })
        const claims: AccessClaims = {
          grantId: String(payload['grant_id']),
          clientId: String(payload['client_id']),
          scope: String(payload['scope']),
        }
        if (checked.size >= REMEMBERED) checked.clear()
        checked.set(token, { claims, expires: (payload.exp ?? 0) * 1000 })
        return claims
      } catch {
        return undefined
      }
    },
  }
}
