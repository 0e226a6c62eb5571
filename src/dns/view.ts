import { domainToUnicode } from 'node:url'
import { type Palette, PLAIN_PALETTE } from '../terminal/color.ts'
import { widthOf } from '../terminal/measure.ts'
import { formatDuration } from '../terminal/time.ts'
import { dnsHostOf } from './hosts.ts'
import { isDnsData, OUTCOMES } from './observations.ts'
import type { CheckReport, NameserverReport, ResolverReport } from './report.ts'
import { comparedPieces, readablePiece } from './value.ts'
import { type Facts, textOf, toSentence, type Verdict, WORDS } from './words.ts'

/** Symbol of each tone, for readers who can't tell colors apart. */
export const SYMBOLS = { good: '✓', bad: '✗', warning: '!', faint: 'i' } as const
/** How something looks: good, bad, a warning, or neither. */
export type Tone = keyof typeof SYMBOLS

const VERDICTS: Readonly<Record<Verdict, readonly [result: string, tone: Tone]>> = {
  ready: ['ready: the record is visible everywhere', 'good'],
  ready_with_warning: ['ready, with a warning', 'warning'],
  wait: ["wait: the record isn't visible everywhere yet", 'warning'],
  fix: ['needs fixing', 'bad'],
  unknown: ['unknown: this says nothing about the record', 'bad'],
}

export type ReportView = ReturnType<typeof viewReport>
export type FindingView = ReportView['findings'][number]
export type AnswerView = ReturnType<typeof viewAnswer>

/** What every format of a report for people shows, in words; how it looks is theirs. */
export function viewReport(report: CheckReport) {
  const { name, expected, nameservers, resolvers, findings } = report
  const isListing =
    expected === null && [...nameservers, ...resolvers].some(({ outcome }) => isDnsData(outcome))
  const [result, tone]: readonly [string, Tone] = isListing
    ? ['no value was expected', 'faint']
    : expected === null && findings[0]?.code === 'domain_not_found'
      ? ["the domain isn't in DNS", 'bad']
      : VERDICTS[report.verdict]
  const unicode = domainToUnicode(name)
  return {
    ...report,
    /** In Unicode, followed by its ASCII form if that differs (RFC 5890 section 2.3.2.1). */
    title: unicode === '' || unicode === name ? name : `${unicode} (${name})`,
    /** Whether no value was expected, and at least one name server said which TXT records there are. */
    isListing,
    /** What came of the check, in a few words. */
    result: report.remark !== undefined ? 'ready: the claim no longer needs its record' : result,
    tone,
    /** Who hosts the zone, by the names of its servers; null if these don't tell. */
    host: dnsHostOf(nameservers.map(({ host }) => host)),
    /** The TXT values that were seen, each once. */
    values: [...new Set([...nameservers, ...resolvers].flatMap(({ values }) => values))],
    wait: waitingTime(report),
    nameservers: nameservers.map((answer) => viewAnswer(answer, report)),
    resolvers: resolvers.map((answer) => viewAnswer(answer, report)),
    findings: findings.map(({ code, severity, evidence }) => ({
      ...{ code, severity, evidence, tone: severity === 'error' ? ('bad' as const) : severity },
      message: toSentence(textOf(WORDS[code].message, evidence)),
      fix: toSentence(textOf(WORDS[code].fix, evidence)),
    })),
  }
}

/** An answer with its words; red only where the answer is what is wrong. The expected value is first, then those of findings. */
function viewAnswer(answer: NameserverReport | ResolverReport, { expected, findings }: CheckReport) {
  const { outcome, values } = answer
  const named: readonly unknown[] = [expected, ...findings.flatMap(({ evidence }) => evidence['seen'])]
  const isAny = expected === null && isDnsData(outcome)
  const tone: Tone = outcome === 'match' ? 'good' : outcome === 'not_checked' || isAny ? 'faint' : 'bad'
  return {
    /** Null, of resolvers. */
    host: null,
    serial: null,
    ...answer,
    // Without an expected value, none is another one.
    label: OUTCOMES[expected === null && outcome === 'mismatch' ? 'match' : outcome],
    tone,
    values: [
      ...new Set([...named.filter((value) => values.includes(value as string)), ...values]),
    ] as string[],
  }
}

/**
 * How long to wait, without a full stop; undefined if waiting makes no difference. After a correction it does only if there was
 * something to cache: hardly anybody has asked for a record that was never there.
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
 * The expected value above the one found, with carets below the difference; nothing if they can't be compared, or if that is
 * wider than so many columns.
 */
export function differenceLines(
  { expected, seen }: Facts,
  width: number,
  { good, bad, faint }: Pick<Palette, 'good' | 'bad' | 'faint'> = PLAIN_PALETTE,
): string[] {
  if (typeof expected !== 'string' || typeof seen !== 'string') return []
  const compared = comparedPieces(expected, seen)
  const texts = compared.seen.map(readablePiece)
  const start = widthOf(texts[0] ?? '')
  if (widthOf(texts.join('')) + 10 > width) return []
  const marked = (pieces: typeof compared.seen, paint: (text: string) => string) =>
    pieces.map((piece) => (piece.differs ? paint(readablePiece(piece)) : readablePiece(piece))).join('')
  const carets = compared.seen
    .map(({ differs }, index) => (differs ? '^' : ' ').repeat(widthOf(texts[index] ?? '')))
    .join('')
    .trimEnd()
  return [
    `expected  ${' '.repeat(compared.seen[0]?.differs ? start : 0)}${marked(compared.expected, good)}`,
    `found     ${marked(compared.seen, bad)}`,
    faint(`          ${carets === '' ? `${' '.repeat(start)}^ missing here` : carets}`),
  ]
}
