import type { HttpRequest, HttpTransport } from '../context.ts'

/** Far more than any answer of an authorization server. A longer one is truncated, and can't be parsed. */
const MAX_BODY_BYTES = 1024 * 1024

interface FetchOptions {
  readonly method?: string
  readonly headers?: Record<string, string> | Headers
  readonly body?: unknown
  readonly signal?: AbortSignal | null | undefined
}

/**
 * The program's HTTP transport as the `customFetch` of oauth4webapi: one exchange, no redirects. The body is a stream, so
 * what arrived before a connection broke can be read.
 *
 * @returns a function that rejects as the transport does; so does reading the body.
 */
export function transportFetch(
  http: HttpTransport,
  options: Pick<HttpRequest, 'timeoutMs' | 'signal' | 'freshConnection' | 'beforeSend'> & {
    readonly userAgent: string
  },
): (url: string, init: FetchOptions) => Promise<Response> {
  const { userAgent, ...sending } = options
  return async (url, init) => {
    const answer = await http.send({
      ...sending,
      method: init.method === 'POST' ? 'POST' : 'GET',
      url: new URL(url),
      headers: {
        ...Object.fromEntries(new Headers(init.headers)),
        // A compressed answer that is damaged or mislabeled could lose the only copy of a refresh token.
        'accept-encoding': 'identity',
        'user-agent': userAgent,
      },
      ...(init.body === undefined || init.body === null ? {} : { body: String(init.body) }),
    })
    const empty = [204, 205, 304].includes(answer.status) || answer.status < 200
    return new Response(empty ? null : truncate(answer.body, MAX_BODY_BYTES), {
      status: Math.max(answer.status, 200),
      headers: answer.headers,
    })
  }
}

async function* truncate(body: AsyncIterable<Uint8Array>, bytes: number): AsyncGenerator<Uint8Array> {
  let size = 0
  for await (const piece of body) {
    size += piece.length
    if (size > bytes) return
    // A Response stops reading at an empty piece.
    if (piece.length > 0) yield piece
  }
}
