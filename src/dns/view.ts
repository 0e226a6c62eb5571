import { domainToUnicode } from 'node:url'
import { type Palette, PLAIN_PALETTE } from '../terminal/color.ts'
import { displayWidth } from '../terminal/measure.ts'
import { formatDuration } from '../terminal/time.ts'
import { formatDnsProviders } from './hosts.ts'
import { isConclusive, OUTCOME_LABELS } from './observations.ts'
import type { CheckReport, NameserverAnswerJson, ResolverAnswerJson } from './report.ts'
import { diffValues, escapeDiffPiece } from './value.ts'
import { type CheckVerdict, capitalizeText, type Evidence, FINDING_TEXTS, fillTemplate } from './words.ts'

/** Symbol of each tone, for readers who can't tell colors apart. */
export const TONE_SYMBOLS = { good: '✓', bad: '✗', warning: '!', faint: 'i' } as const
/** Appearance of a result, finding or answer: good, bad, a warning, or neutral (`faint`). */
export type ReportTone = keyof typeof TONE_SYMBOLS

const VERDICTS: Readonly<Record<CheckVerdict, readonly [result: string, tone: ReportTone]>> = {
  ready: ['ready: the record is visible everywhere', 'good'],
  ready_with_warning: ['ready, with a warning', 'warning'],
  wait: ["wait: the record isn't visible everywhere yet", 'warning'],
  fix: ['needs fixing', 'bad'],
  unknown: ['unknown: this says nothing about the record', 'bad'],
}

/** A report prepared for users, with texts and tones for terminals, Markdown and HTML. */
export type ReportView = ReturnType<typeof toReportView>
/** A finding of a `ReportView`: message and fix as rich text, and a tone. */
export type FindingView = ReportView['findings'][number]
/** One server's answer of a `ReportView`, with a label and a tone. */
export type AnswerView = ReturnType<typeof viewAnswer>

/** Prepares a report for users: adds texts and tones for terminals, Markdown and HTML. */
export function toReportView(report: CheckReport) {
  const { name, expected, nameservers, resolvers, findings } = report
  const isListing =
    expected === null && [...nameservers, ...resolvers].some(({ outcome }) => isConclusive(outcome))
  const listing = report.claim === null ? 'no value was expected' : 'its claim has ended: no value is needed'
  const [result, tone]: readonly [string, ReportTone] = isListing
    ? [listing, 'faint']
    : expected === null && findings[0]?.code === 'domain_not_found'
      ? ["the domain isn't in DNS", 'bad']
      : VERDICTS[report.verdict]
  const unicode = domainToUnicode(name)
  return {
    ...report,
    /** Name in U-labels, followed by its A-labels if they differ (RFC 5890 section 2.3.2.1). */
    title: unicode === '' || unicode === name ? name : `${unicode} (${name})`,
    /**
     * Whether to list the TXT values of the name instead of judging them: no value was expected, and at least one
     * server or resolver gave a conclusive answer, even one without records (see `isConclusive`).
     */
    isListing,
    /** Result in a few words: the text of the verdict (`VERDICTS`), or a more exact one, as for a claim that needs no record. */
    result: report.remark !== undefined ? 'ready: the claim no longer needs its record' : result,
    tone,
    /** DNS provider of the zone, by the names of its servers; null if unknown. */
    provider: formatDnsProviders(nameservers.map(({ host }) => host)),
    /** TXT values of all servers and resolvers, each once. */
    values: [...new Set([...nameservers, ...resolvers].flatMap(({ values }) => values))],
    wait: waitingTime(report),
    nameservers: nameservers.map((answer) => viewAnswer(answer, report)),
    resolvers: resolvers.map((answer) => viewAnswer(answer, report)),
    findings: findings.map(({ code, severity, evidence }) => ({
      ...{ code, severity, evidence, tone: severity === 'error' ? ('bad' as const) : severity },
      message: capitalizeText(fillTemplate(FINDING_TEXTS[code].message, evidence)),
      fix: capitalizeText(fillTemplate(FINDING_TEXTS[code].fix, evidence)),
    })),
  }
}

/**
 * Adds a label and a tone to a server's answer. Values are sorted: the expected one first, then those that findings compare with
 * it (`seen`).
 */
function viewAnswer(answer: NameserverAnswerJson | ResolverAnswerJson, { expected, findings }: CheckReport) {
  const { outcome, values } = answer
  const named: readonly unknown[] = [expected, ...findings.flatMap(({ evidence }) => evidence['seen'])]
  const isAny = expected === null && isConclusive(outcome)
  const tone: ReportTone = outcome === 'match' ? 'good' : outcome === 'not_checked' || isAny ? 'faint' : 'bad'
  return {
    /** Defaults of `host` and `serial` for resolvers, which have neither; a name server's answer overwrites both. */
    host: null,
    serial: null,
    ...answer,
    // Without an expected value, the label "other value" would make no sense, so use that of `match`: "found".
    label: OUTCOME_LABELS[expected === null && outcome === 'mismatch' ? 'match' : outcome],
    tone,
    values: [
      ...new Set([...named.filter((value) => values.includes(value as string)), ...values]),
    ] as string[],
  }
}

/**
 * Returns how long caches and lagging name servers may still give the old answer, as a sentence without a final period;
 * undefined if that is unknown or irrelevant. After a fix, caches matter only if the name had a value or a CNAME before: a record
 * that never existed has hardly been queried.
 */
function waitingTime(report: CheckReport): string | undefined {
  const { verdict, retry_after_seconds: seconds, nameservers } = report
  if (seconds === null || seconds === 0) return undefined
  const time = formatDuration(seconds)
  if (verdict === 'wait') return `Try again in ${time}`
  const wasThere = nameservers.some(({ values, outcome }) => values.length > 0 || outcome === 'alias')
  return wasThere ? `Caches may keep the old state for up to ${time}` : undefined
}

/**
 * Renders a finding's evidence in three lines: the expected value, the value found, and carets below the difference. Returns no
 * lines unless both are single values, and the line of the value found fits into `width` columns.
 */
export function renderValueDifference(
  { expected, seen }: Evidence,
  width: number,
  { good, bad, faint }: Pick<Palette, 'good' | 'bad' | 'faint'> = PLAIN_PALETTE,
): string[] {
  if (typeof expected !== 'string' || typeof seen !== 'string') return []
  const compared = diffValues(expected, seen)
  const texts = compared.seen.map(escapeDiffPiece)
  const start = displayWidth(texts[0] ?? '')
  if (displayWidth(texts.join('')) + 10 > width) return []
  const marked = (pieces: typeof compared.seen, paint: (text: string) => string) =>
    pieces.map((piece) => (piece.differs ? paint(escapeDiffPiece(piece)) : escapeDiffPiece(piece))).join('')
  const carets = compared.seen
    .map(({ differs }, index) => (differs ? '^' : ' ').repeat(displayWidth(texts[index] ?? '')))
    .join('')
    .trimEnd()
  return [
    `expected  ${' '.repeat(compared.seen[0]?.differs ? start : 0)}${marked(compared.expected, good)}`,
    `found     ${marked(compared.seen, bad)}`,
    faint(`          ${carets === '' ? `${' '.repeat(start)}^ missing here` : carets}`),
  ]
}
