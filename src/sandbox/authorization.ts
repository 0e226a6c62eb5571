import { createHash } from 'node:crypto'
import type { AccessTokens } from './access-tokens.ts'
import { GRANT_TYPES, type OAuthClient } from './clients.ts'
import type { Grants, IssuedGrant } from './grants.ts'
import { TokenProblem } from './problems.ts'
import { randomToken, randomUuid, type SandboxRuntime } from './runtime.ts'

const CODE_LIFETIME_MS = 10 * 60_000
const REFRESH_LIFETIME_MS = 60 * 86_400_000
/** The reason that a grant shows after a rotated refresh token came back. */
const REUSE_REASON = 'refresh_token_reuse'

/** The answer of the token endpoint (interface, section 2.1). */
interface TokenResponse {
  readonly access_token: string
  readonly token_type: 'Bearer'
  readonly expires_in: number
  readonly refresh_token: string
  readonly scope: string
}

/** What an approved authorization request was about; the code stands for it. */
export interface Approved {
  readonly client: OAuthClient
  readonly redirectUri: string
  readonly scopes: readonly string[]
  readonly resource: string | null
  /** S256 of the verifier (RFC 7636, section 4.2). */
  readonly codeChallenge: string
}

interface AuthorizationCounts {
  codesIssued: number
  codesRedeemed: number
  refreshes: number
  reuseDetections: number
  grantsRevoked: number
}

export interface Authorization {
  issueCode(approved: Approved): string
  /** @throws TokenProblem for each row of the interface's section 7.1. */
  exchange(fields: ReadonlyMap<string, string>): Promise<TokenResponse>
  /** A session without a browser, for tests that are about something else. */
  startSession(approved: Omit<Approved, 'redirectUri' | 'codeChallenge'>): Promise<TokenResponse>
  revoke(grant: IssuedGrant, reason: string): void
  readonly counts: Readonly<AuthorizationCounts>
}

export interface AuthorizationOptions {
  readonly runtime: SandboxRuntime
  readonly now: () => number
  readonly clients: ReadonlyMap<string, OAuthClient>
  readonly grants: Grants
  readonly tokens: AccessTokens
  readonly accessTokenSeconds: number
  readonly issuer: string
}

interface RefreshToken {
  readonly grant: IssuedGrant
  readonly expires: number
  rotated: boolean
}

/** Codes, refresh tokens and what becomes of them (interface, section 3.1). */
export function createAuthorization(options: AuthorizationOptions): Authorization {
  const { runtime, now, clients, grants, tokens, accessTokenSeconds, issuer } = options
  const codes = new Map<string, Approved & { expires: number; redeemed: boolean }>()
  const refreshTokens = new Map<string, RefreshToken>()
  const counts: AuthorizationCounts = {
    codesIssued: 0,
    codesRedeemed: 0,
    refreshes: 0,
    reuseDetections: 0,
    grantsRevoked: 0,
  }

  async function issue(grant: IssuedGrant, scopes: readonly string[]): Promise<TokenResponse> {
    // The refresh token is on record before anything is awaited: two requests at once cannot both win.
    const refreshToken = `rt_${randomToken(runtime.random, 32)}`
    refreshTokens.set(refreshToken, { grant, expires: now() + REFRESH_LIFETIME_MS, rotated: false })
    const scope = scopes.join(' ')
    const accessToken = await tokens.sign({
      grantId: grant.id,
      clientId: grant.client.id,
      scope,
      id: randomUuid(runtime.random),
      audience: grant.resource ?? issuer,
      now: now(),
      seconds: accessTokenSeconds,
    })
    return {
      access_token: accessToken,
      token_type: 'Bearer',
      expires_in: accessTokenSeconds,
      refresh_token: refreshToken,
      scope,
    }
  }

  function newGrant({
    client,
    scopes,
    resource,
  }: Pick<Approved, 'client' | 'scopes' | 'resource'>): IssuedGrant {
    const grant: IssuedGrant = {
      id: randomUuid(runtime.random),
      client,
      scopes,
      resource,
      createdAt: now(),
      revokedAt: undefined,
      revokedReason: undefined,
    }
    grants.add(grant)
    return grant
  }

  function revoke(grant: IssuedGrant, reason: string): void {
    if (grant.revokedAt !== undefined) return
    grant.revokedAt = now()
    grant.revokedReason = reason
    counts.grantsRevoked += 1
  }

  function redeem(client: OAuthClient, fields: ReadonlyMap<string, string>): Promise<TokenResponse> {
    const verifier = required(fields, 'code_verifier')
    if (!/^[A-Za-z0-9\-._~]{43,128}$/.test(verifier)) {
      throw new TokenProblem('invalid_request', 'code_verifier must be 43 to 128 unreserved characters')
    }
    const code = codes.get(required(fields, 'code'))
    if (code === undefined || code.client.id !== client.id) {
      throw new TokenProblem('invalid_grant', 'the code is not known')
    }
    if (code.redeemed) throw new TokenProblem('invalid_grant', 'the code was already used')
    if (code.expires <= now()) throw new TokenProblem('invalid_grant', 'the code has expired')
    if (code.redirectUri !== required(fields, 'redirect_uri')) {
      throw new TokenProblem('invalid_grant', 'redirect_uri is not the one of the authorization request')
    }
    if (createHash('sha256').update(verifier).digest('base64url') !== code.codeChallenge) {
      throw new TokenProblem('invalid_grant', 'code_verifier does not match the code challenge')
    }
    code.redeemed = true
    counts.codesRedeemed += 1
    return issue(newGrant(code), code.scopes)
  }

  function refresh(client: OAuthClient, fields: ReadonlyMap<string, string>): Promise<TokenResponse> {
    const current = refreshTokens.get(required(fields, 'refresh_token'))
    if (current === undefined || current.grant.client.id !== client.id) {
      throw new TokenProblem('invalid_grant', 'the refresh token is not known')
    }
    if (current.rotated) {
      counts.reuseDetections += 1
      revoke(current.grant, REUSE_REASON)
      throw new TokenProblem(
        'invalid_grant',
        'the refresh token was already used; the grant has been revoked',
      )
    }
    if (current.grant.revokedAt !== undefined) {
      throw new TokenProblem('invalid_grant', 'the grant has been revoked')
    }
    if (current.expires <= now()) throw new TokenProblem('invalid_grant', 'the refresh token has expired')
    // A set, as RFC 6749, section 3.3, has it.
    const asked = [...new Set(fields.get('scope')?.split(' ') ?? current.grant.scopes)]
    const outside = asked.filter((scope) => !current.grant.scopes.includes(scope))
    if (outside.length > 0) {
      throw new TokenProblem('invalid_scope', `the grant does not have the scope ${outside.join(' ')}`)
    }
    current.rotated = true
    counts.refreshes += 1
    return issue(current.grant, asked)
  }

  return {
    counts,
    revoke,
    issueCode(approved) {
      const code = `ac_${randomToken(runtime.random, 24)}`
      codes.set(code, { ...approved, expires: now() + CODE_LIFETIME_MS, redeemed: false })
      counts.codesIssued += 1
      return code
    },
    startSession: (approved) => issue(newGrant(approved), approved.scopes),
    async exchange(fields) {
      const grantType = required(fields, 'grant_type')
      const known = GRANT_TYPES.find((type) => type === grantType)
      // The interface defines no code for this: the field counts as malformed.
      if (known === undefined) {
        throw new TokenProblem('invalid_request', `grant_type must be ${GRANT_TYPES.join(' or ')}`)
      }
      for (const name of REQUIRED[known]) required(fields, name)
      const client = clients.get(required(fields, 'client_id'))
      if (client === undefined) throw new TokenProblem('invalid_client', 'the client is not known')
      if (client.disabled) throw new TokenProblem('invalid_client', 'the client is disabled')
      if (!client.grantTypes.includes(known)) {
        throw new TokenProblem('unauthorized_client', `the client is not registered for ${known}`)
      }
      return known === 'authorization_code' ? redeem(client, fields) : refresh(client, fields)
    },
  }
}

const REQUIRED = {
  authorization_code: ['client_id', 'code', 'redirect_uri', 'code_verifier'],
  refresh_token: ['client_id', 'refresh_token'],
} as const

function required(fields: ReadonlyMap<string, string>, name: string): string {
  const value = fields.get(name)
  if (value === undefined) throw new TokenProblem('invalid_request', `${name} is missing`)
  return value
}
