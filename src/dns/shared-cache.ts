import type { Clock, DnsAddress } from '../context.ts'

/** How long what one check has found out is used by the others, in milliseconds. */
const KEPT_MS = 5 * 60 * 1000
/** Results kept, the newest: a run of thousands of domains, each in its own zone, would fill the memory with them. */
const MOST_KEPT = 1000
/** A server that left so many questions in a row unanswered isn't asked again meanwhile. */
const SILENT_AFTER = 3

/** State that the checks of a run share: zones, the addresses of name servers, and which servers are silent. */
export type SharedCache = ReturnType<typeof createSharedCache>

/** Creates the shared state of a run, or of a single check. */
export function createSharedCache(clock: Pick<Clock, 'monotonic'>) {
  const results = new Map<string, { readonly result: Promise<unknown>; readonly until: number }>()
  const silences = new Map<string, { count: number; until: number }>()
  const keyOf = ({ address, port }: DnsAddress) => `${address} ${port}`
  return {
    /**
     * Returns the result stored or still being loaded under `key`, at most five minutes old; calls `load` without one.
     *
     * @param isKept whether to store the result for others; a failure, which may be over the next time, isn't
     */
    memoize<T>(key: string, load: () => Promise<T>, isKept: (result: T) => boolean): Promise<T> {
      const known = results.get(key)
      if (known !== undefined && clock.monotonic() < known.until) return known.result as Promise<T>
      const result = load()
      results.set(key, { result, until: clock.monotonic() + KEPT_MS })
      const [oldest = key] = results.keys()
      if (results.size > MOST_KEPT) results.delete(oldest)
      const forget = () => results.delete(key)
      result.then((value) => isKept(value) || forget(), forget)
      return result
    },
    /** Whether a server left the last three queries of the run unanswered. */
    isSilent(server: DnsAddress): boolean {
      const known = silences.get(keyOf(server))
      return known !== undefined && known.count >= SILENT_AFTER && clock.monotonic() < known.until
    },
    /** Records whether a server answered a query. */
    recordReply(server: DnsAddress, answered: boolean): void {
      const key = keyOf(server)
      const count = answered ? 0 : (silences.get(key)?.count ?? 0) + 1
      silences.set(key, { count, until: clock.monotonic() + KEPT_MS })
    },
  }
}
