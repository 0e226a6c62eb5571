import { createHash, randomBytes, randomUUID } from 'node:crypto'
import type { Context } from 'hono'
import { type CryptoKey, SignJWT } from 'jose'
import { formatPostgresTimestamp } from './clock.ts'
import { type HttpApp, HttpError, readBody, TOKEN_PATH } from './http.ts'

/** A registered public client. All clients share the redirect URIs of `isRegisteredRedirectUri`. */
export interface OAuthClient {
  readonly id: string
  readonly name: string
  readonly grantTypes: readonly string[]
  readonly disabled: boolean
}

const GRANT_TYPES = ['authorization_code', 'refresh_token']

/** Scopes that a client can request. The service documents only `emails:send`; the others are made up. */
export const SUPPORTED_SCOPES = [
  'emails:send',
  'contacts:read',
  'contacts:write',
  'domains:read',
  'domains:write',
  'grants:read',
]

function defineClient(digit: number, name: string, rest: Partial<OAuthClient> = {}): OAuthClient {
  const id = `4f1c7b52-6f0e-4a53-9d2b-5c0a1de5c00${digit}`
  return { id, name, grantTypes: GRANT_TYPES, disabled: false, ...rest }
}

/** The registered clients: mailclaim's, and two that cause the errors `invalid_client` and `unauthorized_client`. */
export const OAUTH_CLIENTS = {
  default: defineClient(1, 'mailclaim'),
  disabled: defineClient(2, 'Retired Tool', { disabled: true }),
  codeOnly: defineClient(3, 'One-Time Tool', { grantTypes: ['authorization_code'] }),
} as const

export function findClient(id: string): OAuthClient | undefined {
  return Object.values(OAUTH_CLIENTS).find((known) => known.id === id)
}

/** Whether the redirect URI is `/callback` on a loopback host and any port (RFC 8252, section 7.3). */
export function isRegisteredRedirectUri(redirectUri: string): boolean {
  const port = /^http:\/\/(?:127\.0\.0\.1|\[::1\]|localhost):([1-9][0-9]{0,4})\/callback$/.exec(
    redirectUri,
  )?.[1]
  return Number(port) <= 65_535
}

/** An authorization that a user gave to a client. All grants belong to the sandbox's only team. */
export interface OAuthGrant {
  readonly id: string
  readonly client: Pick<OAuthClient, 'id' | 'name'>
  readonly scopes: readonly string[]
  readonly resource: string | null
  readonly createdAt: number
  revokedAt: number | undefined
  revokedReason: string | undefined
}

export function serializeGrant({ client, ...grant }: OAuthGrant): object {
  return {
    id: grant.id,
    client_id: client.id,
    scopes: grant.scopes,
    resource: grant.resource,
    created_at: formatPostgresTimestamp(grant.createdAt),
    revoked_at: grant.revokedAt === undefined ? null : formatPostgresTimestamp(grant.revokedAt),
    revoked_reason: grant.revokedReason ?? null,
    client: { name: client.name, logo_uri: 'https://logos.example/sandbox.png' },
  }
}

/** Parameters of a valid authorization request that its authorization code is bound to (RFC 6749, section 4.1.2). */
export interface AuthorizationRequest {
  readonly client: OAuthClient
  readonly redirectUri: string
  readonly scopes: readonly string[]
  readonly resource: string | null
  /** The PKCE challenge: base64url of the verifier's SHA-256 (`S256`; RFC 7636, section 4.2). */
  readonly codeChallenge: string
}

interface OAuthOptions {
  /** `now` returns the virtual time in milliseconds since 1970. */
  readonly clock: { now(): number }
  readonly issuer: string
  /** The private key that signs access tokens (ES256). */
  readonly key: CryptoKey
  readonly accessTokenSeconds: number
}

const CODE_LIFETIME_MS = 10 * 60_000
const REFRESH_LIFETIME_MS = 60 * 86_400_000

/** Returns a random base64url string. @param bytes number of random bytes; the string is a third longer */
export function createRandomToken(bytes: number): string {
  return randomBytes(bytes).toString('base64url')
}

export type OAuthServer = ReturnType<typeof createOAuthServer>

/** Creates the authorization server, which rotates refresh tokens, and keeps codes, grants and tokens in memory. */
export function createOAuthServer({ clock: { now }, issuer, key, accessTokenSeconds }: OAuthOptions) {
  const codes = new Map<string, AuthorizationRequest & { expires: number; redeemed: boolean }>()
  const refreshTokens = new Map<string, { grant: OAuthGrant; expires: number; rotated: boolean }>()
  const accessTokens = new Map<string, { grant: OAuthGrant; expires: number }>()
  const issued: OAuthGrant[] = []
  const counts = { refreshes: 0, reuseDetections: 0 }

  /** Issues an access token and a refresh token. @returns the body of the token response */
  async function issueTokens(grant: OAuthGrant, scopes: readonly string[]) {
    const refreshToken = `rt_${createRandomToken(32)}`
    const at = now()
    refreshTokens.set(refreshToken, { grant, expires: at + REFRESH_LIFETIME_MS, rotated: false })
    const scope = scopes.join(' ')
    // Round `exp` up to whole seconds, so that no token expires before `expires_in` seconds have passed.
    const expires = Math.ceil(at / 1000) + accessTokenSeconds
    const accessToken = await new SignJWT({ client_id: grant.client.id, scope, grant_id: grant.id })
      .setProtectedHeader({ alg: 'ES256', typ: 'at+jwt' })
      .setIssuer(issuer)
      .setSubject('sandbox-team')
      .setAudience(grant.resource ?? issuer)
      .setIssuedAt(Math.floor(at / 1000))
      .setExpirationTime(expires)
      .setJti(randomUUID())
      .sign(key)
    accessTokens.set(accessToken, { grant, expires: expires * 1000 })
    return {
      access_token: accessToken,
      token_type: 'Bearer',
      expires_in: accessTokenSeconds,
      refresh_token: refreshToken,
      scope,
    }
  }

  function createSession(about: Pick<AuthorizationRequest, 'client' | 'scopes' | 'resource'>) {
    const { client, scopes, resource } = about
    const revoked = { revokedAt: undefined, revokedReason: undefined }
    const grant: OAuthGrant = { id: randomUUID(), client, scopes, resource, createdAt: now(), ...revoked }
    issued.push(grant)
    return issueTokens(grant, scopes)
  }

  function revoke(grant: OAuthGrant, reason: string): void {
    if (grant.revokedAt !== undefined) return
    grant.revokedAt = now()
    grant.revokedReason = reason
  }

  function redeemCode(client: OAuthClient, fields: ReadonlyMap<string, string>) {
    const verifier = fields.get('code_verifier') ?? ''
    if (!/^[A-Za-z0-9\-._~]{43,128}$/.test(verifier))
      throw tokenError('invalid_request', 'code_verifier must be 43 to 128 unreserved characters')
    const code = codes.get(fields.get('code') ?? '')
    if (code === undefined || code.client !== client)
      throw tokenError('invalid_grant', 'the code is not known')
    if (code.redeemed) throw tokenError('invalid_grant', 'the code was already used')
    if (code.expires <= now()) throw tokenError('invalid_grant', 'the code has expired')
    if (code.redirectUri !== fields.get('redirect_uri'))
      throw tokenError('invalid_grant', 'redirect_uri is not the one of the authorization request')
    if (createHash('sha256').update(verifier).digest('base64url') !== code.codeChallenge)
      throw tokenError('invalid_grant', 'code_verifier does not match the code challenge')
    code.redeemed = true
    return createSession(code)
  }

  function refreshTokenPair(client: OAuthClient, fields: ReadonlyMap<string, string>) {
    const current = refreshTokens.get(fields.get('refresh_token') ?? '')
    if (current === undefined || current.grant.client !== client)
      throw tokenError('invalid_grant', 'the refresh token is not known')
    const { grant } = current
    if (current.rotated) {
      counts.reuseDetections += 1
      revoke(grant, 'refresh_token_reuse')
      throw tokenError('invalid_grant', 'the refresh token was already used; the grant has been revoked')
    }
    if (grant.revokedAt !== undefined) throw tokenError('invalid_grant', 'the grant has been revoked')
    if (current.expires <= now()) throw tokenError('invalid_grant', 'the refresh token has expired')
    // `scope` is a set of space-delimited values (RFC 6749, section 3.3), so drop duplicates.
    const asked = [...new Set(fields.get('scope')?.split(' ') ?? grant.scopes)]
    if (asked.some((scope) => !grant.scopes.includes(scope)))
      throw tokenError('invalid_scope', `the grant has only the scope ${grant.scopes.join(' ')}`)
    // Mark the token as used before the first `await`, so that of two concurrent requests only one succeeds.
    current.rotated = true
    counts.refreshes += 1
    return issueTokens(grant, asked)
  }

  return {
    now,
    issuer,
    grants: issued as readonly OAuthGrant[],
    counts: counts as Readonly<typeof counts>,
    /** Issues an authorization code, valid for `CODE_LIFETIME_MS` of virtual time and one use. */
    issueCode(approved: AuthorizationRequest): string {
      const code = `ac_${createRandomToken(24)}`
      codes.set(code, { ...approved, expires: now() + CODE_LIFETIME_MS, redeemed: false })
      return code
    },
    /** Issues tokens without an authorization request, for tests that need a signed-in client but no browser. */
    startSession: () =>
      createSession({ client: OAUTH_CLIENTS.default, scopes: SUPPORTED_SCOPES, resource: null }),
    /** Revokes every issued grant, with the reason `revoked_from_api`; sample grants aren't changed. */
    revokeAll(): void {
      for (const grant of issued) revoke(grant, 'revoked_from_api')
    },
    /** Whether an access token was issued by this server, hasn't expired, and its grant isn't revoked. */
    isValid(accessToken: string): boolean {
      const known = accessTokens.get(accessToken)
      return known !== undefined && known.expires > now() && known.grant.revokedAt === undefined
    },
    /** Exchanges an authorization code or a refresh token for new tokens. @throws HttpError as `tokenError` */
    async exchange(fields: ReadonlyMap<string, string>) {
      const grantType = requireField(fields, 'grant_type')
      // Respond to an unknown grant type with `invalid_request`, because the service doesn't document `unsupported_grant_type`.
      if (!GRANT_TYPES.includes(grantType))
        throw tokenError('invalid_request', `grant_type must be ${GRANT_TYPES.join(' or ')}`)
      const isCode = grantType === 'authorization_code'
      for (const name of isCode ? ['code', 'redirect_uri', 'code_verifier'] : ['refresh_token'])
        requireField(fields, name)
      const client = findClient(requireField(fields, 'client_id'))
      if (client === undefined) throw tokenError('invalid_client', 'the client is not known')
      if (client.disabled) throw tokenError('invalid_client', 'the client is disabled')
      if (!client.grantTypes.includes(grantType))
        throw tokenError('unauthorized_client', `the client is not registered for ${grantType}`)
      return isCode ? redeemCode(client, fields) : refreshTokenPair(client, fields)
    },
  }
}

/** Returns an error response of the token endpoint (RFC 6749, section 5.2): 401 for `invalid_client`, else 400. */
function tokenError(error: string, description: string): HttpError {
  return new HttpError(error === 'invalid_client' ? 401 : 400, error, description)
}

function requireField(fields: ReadonlyMap<string, string>, name: string): string {
  const value = fields.get(name)
  if (value === undefined) throw tokenError('invalid_request', `${name} is missing`)
  return value
}

/** Adds the token endpoint, POST /oauth/token, and the authorization server metadata (RFC 8414). */
export function addTokenAndMetadataRoutes(app: HttpApp, oauth: OAuthServer): void {
  const { issuer } = oauth
  app.post(TOKEN_PATH, async (c) => {
    const answer = await oauth.exchange(await readFields(c))
    return c.json(answer, 200, { 'Cache-Control': 'no-store', Pragma: 'no-cache' })
  })

  app.get('/.well-known/oauth-authorization-server', (c) =>
    c.json({
      issuer,
      authorization_endpoint: `${issuer}/oauth/authorize`,
      token_endpoint: `${issuer}${TOKEN_PATH}`,
      response_types_supported: ['code'],
      code_challenge_methods_supported: ['S256'],
      authorization_response_iss_parameter_supported: true,
    }),
  )
}

/** Matches the names of the fields that the sandbox reads in a token request; other fields are ignored. */
const PARAMETER = /^(grant_type|client_id|code|redirect_uri|code_verifier|refresh_token|scope)$/

/**
 * Reads the fields of a token request, form-encoded or JSON. Fields with an empty value are treated as omitted, and unknown
 * fields are ignored (RFC 6749, section 3.2).
 * @throws HttpError, sent as `invalid_request`, for a malformed request
 */
async function readFields(c: Context): Promise<ReadonlyMap<string, string>> {
  const mediaType = c.req.header('content-type')?.split(';')[0]?.trim().toLowerCase()
  let given: readonly (readonly [string, unknown])[]
  if (mediaType === 'application/x-www-form-urlencoded') given = [...new URLSearchParams(await c.req.text())]
  else if (mediaType === 'application/json') given = Object.entries(await readBody(c))
  else throw tokenError('invalid_request', 'the body must be form-encoded or JSON')

  const fields = new Map<string, string>()
  for (const [name, value] of given) {
    if (value === null || value === '' || !PARAMETER.test(name)) continue
    if (typeof value !== 'string') throw tokenError('invalid_request', `${name} is not a text`)
    if (fields.has(name)) throw tokenError('invalid_request', `${name} is given twice`)
    fields.set(name, value)
  }
  return fields
}

/**
 * Checks that the Authorization header of an API request has the API key or a valid access token as its bearer token.
 * @throws HttpError 401 with WWW-Authenticate (RFC 6750, section 3)
 */
export function checkCredential(oauth: OAuthServer, apiKey: string, authorization: string | undefined): void {
  const token = /^Bearer +([\x21-\x7e]+)$/i.exec(authorization ?? '')?.[1]
  if (token === undefined)
    throw new HttpError(401, 'missing_credential', 'Send an API key or an access token as a bearer token.', {
      'WWW-Authenticate': 'Bearer realm="sandbox"',
    })
  if (token === apiKey || oauth.isValid(token)) return
  const message = 'The API key or access token is invalid, has expired or was revoked.'
  throw new HttpError(401, 'invalid_credential', message, {
    'WWW-Authenticate': 'Bearer realm="sandbox", error="invalid_token"',
  })
}
