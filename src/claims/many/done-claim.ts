import type { Context } from '../../context.ts'
import type { CheckReport } from '../../dns/diagnosis/report.ts'
import { plainText } from '../../dns/diagnosis/text.ts'
import { relativeName } from '../../dns/wire/name.ts'
import { type CliError, Exit } from '../../errors.ts'
import type { DomainClaim } from '../../service/types.ts'
import type { Settings } from '../../settings/settings.ts'
import { nameOf, stateOf } from '../lifecycle.ts'
import type { Cause, Done } from './tally.ts'

/**
 * How the work on one of several claims ended.
 *
 * @param event what `--format jsonl` calls it: a line is then an event, as for a single claim
 */
export function doneClaim(
  claim: DomainClaim,
  error: CliError | undefined,
  event: string,
  { clock }: Pick<Context, 'clock'>,
  { format }: Pick<Settings, 'format'>,
): Done {
  const { description } = stateOf(claim)
  const at = new Date(clock.now()).toISOString()
  const reason = claim.blocked_reason ?? claim.failure_reason
  return {
    label: claim.status ?? 'no status',
    item: format === 'jsonl' ? { event, at, message: description, claim } : claim,
    error,
    needsPerson: error !== undefined && error.exit !== Exit.notYet,
    cause: error && {
      code: reason ? `${error.code}: ${reason}` : error.code,
      message: error.message,
      fix: error.hint,
      particulars: { DOMAIN: nameOf(claim), ID: claim.domain_id, VALUE: claim.record?.value },
    },
  }
}

/** What a check of DNS found that a person has to know; undefined if there is nothing. */
export function causeIn(report: CheckReport | undefined): Cause | undefined {
  const finding = report?.findings.find(({ severity }) => severity !== 'info')
  if (report === undefined || finding === undefined) return undefined
  const { name, expected, zone, nameservers } = report
  return {
    code: finding.code,
    message: plainText(finding.message),
    fix: plainText(finding.fix),
    hosts: nameservers.map(({ host }) => host),
    particulars: {
      DOMAIN: name,
      VALUE: expected,
      ZONE: zone,
      'host HOST': zone === null || zone === name ? undefined : `host ${relativeName(name, zone)}`,
    },
  }
}
