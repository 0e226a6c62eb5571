/** One request as the sandbox remembers it; no secret is in it. */
export interface RememberedRequest {
  readonly at: string
  readonly method: string
  readonly path: string
  readonly query: string
  readonly status: number | null
  readonly credential: 'none' | 'api_key' | 'access_token' | 'other'
  readonly user_agent: string | null
  readonly fault: string | null
}

const REMEMBERED = 1000

/** Counts what came in, for whoever has to prove how often something was asked. */
export interface Tally {
  count(request: RememberedRequest): void
  /** By "METHOD /path", ids in the path written as `{id}`. */
  readonly byRoute: Readonly<Record<string, number>>
  readonly total: number
  /** The last thousand, the newest last. */
  recent(): readonly RememberedRequest[]
}

export function createTally(): Tally {
  const byRoute: Record<string, number> = {}
  const recent: RememberedRequest[] = []
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
      if (recent.length > REMEMBERED) recent.splice(0, recent.length - REMEMBERED)
    },
    recent: () => recent,
  }
}
