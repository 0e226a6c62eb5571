/** A registered OAuth client. */
export interface OAuthClient {
  readonly id: string
  readonly name: string
  readonly logoUri: string
  readonly grantTypes: readonly GrantType[]
  /**
   * A loopback address without a port stands for any port at request time (RFC 8252, section 7.3); every other
   * registration has to be met to the letter.
   */
  readonly redirectUris: readonly string[]
  readonly scopes: readonly string[]
  readonly disabled: boolean
}

export type GrantType = 'authorization_code' | 'refresh_token'
export const GRANT_TYPES: readonly GrantType[] = ['authorization_code', 'refresh_token']

/** The scopes of the sandbox. Only `emails:send` is known from the interface. */
export const SCOPES: readonly string[] = [
  'emails:send',
  'contacts:read',
  'contacts:write',
  'domains:read',
  'domains:write',
  'grants:read',
]

const LOOPBACK_CALLBACKS = ['http://127.0.0.1/callback', 'http://[::1]/callback', 'http://localhost/callback']

function seeded(id: string, name: string, rest: Partial<OAuthClient> = {}): OAuthClient {
  return {
    id,
    name,
    logoUri: `https://${name.toLowerCase().replaceAll(/[^a-z]+/g, '-')}.example/logo.png`,
    grantTypes: GRANT_TYPES,
    redirectUris: LOOPBACK_CALLBACKS,
    scopes: SCOPES,
    disabled: false,
    ...rest,
  }
}

/** The clients that exist from the start, one for each row of the interface that needs one. */
export const SEEDED_CLIENTS = {
  normal: seeded('4f1c7b52-6f0e-4a53-9d2b-5c0a1de5c001', 'mailclaim'),
  disabled: seeded('4f1c7b52-6f0e-4a53-9d2b-5c0a1de5c002', 'Retired Tool', { disabled: true }),
  codeOnly: seeded('4f1c7b52-6f0e-4a53-9d2b-5c0a1de5c003', 'One-Time Tool', {
    grantTypes: ['authorization_code'],
  }),
  refreshOnly: seeded('4f1c7b52-6f0e-4a53-9d2b-5c0a1de5c004', 'Background Tool', {
    grantTypes: ['refresh_token'],
  }),
  fixedRedirect: seeded('4f1c7b52-6f0e-4a53-9d2b-5c0a1de5c005', 'Fixed Port Tool', {
    redirectUris: ['http://127.0.0.1:47821/callback'],
  }),
} as const

/** Whether a client may be sent back to this address. */
export function acceptsRedirect(client: OAuthClient, redirectUri: string): boolean {
  if (client.redirectUris.includes(redirectUri)) return true
  // The registered form, with the port of the request put in, has to give the very text that was asked for.
  return client.redirectUris.some((registered) => {
    const match = /^(http:\/\/(?:127\.0\.0\.1|\[::1\]|localhost))(\/.*)?$/.exec(registered)
    if (match === null) return false
    const [, origin = '', path = ''] = match
    const port = /^:([1-9][0-9]{0,4})(?=\/|$)/.exec(redirectUri.slice(origin.length))
    return port !== null && Number(port[1]) <= 65_535 && redirectUri === `${origin}:${port[1]}${path}`
  })
}
