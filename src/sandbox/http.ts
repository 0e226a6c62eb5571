import type { HttpBindings } from '@hono/node-server'
import { type Context, Hono } from 'hono'
import type { ContentfulStatusCode } from 'hono/utils/http-status'

/** Hono's environment type: `c.env` gives routes Node's own request and response, which faults need to cut connections. */
export interface HonoEnv {
  readonly Bindings: HttpBindings
}

export type HttpApp = Hono<HonoEnv>

/**
 * Error that is sent as a response: at the token endpoint as `{"error","error_description"}` (RFC 6749, section 5.2), elsewhere as
 * `{"statusCode","name","message"}`.
 */
export class HttpError extends Error {
  readonly status: number
  readonly code: string
  readonly headers: Readonly<Record<string, string>>

  constructor(status: number, code: string, message: string, headers: Record<string, string> = {}) {
    super(message)
    this.status = status
    this.code = code
    this.headers = headers
  }
}

export function validationError(message: string): HttpError {
  return new HttpError(422, 'validation_error', message)
}

export function notFoundError(message: string): HttpError {
  return new HttpError(404, 'not_found', message)
}

export const TOKEN_PATH = '/oauth/token'
export const CONTROL_PREFIX = '/_sandbox/'

/**
 * Creates the HTTP application without routes, but with error responses and with guards against DNS rebinding and CSRF.
 * @param port the port that the server listens on, which the Host header must name
 * @param report receives errors that aren't an `HttpError`
 */
export function createGuardedHttpApp(port: number, report: (error: unknown) => void): HttpApp {
  const app = new Hono<HonoEnv>()
  // Compare the Host header with `URL.host`, which omits the default port 80, as clients do in that header.
  const hosts = ['127.0.0.1', 'localhost'].map((name) => new URL(`http://${name}:${port}`).host)

  app.onError((error, c) => {
    if (error instanceof HttpError) return errorResponse(c, error)
    report(error)
    return errorResponse(c, new HttpError(500, 'internal_error', 'The sandbox failed: a bug.'))
  })
  app.notFound((c) => errorResponse(c, notFoundError('There is nothing at this address.')))

  app.use(async (c, next) => {
    const host = c.req.header('host')?.toLowerCase() ?? ''
    // Refuse foreign host names (DNS rebinding): a web page whose host name resolves to loopback is same-origin with this server.
    if (!hosts.includes(host))
      throw new HttpError(421, 'misdirected_request', 'This server has another name.', {
        Connection: 'close',
      })
    // Refuse requests of other sites that could change state (CSRF). Browsers send Origin or Sec-Fetch-Site with a form, so a
    // request with neither is taken for a program's and allowed.
    const source = c.req.header('origin') ?? c.req.header('sec-fetch-site') ?? 'none'
    if (c.req.method !== 'GET' && !['none', 'same-origin', `http://${host}`].includes(source))
      throw new HttpError(403, 'cross_site_request', 'Another site cannot do this.')
    await next()
  })
  return app
}

function errorResponse(c: Context, { status, code, message, headers }: HttpError): Response {
  const isToken = c.req.path === TOKEN_PATH
  const body = isToken
    ? {
        error: /^(invalid|unauthorized)_/.test(code) ? code : 'invalid_request',
        error_description: message,
      }
    : { statusCode: status, name: code, message }
  return c.json(body, (isToken && status === 422 ? 400 : status) as ContentfulStatusCode, {
    ...headers,
    ...(isToken ? { 'Cache-Control': 'no-store', Pragma: 'no-cache' } : {}),
  })
}

/** Parses the request's body as JSON. @throws HttpError 422 if it isn't JSON */
export async function parseJsonBody(c: Context): Promise<unknown> {
  try {
    return JSON.parse(await c.req.text())
  } catch {
    throw validationError('The body is not JSON.')
  }
}

/** Parses the request's body as a JSON object; an empty body is read as `{}`. @throws HttpError 422 for anything else */
export async function readBody(c: Context): Promise<Record<string, unknown>> {
  const isEmpty = (await c.req.text()).trim() === ''
  return isEmpty ? {} : readObject(await parseJsonBody(c), 'The body')
}

/** Returns a copy of a JSON object. @param valueName the name in the error message @throws HttpError 422 for another value */
export function readObject(value: unknown, valueName: string): Record<string, unknown> {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return { ...value }
  throw validationError(`${valueName} must be a JSON object.`)
}
