import type { Context, Hono } from 'hono'
import { html } from 'hono/html'
import type { Approved } from './authorization.ts'
import { readText } from './bodies.ts'
import { acceptsRedirect, type OAuthClient } from './clients.ts'
import { sendPage } from './page.ts'
import { randomToken } from './runtime.ts'
import type { SandboxState } from './sandbox-state.ts'

const TICKET_LIFETIME_MS = 10 * 60_000
const ACCOUNT = 'owner@sandbox.example (Sandbox Team)'

const SCOPE_TEXTS: Readonly<Record<string, string>> = {
  'emails:send': 'Send e-mail in your name',
  'contacts:read': 'See your contacts and imports',
  'contacts:write': 'Change your contacts and imports',
  'domains:read': 'See your domains and claims',
  'domains:write': 'Claim and change domains',
  'grants:read': 'See which programs have access',
}

interface Pending extends Approved {
  readonly state: string | undefined
  readonly expires: number
}

/** GET and POST /oauth/authorize: the authorization code grant (RFC 6749, section 4.1) with PKCE (RFC 7636). */
export function addAuthorizeRoutes(app: Hono, sandbox: SandboxState): void {
  /** By ticket: the page's form carries one, so that no other page can approve in the person's name. */
  const pending = new Map<string, Pending>()

  app.get('/oauth/authorize', (c) => {
    const query = new URL(c.req.url).searchParams
    const trusted = findRedirect(sandbox, query)
    if ('problem' in trusted) return refuse(c, trusted.problem)
    const { client, redirectUri } = trusted
    const state = query.get('state') ?? undefined
    const reply = (fields: Record<string, string>) =>
      c.redirect(redirectTo(sandbox, redirectUri, state, fields), 302)

    const request = readRequest(query, client)
    if ('error' in request) return reply(request)
    const approved: Approved = { client, redirectUri, ...request }
    if (sandbox.autoApprove) return reply({ code: sandbox.authorization.issueCode(approved) })

    const now = sandbox.clock.now()
    for (const [ticket, { expires }] of pending) if (expires <= now) pending.delete(ticket)
    const ticket = randomToken(sandbox.runtime.random, 24)
    pending.set(ticket, { ...approved, state, expires: now + TICKET_LIFETIME_MS })
    return consentPage(c, approved, ticket)
  })

  app.post('/oauth/authorize', async (c) => {
    const form = new URLSearchParams(await readText(c))
    const ticket = form.get('ticket') ?? ''
    const request = pending.get(ticket)
    pending.delete(ticket)
    if (request === undefined || request.expires <= sandbox.clock.now()) {
      return refuse(
        c,
        'This request was answered already, or it is too old. Start again where you came from.',
      )
    }
    const fields: Record<string, string> =
      form.get('decision') === 'approve'
        ? { code: sandbox.authorization.issueCode(request) }
        : { error: 'access_denied', error_description: 'the request was denied' }
    return c.redirect(redirectTo(sandbox, request.redirectUri, request.state, fields), 303)
  })
}

/**
 * The client and its redirect URI. If either cannot be trusted, there is no redirect (RFC 6749, section 4.1.2.1).
 */
function findRedirect(
  sandbox: SandboxState,
  query: URLSearchParams,
): { client: OAuthClient; redirectUri: string } | { problem: string } {
  const [clientId, ...otherIds] = query.getAll('client_id')
  const [redirectUri, ...otherUris] = query.getAll('redirect_uri')
  if (clientId === undefined || otherIds.length > 0)
    return { problem: 'The request does not name one client.' }
  const client = sandbox.clients.get(clientId)
  if (client === undefined) return { problem: 'No client is registered under this client_id.' }
  if (client.disabled) return { problem: 'This client has been disabled.' }
  if (redirectUri === undefined || otherUris.length > 0) {
    return { problem: 'The request does not name one redirect_uri.' }
  }
  if (!acceptsRedirect(client, redirectUri)) {
    return { problem: 'The redirect_uri is not registered for this client.' }
  }
  return { client, redirectUri }
}

function readRequest(
  query: URLSearchParams,
  client: OAuthClient,
): Pick<Approved, 'scopes' | 'resource' | 'codeChallenge'> | { error: string; error_description: string } {
  const bad = (error_description: string, error = 'invalid_request') => ({ error, error_description })
  for (const name of new Set(query.keys())) {
    if (name !== 'resource' && query.getAll(name).length > 1) return bad('a parameter is given twice')
  }
  if (!query.get('response_type')) return bad('response_type is missing')
  if (query.get('response_type') !== 'code') {
    return bad('response_type must be code', 'unsupported_response_type')
  }
  if (!client.grantTypes.includes('authorization_code')) {
    return bad('the client is not registered for authorization_code', 'unauthorized_client')
  }
  const codeChallenge = query.get('code_challenge') ?? ''
  if (codeChallenge === '') return bad('code_challenge is missing: PKCE is mandatory')
  if (query.get('code_challenge_method') !== 'S256') return bad('code_challenge_method must be S256')
  if (!/^[A-Za-z0-9_-]{43}$/.test(codeChallenge)) return bad('code_challenge is not a S256 challenge')
  const asked = (query.get('scope') ?? '').split(' ').filter((scope) => scope !== '')
  if (asked.some((scope) => !client.scopes.includes(scope))) {
    return bad(`the client may ask for ${client.scopes.join(' ')}`, 'invalid_scope')
  }
  const [resource, ...others] = query.getAll('resource')
  if (others.length > 0 || (resource !== undefined && !isResource(resource))) {
    return bad('resource must be one absolute address without a fragment', 'invalid_target')
  }
  const scopes = asked.length === 0 ? client.scopes : [...new Set(asked)]
  return { scopes, resource: resource ?? null, codeChallenge }
}

/** RFC 8707, section 2. */
function isResource(text: string): boolean {
  return URL.canParse(text) && !text.includes('#')
}

function redirectTo(
  sandbox: SandboxState,
  redirectUri: string,
  state: string | undefined,
  fields: Record<string, string>,
): string {
  const url = new URL(redirectUri)
  for (const [name, value] of Object.entries(fields)) url.searchParams.set(name, value)
  if (state !== undefined) url.searchParams.set('state', state)
  if (sandbox.iss) url.searchParams.set('iss', sandbox.baseUrl)
  return url.href
}

function refuse(c: Context, problem: string): Response | Promise<Response> {
  return sendPage(c, 400, {
    title: 'This sign-in cannot go on',
    narrow: true,
    body: html`<p class="name">mailclaim sandbox</p>
<div class="card"><h1>This sign-in cannot go on</h1><p>${problem}</p></div>`,
  })
}

function consentPage(c: Context, { client, scopes, redirectUri, resource }: Approved, ticket: string) {
  const { origin, hostname } = new URL(redirectUri)
  return sendPage(c, 200, {
    title: `Allow ${client.name}?`,
    narrow: true,
    // Browsers apply form-action to the redirect that follows the form too; it cannot contain IPv6 addresses.
    formTargets: [hostname.startsWith('[') ? 'http:' : origin],
    body: html`<p class="name">mailclaim sandbox</p>
<div class="card">
<h1>Allow <bdi>${client.name}</bdi> to use your account?</h1>
<dl>
<dt>Account</dt><dd>${ACCOUNT}</dd>
<dt>Program</dt><dd><bdi>${client.name}</bdi> <span class="quiet">(client ${client.id})</span></dd>
<dt>It will be able to</dt><dd><ul>${scopes.map(
      (scope) => html`<li>${SCOPE_TEXTS[scope] ?? 'Use this scope'} <code>${scope}</code></li>`,
    )}</ul></dd>
${resource === null ? '' : html`<dt>For the resource</dt><dd><code>${resource}</code></dd>`}
<dt>Afterwards you return to</dt><dd><code>${redirectUri}</code></dd>
</dl>
<form method="post" action="/oauth/authorize">
<input type="hidden" name="ticket" value="${ticket}">
<div class="choices">
<button class="primary" name="decision" value="approve">Approve</button>
<button name="decision" value="deny">Deny</button>
</div>
</form>
</div>
<p class="quiet">This is a local sandbox: no real account, no real e-mail.</p>`,
  })
}
