import { comparedPieces, type Piece } from '../diagnosis/characters.ts'
import type { CheckReport } from '../diagnosis/report.ts'
import { isDnsData, type Outcome } from '../observation/observations.ts'
import type { Look } from './drawing.ts'

const SHAPES = {
  match: 'check',
  mismatch: 'differs',
  absent: 'dash',
  nxdomain: 'dash',
  refused: 'cross',
  servfail: 'cross',
  timeout: 'question',
  unreachable: 'question',
  lame: 'exclamation',
  not_checked: 'info',
} as const satisfies Record<Outcome, string>

/** How an answer looks. Without an expected value, any that says what is there is neutral. */
export function outcomeLook(outcome: Outcome, { expected }: Pick<CheckReport, 'expected'>): Look {
  if (expected === null && outcome === 'mismatch') return { tone: 'neutral', shape: 'check' }
  const isNeutral = outcome === 'not_checked' || (expected === null && isDnsData(outcome))
  return { tone: outcome === 'match' ? 'good' : isNeutral ? 'neutral' : 'bad', shape: SHAPES[outcome] }
}

export const SEVERITY_LOOKS = {
  error: { tone: 'bad', shape: 'cross' },
  warning: { tone: 'warning', shape: 'exclamation' },
  info: { tone: 'neutral', shape: 'info' },
} as const

/** The values that should have been the expected one, by what the findings say. */
const wrongValues = ({ findings }: CheckReport): readonly string[] =>
  findings.flatMap(({ severity, seen }) => (severity !== 'info' && seen?.length === 1 ? seen : []))

/** Whether it is the expected value, or should be. */
export function isRelated(value: string, report: CheckReport): boolean {
  const { expected } = report
  return expected === null || value === expected || wrongValues(report).includes(value)
}

/** The value as it was found, marked where it should be different. */
export function piecesOf(value: string, report: CheckReport): readonly Piece[] {
  const { expected } = report
  return expected === null || value === expected || !isRelated(value, report)
    ? [{ text: value, differs: false }]
    : comparedPieces(expected, value).seen
}

/** The expected value, marked where the wrong one differs. */
export function expectedPieces(report: CheckReport): readonly Piece[] {
  const { expected } = report
  const [seen] = wrongValues(report)
  if (expected === null) return []
  return seen === undefined ? [{ text: expected, differs: false }] : comparedPieces(expected, seen).expected
}

/** Whether the server said anything. */
export const hasAnswered = (outcome: Outcome) =>
  outcome !== 'timeout' && outcome !== 'unreachable' && outcome !== 'not_checked'
