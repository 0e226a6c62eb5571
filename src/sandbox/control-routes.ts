import type { Hono } from 'hono'
import { readObject } from './bodies.ts'
import { GRANT_TYPES, type OAuthClient, SCOPES } from './clients.ts'
import { randomUuid } from './effects.ts'
import { readOutcome } from './outcomes.ts'
import { notFound, validationError } from './problems.ts'
import { timestamp } from './virtual-clock.ts'
import type { World } from './world.ts'

/** The control plane below /_sandbox: clock, state, faults, clients, grants and claim outcomes. */
export function addControlRoutes(app: Hono, world: World): void {
  app.post('/_sandbox/clock', async (c) => {
    const seconds = (await readObject(c))['advance_seconds']
    if (typeof seconds !== 'number' || !Number.isFinite(seconds) || seconds < 0 || seconds > 1e10) {
      throw validationError('`advance_seconds` must be a number of 0 or more.')
    }
    await world.clock.advance(seconds * 1000)
    return c.json({ now: timestamp(world.clock.now()) })
  })

  app.get('/_sandbox/state', (c) => c.json(describe(world)))
  app.get('/_sandbox/requests', (c) => c.json({ requests: world.tally.recent() }))

  app.get('/_sandbox/faults', (c) => c.json({ faults: world.faults.list() }))
  app.post('/_sandbox/faults', async (c) => {
    const fault = world.faults.add(await readObject(c))
    return c.json(fault, 201)
  })
  app.delete('/_sandbox/faults', (c) => {
    world.faults.clear()
    return c.body(null, 204)
  })

  app.get('/_sandbox/claims', (c) => c.json({ claims: world.claims.list() }))
  app.post('/_sandbox/claims/:key/outcome', async (c) => {
    const outcome = readOutcome(await readObject(c))
    const claim = world.claims.settle(c.req.param('key').toLowerCase(), outcome)
    return claim === undefined ? c.json({ kept_for_next_claim: outcome }, 202) : c.json(claim)
  })

  app.get('/_sandbox/clients', (c) => c.json({ clients: [...world.clients.values()] }))
  app.post('/_sandbox/clients', async (c) => {
    const client = readClient(await readObject(c), randomUuid(world.effects.random))
    world.clients.set(client.id, client)
    return c.json(client, 201)
  })

  app.post('/_sandbox/sessions', async (c) => {
    const fields = await readObject(c)
    const client = world.clients.get(texts(fields, 'client_id')?.[0] ?? [...world.clients.keys()][0] ?? '')
    if (client === undefined) throw notFound('There is no such client.')
    const scopes = texts(fields, 'scopes') ?? client.scopes
    const resource = texts(fields, 'resource')?.[0] ?? null
    return c.json(await world.authorization.startSession({ client, scopes, resource }), 201)
  })

  app.post('/_sandbox/grants/:id/revoke', async (c) => {
    const reason = texts(await readObject(c), 'reason')?.[0] ?? 'revoked_from_api'
    const id = c.req.param('id')
    const grant = world.grants.find(id)
    if (id !== 'all' && grant === undefined) throw notFound('There is no such grant.')
    for (const one of grant === undefined ? world.grants.issued() : [grant]) {
      world.authorization.revoke(one, reason)
    }
    return c.body(null, 204)
  })
}

function describe(world: World): object {
  const { authorization, grants, claims, dns, tally, faults } = world
  const issued = grants.issued()
  const byStatus: Record<string, number> = {}
  for (const { status } of claims.list()) byStatus[status] = (byStatus[status] ?? 0) + 1
  return {
    now: timestamp(world.clock.now()),
    started_at: timestamp(world.startedAt),
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
    imports: world.imports.length,
    claims: { total: claims.list().length, by_status: byStatus },
    requests: { total: tally.total, by_route: tally.byRoute },
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
