import type { Context } from '../../context.ts'
import type { CheckReport, Finding } from '../../dns/report.ts'
import { relativeName } from '../../dns/wire/name.ts'
import { CliError, Exit } from '../../errors.ts'
import type { DomainClaim } from '../../service/types.ts'
import type { Settings } from '../../settings/settings.ts'
import type { SeenClaim } from '../current-claim.ts'
import { endedError, nameOf, stateOf } from '../lifecycle.ts'
import { mayComplete } from '../precheck.ts'
import { generalize } from './general-text.ts'
import { type Cause, causeOf, type Done, type Progress, WAITING_FOR_DNS } from './tally.ts'

/**
 * How the work on one of several claims ended. While the claim may still complete, a record that isn't in DNS is a cause of
 * its own.
 *
 * @param event what `--format jsonl` calls it: a line is then an event, as for a single claim
 * @param unseen the check that didn't show the record
 */
export function doneClaim(
  claim: DomainClaim,
  error: CliError | undefined,
  event: string,
  { clock }: Pick<Context, 'clock'>,
  { format }: Pick<Settings, 'format'>,
  unseen?: CheckReport,
): Done {
  const { phase, description } = stateOf(claim)
  const isOpen = error === undefined ? phase !== 'completed' : mayComplete(error)
  const dns = isOpen ? causesIn(unseen) : []
  const own = error === undefined || dns.length > 0 ? blockOf(claim) : [claimCause(claim, error)]
  const at = new Date(clock.now()).toISOString()
  return {
    label: claim.status ?? 'no status',
    item: format === 'jsonl' ? { event, at, message: description, claim } : claim,
    error,
    needsPerson: (error !== undefined && error.exit !== Exit.notYet) || (dns.length > 0 && needsFix(unseen)),
    causes: [...dns, ...own],
  }
}

/** What there is to say beside the work on a claim if the service couldn't be asked about it. */
export function doubtOf({ claim, unasked }: SeenClaim): Pick<Done, 'warning' | 'causes'> | undefined {
  if (unasked === undefined) return undefined
  const particulars = { DOMAIN: nameOf(claim) }
  const cause = {
    code: 'claim_not_asked',
    message: `the service couldn't be asked about the claim (${unasked.message})`,
    fix: 'Make sure that the claim is still open: mailclaim claims get DOMAIN',
    particulars,
  }
  // For programs, which get no summary.
  const warning = `couldn't ask the service about all of these claims (${unasked.message}), so some are as this machine last saw them; to ask: mailclaim claims list --refresh`
  return { warning, causes: [cause] }
}

/** The end of a completed claim whose record couldn't be removed. @param why for people */
export function withLeftover(done: Done, claim: DomainClaim, why: string): Done {
  const particulars = { DOMAIN: nameOf(claim), VALUE: claim.record?.value }
  const cause = {
    code: 'record_not_removed',
    message: generalize(why, particulars),
    isSaid: true,
    fix: 'Remove the record by hand (mailclaim claims record DOMAIN shows it), or run the same command again',
    particulars,
  }
  const message = `the record wasn't removed: ${why}`
  const item = 'event' in done.item ? { ...done.item, message } : done.item
  return { ...done, item, causes: [cause], warning: `${nameOf(claim)}: ${message}` }
}

const needsFix = (unseen: CheckReport | undefined) => unseen !== undefined && unseen.verdict !== 'wait'

/** That the claim is blocked, if it is. */
function blockOf(claim: DomainClaim): readonly Cause[] {
  const state = stateOf(claim)
  return state.phase === 'blocked' ? [claimCause(claim, endedError(claim, state))] : []
}

function claimCause(claim: DomainClaim, error: CliError): Cause {
  const reason = claim.blocked_reason ?? claim.failure_reason
  const particulars = {
    DOMAIN: nameOf(claim),
    ID: claim.domain_id,
    VALUE: claim.record?.value,
    ...error.particulars,
  }
  const own = { ...causeOf(error, particulars), particulars }
  if (reason) return { ...own, code: `${error.code}: ${reason}` }
  const { cause } = error
  if (!(cause instanceof CliError)) return own
  const last = causeOf(cause, particulars)
  // While requests fail, why is what a person has to know. A claim that goes on isn't refused, whatever was.
  return error.exit === Exit.notYet && cause.exit === Exit.refused
    ? { ...own, message: last.message, isSaid: true }
    : { ...last, particulars }
}

/** What a check of DNS found that a person has to know, in the order of the report. */
export function causesIn(report: CheckReport | undefined): readonly Cause[] {
  if (report === undefined) return []
  const findings = report.findings.filter(({ severity }) => severity !== 'info')
  return findings.map((finding) => causeIn(report, finding))
}

function causeIn(report: CheckReport, { code, message, fix, evidence }: Finding): Cause {
  const { name, expected, zone, nameservers } = report
  const particulars = {
    DOMAIN: name,
    VALUE: expected,
    ZONE: zone,
    HOST: zone === null ? undefined : relativeName(name, zone),
    FOUND: textIn(evidence['found_at'] ?? evidence['seen']),
    TARGET: textIn(evidence['target']),
  }
  return {
    particulars,
    code,
    message: generalize(message, particulars),
    own: message,
    fix: generalize(fix, particulars),
    hosts: nameservers.map((server) => server.host),
  }
}

const textIn = (detail: unknown) => (typeof detail === 'string' ? detail : undefined)

/** What a check of DNS found so far, while the work waits for the record. */
export function dnsProgress(report: CheckReport): Progress {
  return { step: WAITING_FOR_DNS, causes: causesIn(report), needsPerson: report.verdict === 'fix' }
}

/**
 * How far a claim is that the service works on; a block can last.
 *
 * @param unseen the check that didn't show the record
 */
export function claimProgress(step: string, claim: DomainClaim, unseen?: CheckReport): Progress {
  const block = blockOf(claim)
  return { step, causes: [...causesIn(unseen), ...block], needsPerson: block.length > 0 || needsFix(unseen) }
}
