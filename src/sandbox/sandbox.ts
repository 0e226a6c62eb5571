import { randomInt } from 'node:crypto'
import { Hono } from 'hono'
import { createAccessTokens } from './access-tokens.ts'
import { addApiRoutes } from './api-routes.ts'
import { createAuthorization } from './authorization.ts'
import { addAuthorizeRoutes } from './authorize-routes.ts'
import { createClaims } from './claims.ts'
import { type OAuthClient, SEEDED_CLIENTS } from './clients.ts'
import { addControlRoutes } from './control-routes.ts'
import { addDnsPage } from './dns-page.ts'
import { addDnsRoutes } from './dns-routes.ts'
import { startDnsServer } from './dns-server.ts'
import { createFaults } from './faults.ts'
import { createGrants } from './grants.ts'
import { listen } from './http-server.ts'
import { createImports } from './imports.ts'
import { Problem } from './problems.ts'
import { createRateLimit } from './rate-limit.ts'
import { createRequestLog } from './request-log.ts'
import { randomToken, type SandboxRuntime } from './runtime.ts'
import { sameSiteOnly } from './same-site.ts'
import type { SandboxState } from './sandbox-state.ts'
import { addTokenRoutes } from './token-routes.ts'
import { lookUpTxt } from './txt-lookup.ts'
import { createVirtualClock } from './virtual-clock.ts'
import { createZones, DEFAULT_TTL } from './zones.ts'

export type { SandboxRuntime } from './runtime.ts'

export interface SandboxOptions {
  readonly runtime: SandboxRuntime
  /** Loopback ports; 0 or nothing for a free one. */
  readonly port?: number
  readonly dnsPort?: number
  /** Where the verifier looks for records, on 127.0.0.1; the sandbox's own DNS server if absent. */
  readonly verifierPort?: number
  /** No consent page: every sign-in is approved at once. */
  readonly autoApprove?: boolean
  /** The record of each new claim is published at once. */
  readonly autoPublish?: boolean
  /** API requests a second; no limit by default. */
  readonly rateLimit?: number
  /** How many contact imports and (revoked and active) grants there are from the start. */
  readonly imports?: number
  readonly grants?: number
  /** Default: 900. */
  readonly accessTokenSeconds?: number
  /** From the verification request to the DNS lookup, and from there to the end; in virtual seconds, 1 each. */
  readonly checkSeconds?: number
  readonly transferSeconds?: number
  /** RFC 8414 metadata and RFC 9207 `iss`; both on unless false. */
  readonly metadata?: boolean
  readonly iss?: boolean
}

/** A running sandbox. */
export interface Sandbox {
  readonly baseUrl: string
  /** `127.0.0.1:PORT`, by UDP and TCP. */
  readonly dns: string
  readonly clientId: string
  readonly apiKey: string
  /** Settles when both servers are closed and no timer is left. */
  close(): Promise<void>
}

/**
 * Starts the local service: HTTP and DNS on loopback, all state in memory.
 * @throws the system's error if a port is not available.
 */
export async function startSandbox(options: SandboxOptions): Promise<Sandbox> {
  const { runtime } = options
  const report = (error: unknown) => {
    // A client that disconnects while sending its request is not an error here.
    if (error instanceof Error && 'code' in error && error.code === 'ECONNRESET') return
    runtime.log(`sandbox: ${error instanceof Error ? error.stack : String(error)}`)
  }
  const clock = createVirtualClock(runtime.clock, report)
  const startedAt = clock.now()
  const zones = createZones()
  const http = await listen(options.port ?? 0)
  const dns = await startDnsServer(zones, options.dnsPort ?? 0).catch(async (error: unknown) => {
    await http.close()
    throw error
  })
  const baseUrl = `http://127.0.0.1:${http.port}`
  const apiKey = `sandbox_key_${randomToken(runtime.random, 24)}`
  const clients = new Map<string, OAuthClient>(
    Object.values(SEEDED_CLIENTS).map((client) => [client.id, client] as const),
  )
  const grants = createGrants(options.grants ?? 3, startedAt)
  const tokens = await createAccessTokens(baseUrl)
  const sandbox: SandboxState = {
    runtime,
    clock,
    startedAt,
    baseUrl,
    apiKey,
    clients,
    tokens,
    grants,
    zones,
    dns,
    authorization: createAuthorization({
      runtime,
      now: clock.now,
      clients,
      grants,
      tokens,
      accessTokenSeconds: options.accessTokenSeconds ?? 900,
      issuer: baseUrl,
    }),
    imports: createImports(options.imports ?? 25, startedAt, clock.now),
    claims: createClaims({
      runtime,
      clock,
      delays: {
        checkMs: (options.checkSeconds ?? 1) * 1000,
        transferMs: (options.transferSeconds ?? 1) * 1000,
      },
      lookUp: (name) => lookUpTxt(options.verifierPort ?? dns.port, randomInt(65_536), name),
      ensureZone: (name) => addExampleRecords(zones, name),
    }),
    faults: createFaults(runtime.random),
    requestLog: createRequestLog(),
    rateLimit: createRateLimit(
      options.rateLimit === undefined ? undefined : { requests: options.rateLimit, seconds: 1 },
      clock.now,
    ),
    autoApprove: options.autoApprove ?? false,
    autoPublish: options.autoPublish ?? false,
    metadata: options.metadata ?? true,
    iss: options.iss ?? true,
  }
  addExampleRecords(zones, 'example.com')
  http.serve({
    app: buildApp(sandbox, report),
    faults: sandbox.faults,
    requestLog: sandbox.requestLog,
    apiKey,
    now: clock.now,
    report,
  })

  let closed: Promise<void> | undefined
  return {
    baseUrl,
    dns: `127.0.0.1:${dns.port}`,
    clientId: SEEDED_CLIENTS.normal.id,
    apiKey,
    close() {
      clock.close()
      closed ??= Promise.all([http.close(), dns.close()]).then(() => {})
      return closed
    },
  }
}

/** A zone as its previous owner left it: a web server and mail, but no verification record. */
function addExampleRecords(zones: SandboxState['zones'], name: string): void {
  const { apex, names } = zones.ensure(name)
  if (names.get(apex)?.has('A') === true || names.get(apex)?.has('CNAME') === true) return
  zones.set(apex, 'A', { ttl: DEFAULT_TTL, data: [{ type: 'A', value: '192.0.2.10' }] })
  zones.set(apex, 'MX', { ttl: DEFAULT_TTL, data: [{ type: 'MX', preference: 10, value: `mx1.${apex}` }] })
  zones.set(`mx1.${apex}`, 'A', { ttl: DEFAULT_TTL, data: [{ type: 'A', value: '192.0.2.25' }] })
}

function buildApp(sandbox: SandboxState, report: (error: unknown) => void): Hono {
  const app = new Hono()
  for (const path of ['/_sandbox/*', '/oauth/authorize']) app.use(path, sameSiteOnly)
  addTokenRoutes(app, sandbox)
  addAuthorizeRoutes(app, sandbox)
  addApiRoutes(app, sandbox)
  addControlRoutes(app, sandbox)
  addDnsRoutes(app, sandbox)
  addDnsPage(app, sandbox)
  app.notFound(() => {
    throw new Problem(404, 'not_found', 'There is nothing at this address.')
  })
  app.onError((error) => {
    if (!(error instanceof Problem)) report(error)
    const problem =
      error instanceof Problem ? error : new Problem(500, 'internal_error', 'The sandbox failed: a bug.')
    return Response.json(
      { statusCode: problem.status, name: problem.title, message: problem.message },
      { status: problem.status, headers: problem.headers },
    )
  })
  return app
}
