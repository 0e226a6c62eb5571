import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { getRequestListener } from '@hono/node-server'
import type { Hono } from 'hono'
import { applyFault, type ComputedResponse } from './apply-fault.ts'
import type { Faults } from './faults.ts'
import type { LoggedRequest, RequestLog } from './request-log.ts'
import { timestamp } from './virtual-clock.ts'

const LOOPBACK = '127.0.0.1'
const LARGEST_BODY = 256 * 1024
const MISDIRECTED = {
  statusCode: 421,
  name: 'misdirected_request',
  message: 'This server has another name.',
}

export interface HttpServer {
  readonly port: number
  /** From here on requests are answered; until then they wait. */
  serve(service: Service): void
  close(): Promise<void>
}

interface Service {
  readonly app: Hono
  readonly faults: Faults
  readonly requestLog: RequestLog
  readonly apiKey: string
  readonly now: () => number
  readonly report: (error: unknown) => void
}

/** Listens on loopback. The port is known before the service is, because the service needs its own address. */
export async function listen(wantedPort: number): Promise<HttpServer> {
  let ready: (service: Service) => void = () => {}
  const service = new Promise<(request: IncomingMessage, response: ServerResponse) => Promise<void>>(
    (done) => {
      ready = (given) => done(handler(given, port))
    },
  )
  const server: Server = createServer((request, response) => {
    void service.then((handle) => handle(request, response))
  })
  await new Promise<void>((done, fail) => {
    server.once('error', fail)
    server.listen(wantedPort, LOOPBACK, () => done())
  })
  const { port } = server.address() as AddressInfo
  return {
    port,
    serve: (given) => ready(given),
    close: () =>
      new Promise<void>((done) => {
        server.close(() => done())
        server.closeAllConnections()
      }),
  }
}

function handler({ app, faults, requestLog, apiKey, now, report }: Service, port: number) {
  const listener = getRequestListener(app.fetch, { overrideGlobalObjects: false })
  const hosts = new Set([`${LOOPBACK}:${port}`, `localhost:${port}`])
  if (port === 80) for (const host of [LOOPBACK, 'localhost']) hosts.add(host)

  return async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const method = request.method ?? 'GET'
    const [path = '/', query = ''] = (request.url ?? '/').split('?', 2)
    // A web page must not reach this server through a host name that resolves to loopback (DNS rebinding).
    if (!hosts.has(request.headers.host?.toLowerCase() ?? '')) {
      response.writeHead(421, { 'content-type': 'application/json', connection: 'close' })
      response.end(JSON.stringify(MISDIRECTED))
      return
    }
    if (path.startsWith('/_sandbox')) return await listener(request, response)

    const fault = faults.take(method, path)
    const logged: { -readonly [K in keyof LoggedRequest]: LoggedRequest[K] } = {
      at: timestamp(now()),
      method,
      path,
      query: path === '/oauth/authorize' ? '' : query,
      status: null,
      credential: credentialOf(request.headers.authorization, apiKey),
      user_agent: request.headers['user-agent'] ?? null,
      fault: fault?.kind ?? null,
    }
    requestLog.count(logged)
    response.once('finish', () => {
      logged.status = response.statusCode
    })
    if (fault === undefined) return await listener(request, response)
    try {
      await applyFault(fault, request, response, () => computeResponse(app, request))
    } catch (error) {
      report(error)
      response.destroy()
    }
  }
}

function credentialOf(header: string | undefined, apiKey: string): LoggedRequest['credential'] {
  if (header === undefined) return 'none'
  if (header === `Bearer ${apiKey}`) return 'api_key'
  return /^Bearer [^.]+\.[^.]+\.[^.]+$/.test(header) ? 'access_token' : 'other'
}

/** Lets the routes answer without sending the answer. */
async function computeResponse(app: Hono, request: IncomingMessage): Promise<ComputedResponse> {
  const pieces: Buffer[] = []
  let size = 0
  for await (const piece of request as AsyncIterable<Buffer>) {
    size += piece.length
    if (size > LARGEST_BODY) break
    pieces.push(piece)
  }
  const headers = new Headers()
  for (const [name, value] of Object.entries(request.headers)) {
    if (value !== undefined) headers.set(name, Array.isArray(value) ? value.join(', ') : value)
  }
  const method = request.method ?? 'GET'
  const body = method === 'GET' || method === 'HEAD' ? null : Buffer.concat(pieces)
  const answer = await app.fetch(
    new Request(`http://${request.headers.host ?? LOOPBACK}${request.url ?? '/'}`, { method, headers, body }),
  )
  return {
    status: answer.status,
    headers: Object.fromEntries(answer.headers),
    body: Buffer.from(await answer.arrayBuffer()),
  }
}
