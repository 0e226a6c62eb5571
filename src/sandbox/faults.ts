import { setTimeout as sleep } from 'node:timers/promises'
import { RESPONSE_ALREADY_SENT } from '@hono/node-server/utils/response'
import type { Context, MiddlewareHandler } from 'hono'
import { CONTROL_PREFIX, type HonoEnv, type HttpApp, readBody, readObject, validationError } from './http.ts'

const FAULT_KINDS = [
  /** Responds with the fault's `status`, `headers` and `body`; the request isn't processed unless `after` is set. */
  'status',
  /** Resets the TCP connection (RST); the request isn't processed unless `after` is set. */
  'reset',
  /** Processes the request, then closes the connection without a response. */
  'drop',
  /** Processes the request, then closes the connection after half of the response's body. */
  'truncate',
  /** Overwrites headers, JSON fields and list items' fields of the response with the fault's `headers`, `fields`, `item_fields`. */
  'merge',
  /**
   * Waits `before_ms` before the request is processed, and `after_ms` afterward. Faults of the other kinds can have these fields,
   * too.
   */
  'delay',
] as const
/**
 * Kinds of faults for which the sandbox always processes the request; for the other kinds, only if the fault's field `after` is
 * true.
 */
const PROCESSING_KINDS = ['drop', 'truncate', 'merge', 'delay']

type Fault = ReturnType<typeof readFault>

/** Adds the middleware that injects faults, and the routes that set and clear them: POST and DELETE /_sandbox/faults. */
export function addFaultInjection(app: HttpApp): void {
  const faults: Fault[] = []

  app.use(async (c, next) => {
    const { path } = c.req
    const matching = path.startsWith(CONTROL_PREFIX) ? [] : faults.filter((one) => one.path.test(path))
    const fault = matching.find((one) => one.remaining > 0 && one.skip-- <= 0)
    if (fault === undefined) return await next()
    fault.remaining -= 1
    const replacement = await applyFault(fault, c, next)
    if (replacement === undefined) return
    // Clear `c.res` first: Hono copies the headers of the previous response into the one that is assigned.
    c.res = undefined
    c.res = replacement
  })

  app.post(`${CONTROL_PREFIX}faults`, async (c) => {
    faults.push(readFault(await readBody(c)))
    return c.body(null, 204)
  })
  app.delete(`${CONTROL_PREFIX}faults`, (c) => {
    faults.length = 0
    return c.body(null, 204)
  })
}

/**
 * Applies a fault to a request.
 * @returns the response to send, `RESPONSE_ALREADY_SENT` for no further response; undefined to send the handler's response
 */
async function applyFault(
  fault: Fault,
  c: Context<HonoEnv>,
  next: Parameters<MiddlewareHandler>[1],
): Promise<Response | undefined> {
  const { incoming, outgoing } = c.env
  const disconnected = new AbortController()
  outgoing.once('close', () => disconnected.abort())
  const pause = async (ms: number) => {
    if (ms > 0) await sleep(ms, undefined, { signal: disconnected.signal }).catch(() => {})
  }
  await pause(fault.beforeMs)
  if (disconnected.signal.aborted) return RESPONSE_ALREADY_SENT
  if (fault.after || PROCESSING_KINDS.includes(fault.kind)) await next()
  await pause(fault.afterMs)

  switch (fault.kind) {
    case 'delay':
      return undefined
    case 'status':
      return new Response(fault.body, { status: fault.status, headers: fault.headers })
    case 'merge':
      return await merge(c.res, fault)
    case 'truncate': {
      const body = Buffer.from(await c.res.arrayBuffer())
      outgoing.writeHead(c.res.status, {
        ...Object.fromEntries(c.res.headers),
        'content-length': body.length,
      })
      outgoing.write(body.subarray(0, body.length / 2), () => incoming.socket.destroy())
      return RESPONSE_ALREADY_SENT
    }
    case 'reset':
      incoming.socket.resetAndDestroy()
      return RESPONSE_ALREADY_SENT
    case 'drop':
      incoming.socket.destroy()
      return RESPONSE_ALREADY_SENT
  }
}

async function merge(response: Response, { headers, fields, itemFields }: Fault): Promise<Response> {
  const merged: Record<string, unknown> = { ...(JSON.parse(await response.text()) as object), ...fields }
  const data: unknown = merged['data']
  if (Array.isArray(data)) merged['data'] = data.map((item: object) => ({ ...item, ...itemFields }))
  return new Response(JSON.stringify(merged), {
    status: response.status,
    headers: { ...Object.fromEntries(response.headers), ...headers },
  })
}

/** Parses the body of POST /_sandbox/faults, with defaults for all fields but `kind`. @throws HttpError 422 */
function readFault(given: Record<string, unknown>) {
  const number = (name: string, otherwise: number): number => {
    const value = given[name] ?? otherwise
    if (typeof value === 'number' && value >= 0) return value
    throw validationError(`\`${name}\` must be a number of 0 or more.`)
  }
  const object = (name: string) => readObject(given[name] ?? {}, `\`${name}\``)

  const kind = FAULT_KINDS.find((known) => known === given['kind'])
  if (kind === undefined) throw validationError(`\`kind\` must be one of ${FAULT_KINDS.join(', ')}.`)
  const path = given['path'] ?? '*'
  if (typeof path !== 'string') throw validationError('`path` must be a text.')
  const body = given['body'] ?? ''
  const status = number('status', 500)
  if (!(Number.isInteger(status) && status >= 200 && status <= 599))
    throw validationError('`status` must be from 200 to 599.')
  const headers = Object.entries(object('headers')).map(([name, value]) => [name, String(value)])
  if (!headers.every((pair) => /^[\w!#$%&'*+.^`|~-]+\n[\t -~\x80-\xff]*$/.test(pair.join('\n'))))
    throw validationError('`headers` must be names and values of HTTP headers.')
  return {
    kind,
    /** Matches the request paths that the fault applies to; `*` in the fault's `path` stands for any text. */
    path: new RegExp(`^${path.replace(/[.+?^${}()|[\]\\]/g, '\\$&').replaceAll('*', '.*')}$`),
    /** For the kinds `status` and `reset`: whether the request is processed before the fault, and so takes effect. */
    after: given['after'] === true,
    /** Milliseconds of real time to wait when the request arrives, before any processing. */
    beforeMs: number('before_ms', 0),
    /** Milliseconds of real time to wait after the request's processing, if any, before the response or the connection's end. */
    afterMs: number('after_ms', 0),
    status,
    headers: Object.fromEntries(headers),
    // Convert the body to bytes, because a `Response` with a string would get the header `content-type: text/plain`.
    body: body === '' ? null : Buffer.from(typeof body === 'string' ? body : JSON.stringify(body)),
    fields: object('fields'),
    itemFields: object('item_fields'),
    /** Number of matching requests that still pass unharmed before the fault applies. */
    skip: number('skip', 0),
    /** Number of requests that the fault still applies to. Default: no limit. */
    remaining: number('count', Number.POSITIVE_INFINITY),
  }
}
