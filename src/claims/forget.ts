import { isOpenEntry, type LedgerEntry } from './ledger.ts'

const DAY_MS = 24 * 60 * 60 * 1000
/** How long the ledger keeps a claim after it has ended or disappeared, and was last seen, in days. */
export const KEPT_DAYS = 90

/**
 * Whether a claim had ended this many days ago and hasn't been seen since, or was gone by then. Whether it has completed, expired or failed doesn't
 * matter: its record is no longer needed, and its placeholder domain id still finds it at the service.
 *
 * @param now milliseconds since 1970
 */
export function endedDaysAgo(entry: LedgerEntry, days: number, now: number): boolean {
  const time = now - days * DAY_MS
  return !isOpenEntry(entry, time) && Date.parse(entry.gone_at ?? entry.seen_at) <= time
}
