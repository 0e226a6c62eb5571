import type { Context, Hono } from 'hono'
import { readJson } from './bodies.ts'
import { readClaimRequest } from './claim-requests.ts'
import { MISTAKES, publish } from './mistakes.ts'
import { readPageRequest, single, takePage } from './paging.ts'
import { methodNotAllowed, notFound, Problem } from './problems.ts'
import type { SandboxState } from './sandbox-state.ts'

/** Grants, imports and claims (interface, sections 4.2 to 4.7). */
export function addApiRoutes(app: Hono, sandbox: SandboxState): void {
  const { grants, imports, claims } = sandbox

  for (const path of ['/oauth/grants', '/contacts/*', '/domains/*']) {
    app.use(path, async (c, next) => {
      await checkCredential(sandbox, c.req.header('authorization'))
      const limits = sandbox.rateLimit.take()
      await next()
      for (const [name, value] of Object.entries(limits)) c.header(name, value)
    })
  }

  app.get('/oauth/grants', (c) => c.json(takePage(grants.list, readPageRequest(queryOf(c), undefined))))

  app.get('/contacts/imports', (c) => {
    const query = queryOf(c)
    return c.json(takePage(imports.list(single(query, 'status')), readPageRequest(query, 10)))
  })

  app.get('/contacts/imports/:id', (c) => {
    const found = imports.get(c.req.param('id'))
    if (found === undefined) throw notFound('There is no contact import with this id.')
    return c.json(found)
  })

  app.post('/domains/claim', async (c) => {
    const { claim, isNew } = claims.create(readClaimRequest(await readJson(c)))
    if (isNew && sandbox.autoPublish) publish(sandbox, claim, MISTAKES[0])
    return c.json(claim, isNew ? 201 : 200)
  })

  app.post('/domains/:domain_id/claim/verify', (c) => c.json(claims.verify(c.req.param('domain_id'))))

  app.get('/domains/:domain_id/claim', (c) => c.json(claims.get(c.req.param('domain_id'))))

  const methods: readonly [string, string][] = [
    ['/oauth/grants', 'GET'],
    ['/contacts/imports', 'GET'],
    ['/contacts/imports/:id', 'GET'],
    ['/domains/claim', 'POST'],
    ['/domains/:domain_id/claim/verify', 'POST'],
    ['/domains/:domain_id/claim', 'GET'],
  ]
  for (const [path, allow] of methods) {
    app.all(path, () => {
      throw methodNotAllowed(allow)
    })
  }
}

/** @throws Problem 401 (RFC 6750, section 3). */
async function checkCredential(sandbox: SandboxState, header: string | undefined): Promise<void> {
  const token = /^Bearer +([\x21-\x7e]+)$/i.exec(header ?? '')?.[1]
  if (token === undefined) {
    throw new Problem(401, 'missing_credential', 'Send an API key or an access token as a bearer token.', {
      'WWW-Authenticate': 'Bearer realm="sandbox"',
    })
  }
  if (token === sandbox.apiKey) return
  const claims = await sandbox.tokens.read(token, sandbox.clock.now())
  const grant = claims === undefined ? undefined : sandbox.grants.find(claims.grantId)
  if (grant !== undefined && grant.revokedAt === undefined) return
  const message =
    grant === undefined
      ? 'The API key or access token is invalid or has expired.'
      : 'The grant of this access token has been revoked.'
  throw new Problem(401, 'invalid_credential', message, {
    'WWW-Authenticate': 'Bearer realm="sandbox", error="invalid_token"',
  })
}

function queryOf(c: Context): URLSearchParams {
  return new URL(c.req.url).searchParams
}
