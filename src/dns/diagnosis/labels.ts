import type { Outcome } from '../observation/observations.ts'
import type { Verdict } from './report.ts'

/** What an outcome is called where people read it. */
export const OUTCOME_LABELS: Readonly<Record<Outcome, string>> = {
  match: 'has it',
  mismatch: 'other value',
  absent: 'no TXT record',
  nxdomain: 'no such name',
  refused: 'refused',
  servfail: 'SERVFAIL',
  timeout: 'no answer',
  unreachable: 'unreachable',
  lame: 'not its zone',
  not_checked: 'not checked',
}

export const VERDICT_LABELS: Readonly<Record<Verdict, string>> = {
  ready: 'ready: the record is visible everywhere',
  ready_with_warning: 'ready, with a warning',
  wait: 'wait: the record is there, but not everywhere yet',
  fix: 'something has to be fixed',
  unknown: 'unknown: DNS could not be asked',
}

/** Seconds as people say them: "45 seconds", "5 minutes", "2 hours". */
export function duration(seconds: number): string {
  const [amount, unit] =
    seconds < 120
      ? [Math.round(seconds), 'second']
      : seconds < 7200
        ? [Math.round(seconds / 60), 'minute']
        : [Math.round(seconds / 3600), 'hour']
  return `${amount} ${unit}${amount === 1 ? '' : 's'}`
}
