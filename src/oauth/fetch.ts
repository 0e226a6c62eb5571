import type { HttpRequest, HttpTransport } from '../context.ts'

/** No answer of an authorization server is longer; a longer one is cut and then cannot be read. */
const MAX_BODY_BYTES = 1024 * 1024

interface FetchOptions {
  readonly method?: string
  readonly headers?: Record<string, string> | Headers
  readonly body?: unknown
  readonly signal?: AbortSignal | null | undefined
}

/**
 * The program's HTTP transport in the shape that oauth4webapi takes as its `customFetch`: one exchange, no redirects.
 * The body arrives while it is read, so that whoever reads a body that breaks off still has what came before.
 *
 * @returns a function that rejects with what the transport rejects with; so does reading the body.
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
      headers: { ...Object.fromEntries(new Headers(init.headers)), 'user-agent': userAgent },
      ...(init.body === undefined || init.body === null ? {} : { body: String(init.body) }),
    })
    const empty = [204, 205, 304].includes(answer.status) || answer.status < 200
    return new Response(empty ? null : upTo(MAX_BODY_BYTES, answer.body), {
      status: Math.max(answer.status, 200),
      headers: answer.headers,
    })
  }
}

async function* upTo(bytes: number, body: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  let size = 0
  for await (const piece of body) {
    size += piece.length
    if (size > bytes) return
    // A Response stops reading at an empty piece.
    if (piece.length > 0) yield piece
  }
}
