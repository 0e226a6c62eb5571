import { formatDuration } from '../../terminal/duration.ts'
import { isDnsData, type Outcome } from '../observation/observations.ts'
import { relativeName } from '../wire/name.ts'
import { decodeValues, type TxtValue } from '../wire/txt-answer.ts'
import type { CheckReport, Verdict } from './report.ts'
import { join, quote, shorten, type Text, text, unquoted } from './text.ts'

const OUTCOME_LABELS: Readonly<Record<Outcome, string>> = {
  match: 'found',
  mismatch: 'other value',
  absent: 'no TXT record',
  nxdomain: 'no such name',
  refused: 'refused',
  servfail: 'SERVFAIL',
  timeout: 'no answer',
  unreachable: 'unreachable',
  lame: 'not authoritative',
  not_checked: 'not checked',
}

const VERDICT_LABELS: Readonly<Record<Verdict, string>> = {
  ready: 'ready: the record is visible everywhere',
  ready_with_warning: 'ready, with a warning',
  wait: "wait: the record isn't visible everywhere yet",
  fix: 'needs fixing',
  unknown: "unknown: couldn't query DNS",
}

/** What to do if a captive portal, a VPN or a router answers instead of the servers that were asked. */
export const LEAVE_INTERCEPTION =
  "sign in on the web page of this network if it has one (as in hotels and on trains), turn off any VPN or DNS filter on this machine, or check from another network, such as a phone's hotspot"

/** How a server answered. Without an expected value, none is another one. */
export function outcomeLabel(outcome: Outcome, { expected }: Pick<CheckReport, 'expected'>): string {
  return expected === null && outcome === 'mismatch' ? OUTCOME_LABELS.match : OUTCOME_LABELS[outcome]
}

/** Whether no value was expected, of an open claim or of none, and at least one name server said which TXT records there are. */
export function hasLooked(report: CheckReport): boolean {
  const { expected, nameservers } = report
  return expected === null && !isOver(report) && nameservers.some(({ outcome }) => isDnsData(outcome))
}

/** Whether the record is that of a completed claim, which no longer needs it. */
export function isCompleted({ findings: [first] }: CheckReport): boolean {
  return first?.code === 'claim_completed'
}

function isOver(report: CheckReport): boolean {
  return isCompleted(report) || isVerified(report) || isEnded(report)
}

function isEnded({ findings: [first] }: CheckReport): boolean {
  return first?.code === 'claim_ended'
}

function isVerified({ findings: [first] }: CheckReport): boolean {
  return first?.code === 'claim_verified'
}

/** Whether the record is that of a blocked claim. */
export function isBlocked({ findings }: CheckReport): boolean {
  return findings.some(({ code }) => code === 'claim_blocked')
}

/** Whether the service couldn't be asked about the claim. */
function isUnasked({ findings }: CheckReport): boolean {
  return findings.some(({ code }) => code === 'claim_not_asked')
}

/** The value that has to be in DNS; null if none was expected, or it no longer matters. */
export function valueNeeded(report: CheckReport): string | null {
  return isOver(report) ? null : report.expected
}

/** What came of the check, in a few words. */
export function resultOf(report: CheckReport): string {
  if (hasLooked(report)) return 'no value was expected'
  if (isCompleted(report)) return 'done: the claim is completed'
  if (isVerified(report)) return 'ready: the service has accepted the record'
  if (isEnded(report)) return 'the claim has ended'
  const block = isBlocked(report) ? '; the claim is blocked' : ''
  const doubt = isUnasked(report) ? "; the service couldn't be asked about the claim" : ''
  return `${VERDICT_LABELS[report.verdict]}${block}${doubt}`
}

/** The TXT values of all name servers, each once. */
export function valuesSeen({ nameservers }: CheckReport): string[] {
  return [...new Set(nameservers.flatMap(({ values }) => values))]
}

/** Whether some of the values seen are missing at a name server that answered. */
export function serversDiffer(report: CheckReport): boolean {
  const seen = valuesSeen(report)
  return report.nameservers.some(
    ({ outcome, values }) => isDnsData(outcome) && seen.some((value) => !values.includes(value)),
  )
}

/** No cache keeps a record for longer (RFC 8767 section 4), whatever its TTL. */
const MAX_CACHE_SECONDS = 7 * 86_400

/** The time left in a cache: `45 more seconds`; `up to 7 days` if it is longer than anyone counts in seconds. */
export function cacheTime(seconds: number, more: 'more ' | '' = ''): string {
  return seconds <= 86_400
    ? `${seconds} ${more}seconds`
    : `up to ${formatDuration(Math.min(seconds, MAX_CACHE_SECONDS))}`
}

/** How long to wait, as a sentence without its full stop; undefined if waiting makes no difference. */
export function waitingTime({ verdict, retry_after_seconds }: CheckReport): string | undefined {
  if (!retry_after_seconds) return undefined
  const time = formatDuration(retry_after_seconds)
  // What remains to wait for isn't always a cache: name servers copy the zone from each other.
  return verdict === 'wait' ? `Try again in ${time}` : `Caches may keep the old state for up to ${time}`
}

/** What to add, for the end of a fix, where the value is easy to copy. Without an expected value, whatever is to be there. */
export function addedRecord({
  name,
  zone,
  expected,
}: {
  readonly name: string
  readonly zone: string
  readonly expected: string | null
}): Text {
  return expected === null
    ? `TXT records at ${name}`
    : text`a TXT record in the zone ${zone}: host ${relativeName(name, zone)}, value ${unquoted(expected)}`
}

/** A few values, long ones shortened; the evidence has all of them. */
export function listValues(values: readonly TxtValue[]): Text {
  if (values.length === 0) return 'nothing'
  const shown = join(
    decodeValues(values.slice(0, 3)).map((value) => quote(shorten(value, 100))),
    ', ',
  )
  return values.length > 3 ? text`${shown} and ${values.length - 3} more` : shown
}
