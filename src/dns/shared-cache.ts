import type { Clock, DnsServerAddress } from '../context.ts'

/** Milliseconds for which a result is cached, and for which a silent server isn't queried. */
const CACHED_MS = 5 * 60 * 1000
/**
 * Maximum number of cached results; a new one replaces the oldest. Without this limit, a run over thousands of zones would use more
 * and more memory.
 */
const MAX_CACHED = 1000
/** Number of unanswered queries in a row after which a server isn't queried for five minutes. */
const SILENT_AFTER = 3

/** Cache that the checks of a run share: zones, addresses of name servers, and which servers are silent, but no TXT records. */
export type CheckCache = ReturnType<typeof createCheckCache>

export function createCheckCache(clock: Pick<Clock, 'monotonic'>) {
  const results = new Map<string, { readonly result: Promise<unknown>; readonly until: number }>()
  const silences = new Map<string, { count: number; until: number }>()
  const keyOf = ({ address, port }: DnsServerAddress) => `${address} ${port}`
  return {
    /**
     * Returns the cached result for `key`, finished or still running, if its `load` began less than five minutes ago; otherwise
     * calls `load`.
     *
     * @param isCacheable whether to keep a finished result: false for a failure, which might be over at the next attempt
     */
    memoize<T>(key: string, load: () => Promise<T>, isCacheable: (result: T) => boolean): Promise<T> {
      const known = results.get(key)
      if (known !== undefined && clock.monotonic() < known.until) return known.result as Promise<T>
      const result = load()
      results.set(key, { result, until: clock.monotonic() + CACHED_MS })
      const [oldest = key] = results.keys()
      if (results.size > MAX_CACHED) results.delete(oldest)
      const forget = () => results.delete(key)
      result.then((value) => isCacheable(value) || forget(), forget)
      return result
    },
    /** Whether a server left at least three queries in a row unanswered, the last one less than five minutes ago. */
    isSilent(server: DnsServerAddress): boolean {
      const known = silences.get(keyOf(server))
      return known !== undefined && known.count >= SILENT_AFTER && clock.monotonic() < known.until
    },
    /** Counts an unanswered query to a server; if `answered`, resets the server's count to 0. */
    recordReply(server: DnsServerAddress, answered: boolean): void {
      const key = keyOf(server)
      const count = answered ? 0 : (silences.get(key)?.count ?? 0) + 1
      silences.set(key, { count, until: clock.monotonic() + CACHED_MS })
    },
  }
}
