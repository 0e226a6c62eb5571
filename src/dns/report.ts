import { CliError, Exit } from '../errors.ts'
import { sanitizeLine } from '../terminal/sanitize.ts'
import { formatDuration } from '../terminal/time.ts'
import { dnsHostOf } from './hosts.ts'
import type { PathStep } from './locate.ts'
import { isDnsData, type Outcome } from './observations.ts'
import {
  type Code,
  type Facts,
  plainText,
  type Severity,
  type Text,
  textOf,
  type Verdict,
  WORDS,
} from './words.ts'

/** The output of `claims check --json`; scripts rely on it. */
export interface CheckReportJson {
  name: string
  /** The whole TXT value; null in a check that only looks. */
  expected: string | null
  verdict: Verdict
  ready: boolean
  /** Seconds for which caches or slow servers may keep the old state; null if unknown or irrelevant. */
  retry_after_seconds: number | null
  /** The claim that the record is for, if the caller knows one. */
  claim: { status: string | null } | null
  /** The zone that holds the name, or null if it wasn't found. */
  zone: string | null
  nameservers: NameserverReport[]
  /** Empty unless the authoritative servers have the record. */
  resolvers: ResolverReport[]
  /** Most likely cause first. */
  findings: Finding[]
}

/** What a check found out. */
export interface CheckReport extends CheckReportJson {
  /** How the zone was found, the topmost zone first; not in the JSON. */
  path: readonly PathStep[]
}

/** One thing that the observations show, and what to tell a person about it. */
export interface Finding {
  code: Code
  severity: Severity
  message: string
  fix: string
  evidence: Facts
}

export interface ResolverReport {
  /** Null if the host has no address. */
  address: string | null
  outcome: Outcome
  /** The TXT values seen, each with its strings joined; as Latin-1 if not valid UTF-8. */
  values: string[]
  ttl: number | null
  ms: number | null
}

export interface NameserverReport extends ResolverReport {
  host: string
  /** Whether the answer had the AA bit (RFC 1035 section 4.1.1). */
  authoritative: boolean
  /** The zone's SOA serial at this server. */
  serial: number | null
}

/** The fields of the JSON report, dotted. */
export const REPORT_FIELDS = [
  ...['name', 'expected', 'verdict', 'ready', 'retry_after_seconds', 'claim.status', 'zone'],
  ...['host', 'address', 'outcome', 'authoritative', 'values', 'ttl', 'serial', 'ms'].map(
    (field) => `nameservers.${field}`,
  ),
  ...['address', 'outcome', 'values', 'ttl', 'ms'].map((field) => `resolvers.${field}`),
  ...['code', 'severity', 'message', 'fix', 'evidence'].map((field) => `findings.${field}`),
]

/** The report for scripts. */
export function reportJson({ path: _, ...report }: CheckReport): CheckReportJson {
  return report
}

/** A finding with its words. */
export function findingOf(code: Code, facts: Facts, severity: Severity = WORDS[code].severity): Finding {
  const { message, fix } = WORDS[code]
  return {
    code,
    severity,
    message: plainText(textOf(message, facts)),
    fix: plainText(textOf(fix, facts)),
    evidence: facts,
  }
}

/** The message or the fix of a finding with its facts kept apart, for formats in which these mustn't become markup. */
export const wordsOf = ({ code, evidence }: Finding, part: 'message' | 'fix'): Text =>
  textOf(WORDS[code][part], evidence)

/** Whether no value was expected, and at least one name server said which TXT records there are. */
export function hasLooked({ expected, nameservers }: CheckReport): boolean {
  return expected === null && nameservers.some(({ outcome }) => isDnsData(outcome))
}

/** The TXT values of all name servers, each once. */
export function valuesSeen({ nameservers }: Pick<CheckReport, 'nameservers'>): string[] {
  return [...new Set(nameservers.flatMap(({ values }) => values))]
}

const VERDICTS: Readonly<Record<Verdict, string>> = {
  ready: 'ready: the record is visible everywhere',
  ready_with_warning: 'ready, with a warning',
  wait: "wait: the record isn't visible everywhere yet",
  fix: 'needs fixing',
  unknown: "unknown: DNS couldn't be queried",
}

/** What came of the check, in a few words. */
export function resultOf(report: CheckReport): string {
  const status = report.claim?.status
  // Whatever is in DNS by now, nobody looks for it any more.
  if (report.ready && (status === 'verified' || status === 'completed'))
    return 'ready: the claim no longer needs its record'
  return hasLooked(report) ? 'no value was expected' : VERDICTS[report.verdict]
}

const OUTCOMES: Readonly<Record<Outcome, string>> = {
  match: 'found',
  mismatch: 'other value',
  absent: 'no TXT record',
  nxdomain: 'no such name',
  alias: 'alias',
  refused: 'refused',
  servfail: 'SERVFAIL',
  timeout: 'no answer',
  unreachable: 'unreachable',
  lame: 'not authoritative',
  not_checked: 'not checked',
}

/** How a server answered. Without an expected value, none is another one. */
export function outcomeLabel(outcome: Outcome, { expected }: Pick<CheckReport, 'expected'>): string {
  return expected === null && outcome === 'mismatch' ? OUTCOMES.match : OUTCOMES[outcome]
}

/** How something looks: good, bad, a warning, or neither. */
export type Tone = 'good' | 'bad' | 'warning' | 'faint'

/** How an answer looks: red only where it is the answer that is wrong. */
export function toneOf(outcome: Outcome, { expected }: Pick<CheckReport, 'expected'>): Tone {
  if (outcome === 'match') return 'good'
  return outcome === 'not_checked' || (expected === null && isDnsData(outcome)) ? 'faint' : 'bad'
}

/** How the result looks. */
export function resultTone(report: CheckReport): Tone {
  if (hasLooked(report)) return 'faint'
  if (report.verdict === 'ready') return 'good'
  return report.ready || report.verdict === 'wait' ? 'warning' : 'bad'
}

export const SEVERITY_TONES = { error: 'bad', warning: 'warning', info: 'faint' } as const

/** Who hosts the zone, by the names of its servers; null if these don't tell. */
export const hostOf = ({ nameservers }: CheckReport): string | null =>
  dnsHostOf(nameservers.map(({ host }) => host))

/** The first of many values, and the number of the others. */
export function firstOf(
  values: readonly string[],
  most: number,
): { first: readonly string[]; more: string[] } {
  const left = values.length - most
  return { first: values.slice(0, most), more: left > 0 ? [`and ${left} more`] : [] }
}

/** How a report was made. */
export interface ReportContext {
  /** Milliseconds since 1970. */
  readonly at: number
  readonly version: string
  /** Where the search for the name servers started. */
  readonly resolvers: readonly string[]
}

/** How long to wait, without a full stop; undefined if waiting makes no difference. */
export function waitingTime({ verdict, retry_after_seconds: seconds }: CheckReport): string | undefined {
  if (seconds === null || seconds === 0) return undefined
  const time = formatDuration(seconds)
  return verdict === 'wait' ? `Try again in ${time}` : `Caches may keep the old state for up to ${time}`
}

/**
 * The error with which a command ends after this report; undefined if the record is ready, or if no value was expected. `record_not_visible` (exit 8) if something needs fixing or waiting for, `dns_unavailable` (exit 7)
 * if DNS couldn't be queried, `invalid_name` (exit 2).
 *
 * @param findingsShown whether the findings have just been printed, so the error doesn't repeat them
 */
export function exitErrorOf(report: CheckReport, findingsShown = false): CliError | undefined {
  const [first] = report.findings
  const isInvalid = first?.code === 'invalid_name'
  if (report.ready || (report.expected === null && !isInvalid)) return undefined
  const [code, exit, summary] = isInvalid
    ? (['invalid_name', Exit.usage, `"${report.name}" isn't a domain name`] as const)
    : report.verdict === 'unknown'
      ? (['dns_unavailable', Exit.unavailable, `can't tell what is at ${report.name}`] as const)
      : (['record_not_visible', Exit.notYet, `the record isn't ready at ${report.name}`] as const)
  if (first === undefined || findingsShown) return new CliError(code, exit, summary)
  return new CliError(code, exit, first.message, { hint: sanitizeLine(first.fix) })
}
