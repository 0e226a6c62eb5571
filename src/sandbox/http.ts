import type { HttpBindings } from '@hono/node-server'
import { type Context, Hono } from 'hono'
import type { ContentfulStatusCode } from 'hono/utils/http-status'

/** Hono's environment: `c.env` gives routes Node's own request and response, which faults need to cut connections. */
export interface Env {
  readonly Bindings: HttpBindings
}

/**
 * An error response, thrown by route handlers and serialized in `problemResponse`: at the token endpoint as
 * `{"error","error_description"}` (RFC 6749, section 5.2), elsewhere as `{"statusCode","name","message"}`.
 */
export class Problem extends Error {
  readonly status: number
  readonly code: string
  readonly headers: Readonly<Record<string, string>>

  constructor(status: number, title: string, message: string, headers: Record<string, string> = {}) {
    super(message)
    this.status = status
    this.code = title
    this.headers = headers
  }
}

export function validationError(message: string): Problem {
  return new Problem(422, 'validation_error', message)
}

export function notFound(message: string): Problem {
  return new Problem(404, 'not_found', message)
}

export const TOKEN_PATH = '/oauth/token'
export const CONTROL_PREFIX = '/_sandbox/'

/**
 * Creates the HTTP application with its guards and error responses, but without routes. The guards refuse requests with a
 * foreign Host header (DNS rebinding) and cross-site requests that could change state (CSRF).
 * @param port the port that the server listens on, which the Host header must name
 * @param report receives errors that aren't a `Problem`: bugs of the sandbox
 */
export function createApp(port: number, report: (error: unknown) => void): Hono<Env> {
  const app = new Hono<Env>()
  // Compare with `URL.host`, which omits the default port 80, as clients do in the Host header.
  const hosts = ['127.0.0.1', 'localhost'].map((name) => new URL(`http://${name}:${port}`).host)

  app.onError((error, c) => {
    const problem =
      error instanceof Problem ? error : new Problem(500, 'internal_error', 'The sandbox failed: a bug.')
    if (problem.status === 500) report(error)
    return problemResponse(c, problem)
  })
  app.notFound((c) => problemResponse(c, notFound('There is nothing at this address.')))

  app.use(async (c, next) => {
    const host = c.req.header('host')?.toLowerCase() ?? ''
    // Refuse foreign host names (DNS rebinding): a web page whose host name resolves to loopback is same-origin with this server.
    if (!hosts.includes(host))
      throw new Problem(421, 'misdirected_request', 'This server has another name.', { Connection: 'close' })
    // Refuse requests from other sites (CSRF). Every browser sends Origin or Sec-Fetch-Site with a form, so a request with
    // neither comes from a program and is allowed.
    const source = c.req.header('origin') ?? c.req.header('sec-fetch-site') ?? 'none'
    if (c.req.method !== 'GET' && !['none', 'same-origin', `http://${host}`].includes(source))
      throw new Problem(403, 'cross_site_request', 'Another site cannot do this.')
    await next()
  })
  return app
}

function problemResponse(c: Context, { status, code: title, message, headers }: Problem): Response {
  const isToken = c.req.path === TOKEN_PATH
  const body = isToken
    ? {
        error: /^(invalid|unauthorized)_/.test(title) ? title : 'invalid_request',
        error_description: message,
      }
    : { statusCode: status, name: title, message }
  return c.json(body, (isToken && status === 422 ? 400 : status) as ContentfulStatusCode, {
    ...headers,
    ...(isToken ? { 'Cache-Control': 'no-store', Pragma: 'no-cache' } : {}),
  })
}

/** Parses the request's body as JSON. @throws Problem 422 */
export async function readJson(c: Context): Promise<unknown> {
  try {
    return JSON.parse(await c.req.text())
  } catch {
    throw validationError('The body is not JSON.')
  }
}

/** Parses the request's body as a JSON object; an empty body is read as `{}`. @throws Problem 422 */
export async function readObject(c: Context): Promise<Record<string, unknown>> {
  const isEmpty = (await c.req.text()).trim() === ''
  return isEmpty ? {} : asObject(await readJson(c), 'The body')
}

/** Returns a copy of a JSON object. @param what the value's name in the message @throws Problem 422 for anything else */
export function asObject(value: unknown, what: string): Record<string, unknown> {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return { ...value }
  throw validationError(`${what} must be a JSON object.`)
}
