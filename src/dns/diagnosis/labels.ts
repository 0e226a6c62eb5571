import type { Outcome } from '../observation/observations.ts'
import { decodeValue, type TxtValue } from '../wire/txt-answer.ts'
import type { Verdict } from './report.ts'

/** What an outcome is called where people read it. */
export const OUTCOME_LABELS: Readonly<Record<Outcome, string>> = {
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

export const VERDICT_LABELS: Readonly<Record<Verdict, string>> = {
  ready: 'ready: the record is visible everywhere',
  ready_with_warning: 'ready, with a warning',
  wait: "wait: the record isn't visible everywhere yet",
  fix: 'needs fixing',
  unknown: "unknown: couldn't query DNS",
}

export const quote = (text: string): string => `"${text}"`

/** A few values, long ones cut: the whole of them is in the evidence. */
export function listValues(values: readonly TxtValue[]): string {
  if (values.length === 0) return 'nothing'
  const shown = values.slice(0, 3).map((value) => {
    const text = decodeValue(value.bytes)
    return quote(text.length > 100 ? `${text.slice(0, 100)}…` : text)
  })
  return values.length > 3 ? `${shown.join(', ')} and ${values.length - 3} more` : shown.join(', ')
}
