import type { Context, MiddlewareHandler } from 'hono'
import { html, raw } from 'hono/html'
import { NONCE, secureHeaders } from 'hono/secure-headers'
import type { ClaimJson, ClaimStore } from './claims.ts'
import type { HttpApp } from './http.ts'
import { MISTAKES, publishRecord } from './mistakes.ts'
import {
  type AuthorizationRequest,
  createRandomToken,
  findClient,
  isRegisteredRedirectUri,
  type OAuthClient,
  type OAuthServer,
  SUPPORTED_SCOPES,
} from './oauth.ts'
import type { ZoneStore } from './zones.ts'

const STYLE = `
:root{color-scheme:light dark;--ink:#1c2024;--quiet:#51585f;--paper:#f4f6f7;--card:#fff;--line:#7d868d;--mark:#0b6e4f;--on-mark:#fff}
@media(prefers-color-scheme:dark){:root{--ink:#eceef0;--quiet:#b0b8be;--paper:#111315;--card:#1a1d1f;--line:#7b848b;--mark:#5fd3a8;--on-mark:#06251a}}
*{box-sizing:border-box}
body{margin:0;background:var(--paper);color:var(--ink);font:1rem/1.5 system-ui,sans-serif}
main{width:min(36rem,100%);margin:0 auto;padding:1.5rem 1rem}
section{margin:1rem 0;padding:1.25rem;border:1px solid var(--line);border-radius:.75rem;background:var(--card)}
h1,h2{margin:0 0 .5rem;line-height:1.25;overflow-wrap:anywhere;font-size:1.5rem}h2{font-size:1.2rem}
p,dl,ul{margin:0 0 .75rem}p,dd,li{overflow-wrap:anywhere}
.name{font-weight:600;color:var(--mark)}.quiet{color:var(--quiet)}
dt{font-weight:600}dd{margin:0 0 .5rem}
code{font-family:ui-monospace,monospace;font-size:.95em;overflow-wrap:anywhere;white-space:pre-wrap}
form{margin:0;display:grid;gap:.75rem;grid-template-columns:repeat(auto-fit,minmax(min(100%,10rem),1fr));align-items:end}
label{display:block;font-weight:600}
select,button{width:100%;min-height:2.75rem;padding:.5rem .75rem;border:1px solid var(--line);border-radius:.5rem;background:var(--card);color:var(--ink);font:inherit}
button{cursor:pointer;font-weight:600}button.primary{background:var(--mark);border-color:var(--mark);color:var(--on-mark)}
:focus-visible{outline:3px solid var(--mark);outline-offset:2px}
`

/** Returns middleware that keeps a page from loading resources, running scripts, being framed and being cached. */
function pageHeaders(): MiddlewareHandler {
  const headers = secureHeaders({
    contentSecurityPolicy: {
      defaultSrc: ["'none'"],
      styleSrc: [NONCE],
      // Allow any `http:` address: some browsers apply form-action also to the redirect after the form, to the client's loopback
      // listener, and a source expression can't be an IPv6 address such as [::1].
      formAction: ["'self'", 'http:'],
      baseUri: ["'none'"],
      frameAncestors: ["'none'"],
    },
    xFrameOptions: 'DENY',
    referrerPolicy: 'same-origin',
    strictTransportSecurity: false,
  })
  return (c, next) => {
    c.header('Cache-Control', 'no-store')
    return headers(c, next)
  }
}

type Html = ReturnType<typeof html>

function sendPage(c: Context, status: 200 | 400, title: string, body: Html) {
  return c.html(
    html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title} · mailclaim sandbox</title>
<style nonce="${c.get('secureHeadersNonce')}">${raw(STYLE)}</style>
</head>
<body>
<main>
<p class="name">mailclaim sandbox</p>
${body}
</main>
</body>
</html>
`,
    status,
  )
}

/** Redirect URI of an authorization response, and the request's `state` to return with it (RFC 6749, section 4.1.2). */
type RedirectTarget = Pick<AuthorizationRequest, 'redirectUri'> & { readonly state: string | undefined }

const TICKET_LIFETIME_MS = 10 * 60_000

/**
 * Adds the authorization endpoint, GET and POST /oauth/authorize (RFC 6749, section 3.1), which requires PKCE (RFC 7636).
 *
 * @param autoApprove whether to approve every valid request at once, without the consent page
 */
export function addAuthorizeRoutes(app: HttpApp, oauth: OAuthServer, autoApprove: boolean): void {
  const { now, issuer } = oauth
  /**
   * Requests that wait for consent, by the random ticket in the form of their consent page. Another site's form doesn't know the
   * ticket, so it can't approve a request (CSRF).
   */
  const pending = new Map<string, AuthorizationRequest & RedirectTarget & { expires: number }>()

  /** Returns the URL of the authorization response (RFC 6749, section 4.1.2), with `iss` (RFC 9207). */
  function redirectTo({ redirectUri, state }: RedirectTarget, fields: Record<string, string>): string {
    const url = new URL(redirectUri)
    for (const [name, value] of Object.entries(fields)) url.searchParams.set(name, value)
    if (state !== undefined) url.searchParams.set('state', state)
    url.searchParams.set('iss', issuer)
    return url.href
  }

  app.use('/oauth/authorize', pageHeaders())

  app.get('/oauth/authorize', (c) => {
    const query = new URL(c.req.url).searchParams
    const trusted = readRedirect(query)
    // Don't redirect if the client or redirect URI isn't registered (RFC 6749, section 4.1.2.1): this would be an open redirector.
    if (typeof trusted === 'string') return refusalPage(c, trusted)
    const target = { ...trusted, state: query.get('state') ?? undefined }
    const request = readRequest(query)
    if ('error' in request) return c.redirect(redirectTo(target, request))
    const approved = { ...target, ...request }
    if (autoApprove) return c.redirect(redirectTo(target, { code: oauth.issueCode(approved) }))

    const ticket = createRandomToken(24)
    pending.set(ticket, { ...approved, expires: now() + TICKET_LIFETIME_MS })
    return consentPage(c, approved, ticket)
  })

  app.post('/oauth/authorize', async (c) => {
    const form = new URLSearchParams(await c.req.text())
    const ticket = form.get('ticket') ?? ''
    const request = pending.get(ticket)
    pending.delete(ticket)
    if (request === undefined || request.expires <= now())
      return refusalPage(
        c,
        'This request was answered already, or it is too old. Start again where you came from.',
      )
    const fields: Record<string, string> =
      form.get('decision') === 'approve'
        ? { code: oauth.issueCode(request) }
        : { error: 'access_denied', error_description: 'the request was denied' }
    return c.redirect(redirectTo(request, fields), 303)
  })
}

/** Returns the registered client and its redirect URI, or the reason why the request is refused without a redirect. */
function readRedirect(query: URLSearchParams): { client: OAuthClient; redirectUri: string } | string {
  const [clientId = '', redirectUri = ''] = ['client_id', 'redirect_uri'].map((name) => {
    const [value, ...others] = query.getAll(name)
    return others.length === 0 ? value : undefined
  })
  const client = findClient(clientId)
  if (client === undefined || client.disabled) return 'No client is registered under this client_id.'
  if (!isRegisteredRedirectUri(redirectUri)) return 'The redirect_uri is not registered for this client.'
  return { client, redirectUri }
}

/** Returns an authorization request's scopes, resource and PKCE challenge, or an error (RFC 6749, section 4.1.2.1). */
function readRequest(
  query: URLSearchParams,
): Omit<AuthorizationRequest, 'client' | 'redirectUri'> | { error: string; error_description: string } {
  const invalid = (error_description: string, error = 'invalid_request') => ({ error, error_description })
  for (const name of query.keys())
    if (name !== 'resource' && query.getAll(name).length > 1) return invalid('a parameter is given twice')
  if (!query.get('response_type')) return invalid('response_type is missing')
  if (query.get('response_type') !== 'code')
    return invalid('response_type must be code', 'unsupported_response_type')
  const codeChallenge = query.get('code_challenge') ?? ''
  if (codeChallenge === '') return invalid('code_challenge is missing: PKCE is mandatory')
  if (query.get('code_challenge_method') !== 'S256') return invalid('code_challenge_method must be S256')
  if (!/^[A-Za-z0-9_-]{43}$/.test(codeChallenge)) return invalid('code_challenge is not a S256 challenge')
  const asked = [...new Set((query.get('scope') ?? '').split(' '))].filter((scope) => scope !== '')
  if (asked.some((scope) => !SUPPORTED_SCOPES.includes(scope)))
    return invalid(`the client may ask for ${SUPPORTED_SCOPES.join(' ')}`, 'invalid_scope')
  const [resource = null, ...others] = query.getAll('resource')
  // Refuse more than one resource indicator, and one that isn't an absolute URI without a fragment (RFC 8707, section 2).
  if (others.length > 0 || (resource !== null && (!URL.canParse(resource) || resource.includes('#'))))
    return invalid('resource must be one absolute address without a fragment', 'invalid_target')
  return { scopes: asked.length === 0 ? SUPPORTED_SCOPES : asked, resource, codeChallenge }
}

function refusalPage(c: Context, problem: string) {
  const title = 'This sign-in cannot go on'
  return sendPage(c, 400, title, html`<section><h1>${title}</h1><p>${problem}</p></section>`)
}

function consentPage(c: Context, request: AuthorizationRequest, ticket: string) {
  const { client, scopes, redirectUri, resource } = request
  return sendPage(
    c,
    200,
    `Allow ${client.name}?`,
    html`<section>
<h1>Allow <bdi>${client.name}</bdi> to use your account?</h1>
<dl>
<dt>Account</dt><dd>owner@sandbox.example (Sandbox Team)</dd>
<dt>Program</dt><dd><bdi>${client.name}</bdi> <span class="quiet">(client ${client.id})</span></dd>
<dt>It may use</dt><dd><ul>${scopes.map((scope) => html`<li><code>${scope}</code></li>`)}</ul></dd>
${resource === null ? '' : html`<dt>For the resource</dt><dd><code>${resource}</code></dd>`}
<dt>Afterwards you return to</dt><dd><code>${redirectUri}</code></dd>
</dl>
<form method="post" action="/oauth/authorize">
<input type="hidden" name="ticket" value="${ticket}">
<button class="primary" name="decision" value="approve">Approve</button>
<button name="decision" value="deny">Deny</button>
</form>
</section>
<p class="quiet">This is a local sandbox: no real account, no real e-mail.</p>`,
  )
}

const DNS_PAGE = '/_sandbox/dns'

/** Adds the page of a simulated DNS provider, where users publish a claim's record, correctly or with a mistake. */
export function addDnsProviderPage(app: HttpApp, claims: ClaimStore, zones: ZoneStore): void {
  app.use(DNS_PAGE, pageHeaders())

  app.get(DNS_PAGE, (c) => dnsPage(c, claims))

  app.post(DNS_PAGE, async (c) => {
    const form = new URLSearchParams(await c.req.text())
    const { record } = claims.find(form.get('claim') ?? '')
    publishRecord(zones, record, form.get('mistake'))
    return c.redirect(`${DNS_PAGE}?done`, 303)
  })
}

function dnsPage(c: Context, claims: ClaimStore) {
  const pending = claims.list().filter(({ status }) => status === 'pending')
  const isDone = c.req.query('done') !== undefined
  return sendPage(
    c,
    200,
    'DNS',
    html`<h1>Your DNS provider</h1>
<p>Publish the record of a claim here, or plant a usual mistake. It takes effect at once.</p>
${isDone ? html`<p class="name" role="status">Published. See what the check says now.</p>` : ''}
${pending.length === 0 ? html`<p>No claim is pending. Create one with <code>mailclaim claims create example.com</code>.</p>` : pending.map(claimForm)}`,
  )
}

function claimForm({ name, domain_id, record }: ClaimJson, index: number): Html {
  return html`<section aria-labelledby="claim-${index}">
<h2 id="claim-${index}">${name}</h2>
<p>TXT record at <code>${record.name}</code> with the value <code>${record.value}</code></p>
<form method="post" action="${DNS_PAGE}">
<input type="hidden" name="claim" value="${domain_id}">
<label>Publish, or plant a mistake, for ${name}
<select name="mistake">${Object.entries(MISTAKES).map(([id, [description]]) => html`<option value="${id}">${description}</option>`)}</select></label>
<button class="primary">Publish</button>
</form>
</section>`
}
