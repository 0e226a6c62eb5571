import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { getRequestListener } from '@hono/node-server'
import { generateKeyPair } from 'jose'
import { type ClaimStore, createClaimStore } from './claims.ts'
import { createVirtualClock } from './clock.ts'
import { addControlRoutes } from './control.ts'
import { LOOPBACK, queryTxtValues, startDnsServer } from './dns-server.ts'
import { addFaultInjection } from './faults.ts'
import { CONTROL_PREFIX, createGuardedHttpApp, type HttpApp, parseJsonBody } from './http.ts'
import { addListRoutes } from './lists.ts'
import { publishRecord } from './mistakes.ts'
import {
  addTokenAndMetadataRoutes,
  checkCredential,
  createOAuthServer,
  createRandomToken,
  OAUTH_CLIENTS,
} from './oauth.ts'
import { addAuthorizeRoutes, addDnsProviderPage } from './pages.ts'
import { createZoneStore, type ZoneStore } from './zones.ts'

export interface SandboxOptions {
  /** Prints a diagnostic line for the user who runs the sandbox. */
  readonly log: (line: string) => void
  /** HTTP port on loopback; any free port if 0 or absent. */
  readonly port?: number | undefined
  /** DNS port on loopback, for UDP and TCP; any free port if 0 or absent. */
  readonly dnsPort?: number | undefined
  /** Whether to approve each valid sign-in request at once, without the consent page. */
  readonly autoApprove?: boolean | undefined
  /** Whether to publish the TXT record of each new claim at once. */
  readonly autoPublish?: boolean | undefined
  /** Number of sample contact imports. Default: 25. */
  readonly imports?: number | undefined
  /** Number of sample grants, of which every third is revoked. Default: 3. */
  readonly grants?: number | undefined
  /** Lifetime of access tokens in virtual seconds. Default: 900. */
  readonly accessTokenSeconds?: number | undefined
  /** Virtual seconds before each DNS lookup for a claim, and from its status `verified` to its final status. Default: 0.25. */
  readonly stepSeconds?: number | undefined
}

export type Sandbox = Awaited<ReturnType<typeof startSandbox>>

/**
 * Starts the local service: HTTP and DNS on loopback, with all state in memory. The sandbox imports no module of the client: a bug
 * in shared code would be on both sides, where tests of one against the other can't see it.
 * @throws the system's error if a port isn't available
 */
export async function startSandbox(options: SandboxOptions) {
  const report = (error: unknown) => {
    // Don't report a client that disconnects while sending a request: its user may have pressed Ctrl-C.
    if (error instanceof Error && 'code' in error && error.code === 'ECONNRESET') return
    options.log(`sandbox: ${error instanceof Error ? error.stack : String(error)}`)
  }
  const { privateKey: key } = await generateKeyPair('ES256')
  const zones = createZoneStore()
  const dns = await startDnsServer(zones, options.dnsPort ?? 0)
  // The application needs the port (issuer, Host check), which is known once the server listens. Until `app` is set, answer 503.
  let app: HttpApp | undefined
  const server = createServer(
    getRequestListener((request, env) => app?.fetch(request, env) ?? new Response(null, { status: 503 }), {
      overrideGlobalObjects: false,
    }),
  )
  await once(server.listen(options.port ?? 0, LOOPBACK), 'listening').catch(async (error: unknown) => {
    await dns.close()
    throw error
  })
  const { port } = server.address() as AddressInfo
  const issuer = `http://${LOOPBACK}:${port}`
  const apiKey = `sandbox_key_${createRandomToken(24)}`
  const clock = createVirtualClock(report)
  const accessTokenSeconds = options.accessTokenSeconds ?? 900
  const oauth = createOAuthServer({ clock, issuer, key, accessTokenSeconds })
  const claims = createClaimStore({
    clock,
    stepMs: (options.stepSeconds ?? 0.25) * 1000,
    lookUp: (name) => queryTxtValues(dns.port, name),
  })
  const requests = { total: 0, by_route: {} as Record<string, number> }

  app = createGuardedHttpApp(port, report)
  app.use(async (c, next) => {
    if (!c.req.path.startsWith(CONTROL_PREFIX)) {
      const path = c.req.path.replace(/^\/(contacts\/imports|domains)\/(?!claim$)[^/]+/, '/$1/{id}')
      const route = `${c.req.method} ${path}`
      requests.total += 1
      requests.by_route[route] = (requests.by_route[route] ?? 0) + 1
    }
    await next()
  })
  addFaultInjection(app)
  addTokenAndMetadataRoutes(app, oauth)
  addAuthorizeRoutes(app, oauth, options.autoApprove ?? false)
  for (const path of ['/oauth/grants', '/contacts/*', '/domains/*']) {
    app.use(path, async (c, next) => {
      checkCredential(oauth, apiKey, c.req.header('authorization'))
      await next()
    })
  }
  addListRoutes(app, oauth, options.imports ?? 25, options.grants ?? 3)
  addClaimRoutes(app, claims, zones, options.autoPublish ?? false)
  addControlRoutes(app, { clock, oauth, claims, zones, requests })
  addDnsProviderPage(app, claims, zones)

  let closed: Promise<unknown> | undefined
  return {
    baseUrl: issuer,
    /** The address of the DNS server, `host:port`, for UDP and TCP. */
    dns: `${LOOPBACK}:${dns.port}`,
    clientId: OAUTH_CLIENTS.default.id,
    apiKey,
    /** Stops the clock, cuts all connections, and resolves when both servers are closed. Can be called repeatedly. */
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

function addClaimRoutes(app: HttpApp, claims: ClaimStore, zones: ZoneStore, autoPublish: boolean): void {
  app.post('/domains/claim', async (c) => {
    const { claim, isNew } = claims.create(await parseJsonBody(c))
    zones.ensureZone(claim.name)
    if (isNew && autoPublish) publishRecord(zones, claim.record, 'none')
    return c.json(claim, isNew ? 201 : 200)
  })
  app.post('/domains/:domain_id/claim/verify', (c) => c.json(claims.verify(c.req.param('domain_id'))))
  app.get('/domains/:domain_id/claim', (c) => c.json(claims.get(c.req.param('domain_id'))))
}
