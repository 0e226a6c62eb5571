import type { Hono } from 'hono'
import { readObject } from './bodies.ts'
import { readScenario } from './claim-scenarios.ts'
import { GRANT_TYPES, type OAuthClient, SCOPES } from './clients.ts'
import { notFound, validationError } from './problems.ts'
import { readRate } from './rate-limit.ts'
import { randomUuid } from './runtime.ts'
import type { SandboxState } from './sandbox-state.ts'
import { timestamp } from './virtual-clock.ts'

/** The control plane below /_sandbox: clock, state, faults, clients, grants and claim outcomes. */
export function addControlRoutes(app: Hono, sandbox: SandboxState): void {
  app.post('/_sandbox/clock', async (c) => {
    const seconds = (await readObject(c))['advance_seconds']
    if (typeof seconds !== 'number' || !Number.isFinite(seconds) || seconds < 0 || seconds > 1e10) {
      throw validationError('`advance_seconds` must be a number of 0 or more.')
    }
    await sandbox.clock.advance(seconds * 1000)
    return c.json({ now: timestamp(sandbox.clock.now()) })
  })

  app.get('/_sandbox/state', (c) => c.json(describe(sandbox)))
  app.get('/_sandbox/requests', (c) => c.json({ requests: sandbox.requestLog.recent() }))

  app.get('/_sandbox/faults', (c) => c.json({ faults: sandbox.faults.list() }))
  app.post('/_sandbox/faults', async (c) => {
    const fault = sandbox.faults.add(await readObject(c))
    return c.json(fault, 201)
  })
  app.delete('/_sandbox/faults', (c) => {
    sandbox.faults.clear()
    return c.body(null, 204)
  })

  app.put('/_sandbox/rate-limit', async (c) => {
    sandbox.rateLimit.rate = readRate(await readObject(c))
    return c.json(sandbox.rateLimit.rate ?? { requests: null })
  })

  app.get('/_sandbox/claims', (c) => c.json({ claims: sandbox.claims.list() }))
  app.post('/_sandbox/claims/:key/outcome', async (c) => {
    const outcome = readScenario(await readObject(c))
    const claim = sandbox.claims.settle(c.req.param('key').toLowerCase(), outcome)
    return claim === undefined ? c.json({ kept_for_next_claim: outcome }, 202) : c.json(claim)
  })

  app.get('/_sandbox/clients', (c) => c.json({ clients: [...sandbox.clients.values()] }))
  app.post('/_sandbox/clients', async (c) => {
    const client = readClient(await readObject(c), randomUuid(sandbox.runtime.random))
    sandbox.clients.set(client.id, client)
    return c.json(client, 201)
  })

  app.post('/_sandbox/sessions', async (c) => {
    const fields = await readObject(c)
    const client = sandbox.clients.get(
      texts(fields, 'client_id')?.[0] ?? [...sandbox.clients.keys()][0] ?? '',
    )
    if (client === undefined) throw notFound('There is no such client.')
    const scopes = texts(fields, 'scopes') ?? client.scopes
    const resource = texts(fields, 'resource')?.[0] ?? null
    return c.json(await sandbox.authorization.startSession({ client, scopes, resource }), 201)
  })

  app.post('/_sandbox/grants/:id/revoke', async (c) => {
    const reason = texts(await readObject(c), 'reason')?.[0] ?? 'revoked_from_api'
    const id = c.req.param('id')
    const grant = sandbox.grants.find(id)
    if (id !== 'all' && grant === undefined) throw notFound('There is no such grant.')
    for (const one of grant === undefined ? sandbox.grants.issued() : [grant]) {
      sandbox.authorization.revoke(one, reason)
    }
    return c.body(null, 204)
  })
}

function describe(sandbox: SandboxState): object {
  const { authorization, grants, claims, dns, requestLog, faults } = sandbox
  const issued = grants.issued()
  const byStatus: Record<string, number> = {}
  for (const { status } of claims.list()) byStatus[status] = (byStatus[status] ?? 0) + 1
  return {
    now: timestamp(sandbox.clock.now()),
    started_at: timestamp(sandbox.startedAt),
    codes: { issued: authorization.counts.codesIssued, redeemed: authorization.counts.codesRedeemed },
    refreshes: authorization.counts.refreshes,
    reuse_detections: authorization.counts.reuseDetections,
    grants_revoked: authorization.counts.grantsRevoked,
    grants: {
      issued: issued.length,
      active: issued.filter((grant) => grant.revokedAt === undefined).length,
      revoked: issued.filter((grant) => grant.revokedAt !== undefined).length,
      seeded: grants.seeded,
    },
    imports: sandbox.imports.length,
    claims: { total: claims.list().length, by_status: byStatus },
    requests: {
      total: requestLog.total,
      by_route: requestLog.byRoute,
      rate_limited: sandbox.rateLimit.refused,
    },
    dns: { port: dns.port, ...dns.counts },
    faults: {
      active: faults.list().filter((fault) => fault.left > 0).length,
      struck: faults.list().reduce((sum, fault) => sum + fault.struck, 0),
    },
  }
}

/** A text or a list of texts. @throws Problem 422. */
function texts(fields: Record<string, unknown>, name: string): string[] | undefined {
  const value = fields[name]
  if (value === undefined || value === null) return undefined
  const list: unknown[] = Array.isArray(value) ? value : [value]
  return list.map((item) => {
    if (typeof item === 'string') return item
    throw validationError(`\`${name}\` must be a text or a list of texts.`)
  })
}

function readClient(fields: Record<string, unknown>, id: string): OAuthClient {
  const grantTypes = texts(fields, 'grant_types') ?? GRANT_TYPES
  const redirectUris = texts(fields, 'redirect_uris') ?? ['http://127.0.0.1/callback']
  if (!redirectUris.every((uri) => URL.canParse(uri)))
    throw validationError('A redirect URI is not an address.')
  return {
    id,
    name: texts(fields, 'name')?.[0] ?? 'Another Tool',
    logoUri: texts(fields, 'logo_uri')?.[0] ?? 'https://logos.example/other.png',
    grantTypes: GRANT_TYPES.filter((type) => grantTypes.includes(type)),
    redirectUris,
    scopes: texts(fields, 'scopes') ?? SCOPES,
    disabled: fields['disabled'] === true,
  }
}
