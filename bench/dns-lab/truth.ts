import type { Finding, Run } from './program.ts'
import type { Setup } from './setup.ts'

/** What is true of a setup, independent of what the program says. */
export interface Truth {
  readonly verdicts: readonly string[]
  /** The first finding's code is one of these; by default, any that names a cause. */
  readonly codes?: readonly string[]
  /** Must occur in the message or the fix of the first finding. */
  readonly firstMentions?: RegExp
  /** Must occur in some finding. */
  readonly mentions?: RegExp
  /** Must not occur in any finding, because it sends people in the wrong direction. */
  readonly misleads?: RegExp
  /** Harmful advice. */
  readonly never?: RegExp
  /** Bounds of `retry_after_seconds`. */
  readonly seconds?: readonly [min: number, max: number]
  /** Names that don't exist, so resolvers must not be asked about them. */
  readonly unasked?: readonly string[]
}

export interface Broken extends Setup {
  readonly truth: Truth
}

export type Grade = 'right' | 'wrong' | 'generic' | 'harmful'

/** Codes that fit many setups: they say that something is wrong, but not what. */
const GENERIC = new Set(['missing', 'stale_token', 'nameserver_unreachable', 'resolver_broken'])

export interface GradedRun {
  readonly grade: Grade
  /** The reason for the grade. */
  readonly why: string
}

/** Compares a run with the truth. */
export function grade({ truth, zones }: Broken, run: Run, asked: readonly string[]): GradedRun {
  const { report } = run
  if (report === undefined)
    return { grade: 'wrong', why: `no report, exit ${run.exit}: ${run.stderr.slice(0, 200)}` }
  // The domains of the laboratory name their problem; repeating them isn't a diagnosis.
  const textOf = ({ message, fix }: Finding) =>
    zones.reduce((text, { apex }) => text.replaceAll(apex, 'DOMAIN'), `${message}\n→ ${fix}`)
  const [first] = report.findings
  const all = report.findings.map(textOf).join('\n')
  const harm = truth.never?.exec(all)
  if (harm) return { grade: 'harmful', why: `says "${harm[0]}"` }
  const planted = truth.unasked?.filter((name) => asked.includes(name)) ?? []
  if (planted.length > 0) return { grade: 'harmful', why: `asked the resolver about ${planted.join(', ')}` }
  const misled = truth.misleads?.exec(all)
  if (misled) return { grade: 'wrong', why: `says "${misled[0]}"` }
  const code = first?.code ?? 'no finding'
  const isCode = truth.codes?.includes(code) ?? !GENERIC.has(code)
  if (!isCode) return { grade: GENERIC.has(code) ? 'generic' : 'wrong', why: `${report.verdict} ${code}` }
  if (
    truth.firstMentions !== undefined &&
    !truth.firstMentions.test(first === undefined ? '' : textOf(first))
  )
    return { grade: 'generic', why: `${code} does not say ${truth.firstMentions}` }
  if (truth.mentions !== undefined && !truth.mentions.test(all))
    return { grade: 'generic', why: `nothing says ${truth.mentions}` }
  if (!truth.verdicts.includes(report.verdict))
    return { grade: 'wrong', why: `${code}, but verdict ${report.verdict}` }
  const seconds = report.retry_after_seconds
  if (
    truth.seconds !== undefined &&
    (seconds === null || seconds < truth.seconds[0] || seconds > truth.seconds[1])
  )
    return { grade: 'wrong', why: `${code}, but ${seconds} seconds instead of ${truth.seconds.join(' to ')}` }
  return { grade: 'right', why: `${report.verdict} ${code}` }
}
