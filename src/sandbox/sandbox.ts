import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { getRequestListener } from '@hono/node-server'
import type { Hono } from 'hono'
import { generateKeyPair } from 'jose'
import { type Claims, createClaims } from './claims.ts'
import { createVirtualClock } from './clock.ts'
import { addControlRoutes } from './control.ts'
import { lookUpTxt, startDnsServer } from './dns-server.ts'
import { addFaults } from './faults.ts'
import { CONTROL_PREFIX, createApp, type Env, readJson } from './http.ts'
import { addListRoutes } from './lists.ts'
import { publishRecord } from './mistakes.ts'
import { addTokenRoutes, CLIENTS, checkCredential, createOAuth, randomToken } from './oauth.ts'
import { addAuthorizeRoutes, addDnsPage } from './pages.ts'
import { createZones, type Zones } from './zones.ts'

const LOOPBACK = '127.0.0.1'

export interface SandboxOptions {
  /** Prints a diagnostic line for the person who runs the sandbox. */
  readonly log: (line: string) => void
  /** Loopback ports; 0 or nothing for a free one. */
  readonly port?: number | undefined
  readonly dnsPort?: number | undefined
  /** No consent page: every sign-in is approved at once. */
  readonly autoApprove?: boolean | undefined
  /** The record of each new claim is published at once. */
  readonly autoPublish?: boolean | undefined
  /** How many contact imports and (revoked and active) grants there are from the start. */
  readonly imports?: number | undefined
  readonly grants?: number | undefined
  /** Default: 900. */
  readonly accessTokenSeconds?: number | undefined
  /** Between the steps of a claim that verification was asked for, in virtual seconds. Default: 0.25. */
  readonly stepSeconds?: number | undefined
}

/** A running sandbox. */
export type Sandbox = Awaited<ReturnType<typeof startSandbox>>

/**
 * Starts the local service: HTTP and DNS on loopback, all state in memory. It shares no code with the client, so that a
 * mistake of either shows.
 * @throws the system's error if a port is not available
 */
export async function startSandbox(options: SandboxOptions) {
  const report = (error: unknown) => {
    // A client that disconnects while sending its request is not an error here.
    if (error instanceof Error && 'code' in error && error.code === 'ECONNRESET') return
    options.log(`sandbox: ${error instanceof Error ? error.stack : String(error)}`)
  }
  const { privateKey: key } = await generateKeyPair('ES256')
  const zones = createZones()
  const dns = await startDnsServer(zones, options.dnsPort ?? 0)
  // The service needs its own address, so it is built when the port is known.
  let app: Hono<Env> | undefined
  const server = createServer(
    getRequestListener((request, env) => app?.fetch(request, env) ?? new Response(null, { status: 503 }), {
      overrideGlobalObjects: false,
    }),
  )
  await new Promise<void>((done, fail) => {
    server.once('error', fail)
    server.listen(options.port ?? 0, LOOPBACK, done)
  }).catch(async (error: unknown) => {
    await dns.close()
    throw error
  })
  const { port } = server.address() as AddressInfo
  const issuer = `http://${LOOPBACK}:${port}`
  const apiKey = `sandbox_key_${randomToken(24)}`
  const clock = createVirtualClock(report)
  const { now } = clock
  const oauth = createOAuth({ now, issuer, key, accessTokenSeconds: options.accessTokenSeconds ?? 900 })
  const claims = createClaims({
    clock,
    stepMs: (options.stepSeconds ?? 0.25) * 1000,
    lookUp: (name) => lookUpTxt(dns.port, name),
  })
  const requests = { total: 0, by_route: {} as Record<string, number> }

  app = createApp(port, report)
  app.use(async (c, next) => {
    if (!c.req.path.startsWith(CONTROL_PREFIX)) {
      const path = c.req.path.replace(/^\/(contacts\/imports|domains)\/(?!claim$)[^/]+/, '/$1/{id}')
      const route = `${c.req.method} ${path}`
      requests.total += 1
      requests.by_route[route] = (requests.by_route[route] ?? 0) + 1
    }
    await next()
  })
  addFaults(app)
  addTokenRoutes(app, oauth, issuer)
  addAuthorizeRoutes(app, { oauth, now, issuer, autoApprove: options.autoApprove ?? false })
  for (const path of ['/oauth/grants', '/contacts/*', '/domains/*']) {
    app.use(path, async (c, next) => {
      checkCredential(oauth, apiKey, c.req.header('authorization'))
      await next()
    })
  }
  addListRoutes(app, {
    imports: options.imports ?? 25,
    grants: options.grants ?? 3,
    issued: oauth.grants,
    now,
  })
  addClaimRoutes(app, claims, zones, options.autoPublish ?? false)
  addControlRoutes(app, { clock, oauth, claims, zones, requests })
  addDnsPage(app, claims, zones)

  let closed: Promise<unknown> | undefined
  return {
    baseUrl: issuer,
    /** By UDP and TCP. */
    dns: `${LOOPBACK}:${dns.port}`,
    clientId: CLIENTS.default.id,
    apiKey,
    /** Settles when both servers are closed and no timer is left. */
    async close(): Promise<void> {
      clock.close()
      closed ??= Promise.all([
        dns.close(),
        new Promise<void>((done) => {
          server.close(() => done())
          server.closeAllConnections()
        }),
      ])
      await closed
    },
  }
}

/** Claims (interface, sections 4.5 to 4.7). */
function addClaimRoutes(app: Hono<Env>, claims: Claims, zones: Zones, autoPublish: boolean): void {
  app.post('/domains/claim', async (c) => {
    const { claim, isNew } = claims.create(await readJson(c))
    zones.ensureZone(claim.name)
    if (isNew && autoPublish) publishRecord(zones, claim.record, 'none')
    return c.json(claim, isNew ? 201 : 200)
  })
  app.post('/domains/:domain_id/claim/verify', (c) => c.json(claims.verify(c.req.param('domain_id'))))
  app.get('/domains/:domain_id/claim', (c) => c.json(claims.get(c.req.param('domain_id'))))
}
