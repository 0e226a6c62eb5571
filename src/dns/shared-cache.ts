import type { Clock, DnsAddress } from '../context.ts'

/** How long what one check has found out is used by the others, in milliseconds. */
const KEPT_MS = 5 * 60 * 1000
/** Results kept, the newest: a run of thousands of domains, each in its own zone, would fill the memory with them. */
const MOST_KEPT = 1000
/** A server that left so many questions in a row unanswered isn't asked again meanwhile. */
const SILENT_AFTER = 3

/**
 * What the checks of many domains share: zones, the addresses of name servers, and which servers are silent. A check alone has
 * one of its own.
 */
export interface SharedCache {
  /**
   * What was found out under this key in the last five minutes, or is being found out now, or else by `look`.
   *
   * @param isKept whether others may use the result; a failure may be over the next time.
   */
  memoize<T>(key: string, look: () => Promise<T>, isKept: (result: T) => boolean): Promise<T>
  /** Whether that server didn't answer the last three questions that were asked of it. */
  isSilent(server: DnsAddress): boolean
  /** Notes whether a server answered. */
  recordReply(server: DnsAddress, answered: boolean): void
}

export function createSharedCache(clock: Pick<Clock, 'monotonic'>): SharedCache {
  const results = new Map<string, { readonly result: Promise<unknown>; readonly until: number }>()
  const silences = new Map<string, { count: number; until: number }>()
  const keyOf = ({ address, port }: DnsAddress) => `${address} ${port}`
  return {
    memoize<T>(key: string, look: () => Promise<T>, isKept: (result: T) => boolean): Promise<T> {
      const known = results.get(key)
      if (known !== undefined && clock.monotonic() < known.until) return known.result as Promise<T>
      const result = look()
      results.set(key, { result, until: clock.monotonic() + KEPT_MS })
      const [oldest = key] = results.keys()
      if (results.size > MOST_KEPT) results.delete(oldest)
      const forget = () => results.delete(key)
      result.then((value) => isKept(value) || forget(), forget)
      return result
    },
    isSilent(server) {
      const known = silences.get(keyOf(server))
      return known !== undefined && known.count >= SILENT_AFTER && clock.monotonic() < known.until
    },
    recordReply(server, answered) {
      const key = keyOf(server)
      const count = answered ? 0 : (silences.get(key)?.count ?? 0) + 1
      silences.set(key, { count, until: clock.monotonic() + KEPT_MS })
    },
  }
}
