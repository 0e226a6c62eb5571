import type { HttpTransport } from '../context.ts'

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
 * Rejects with what the transport rejects with.
 */
export function transportFetch(
  http: HttpTransport,
  options: {
    readonly timeoutMs: number
    readonly userAgent: string
    readonly signal?: AbortSignal
    readonly freshConnection?: true
    /** As in `HttpRequest`. */
    readonly beforeSend?: () => void
  },
): (url: string, init: FetchOptions) => Promise<Response> {
  return async (url, init) => {
    const answer = await http.send({
      method: init.method === 'POST' ? 'POST' : 'GET',
      url: new URL(url),
      headers: { ...Object.fromEntries(new Headers(init.headers)), 'user-agent': options.userAgent },
      ...(init.body === undefined || init.body === null ? {} : { body: String(init.body) }),
      timeoutMs: options.timeoutMs,
      ...(options.signal === undefined ? {} : { signal: options.signal }),
      ...(options.freshConnection ? { freshConnection: true } : {}),
      ...(options.beforeSend === undefined ? {} : { beforeSend: options.beforeSend }),
    })
    const pieces: Uint8Array[] = []
    let size = 0
    for await (const piece of answer.body) {
      size += piece.length
      if (size > MAX_BODY_BYTES) break
      pieces.push(piece)
    }
    const empty = [204, 205, 304].includes(answer.status) || answer.status < 200
    return new Response(empty ? null : Buffer.concat(pieces), {
      status: Math.max(answer.status, 200),
      headers: answer.headers,
    })
  }
}
