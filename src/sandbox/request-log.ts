/** A logged request, without secrets. */
export interface LoggedRequest {
  readonly at: string
  readonly method: string
  readonly path: string
  readonly query: string
  readonly status: number | null
  readonly credential: 'none' | 'api_key' | 'access_token' | 'other'
  readonly user_agent: string | null
  readonly fault: string | null
}

const LOGGED = 1000

/** Counts requests, so that tests can prove how often each was sent. */
export interface RequestLog {
  count(request: LoggedRequest): void
  /** By "METHOD /path", ids in the path written as `{id}`. */
  readonly byRoute: Readonly<Record<string, number>>
  readonly total: number
  /** The last thousand, the newest last. */
  recent(): readonly LoggedRequest[]
}

export function createRequestLog(): RequestLog {
  const byRoute: Record<string, number> = {}
  const recent: LoggedRequest[] = []
  let total = 0
  return {
    byRoute,
    get total() {
      return total
    },
    count(request) {
      total += 1
      const path = request.path
        .replace(/^\/contacts\/imports\/[^/]+$/, '/contacts/imports/{id}')
        .replace(/^\/domains\/[^/]+\/claim/, '/domains/{domain_id}/claim')
      const route = `${request.method} ${path}`
      byRoute[route] = (byRoute[route] ?? 0) + 1
      recent.push(request)
      if (recent.length > LOGGED) recent.splice(0, recent.length - LOGGED)
    },
    recent: () => recent,
  }
}
