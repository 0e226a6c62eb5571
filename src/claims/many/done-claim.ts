import type { Context } from '../../context.ts'
import { exitErrorOf } from '../../dns/diagnosis/exit-status.ts'
import type { Finding } from '../../dns/diagnosis/finding.ts'
import { cacheTime } from '../../dns/diagnosis/labels.ts'
import type { CheckReport } from '../../dns/diagnosis/report.ts'
import { relativeName } from '../../dns/wire/name.ts'
import { CliError, Exit } from '../../errors.ts'
import type { DomainClaim } from '../../service/types.ts'
import type { Settings } from '../../settings/settings.ts'
import { endedError, nameOf, stateOf } from '../lifecycle.ts'
import { generalize, type Particulars } from './general-text.ts'
import { type Cause, causeOf, type Done, type Progress, WAITING_FOR_DNS } from './tally.ts'

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
  return {
    label: claim.status ?? 'no status',
    item: format === 'jsonl' ? { event, at, message: description, claim } : claim,
    error,
    needsPerson: error !== undefined && error.exit !== Exit.notYet,
    cause: error && claimCause(claim, error),
  }
}

/** The same, where the service goes on although a check didn't show the record: until the claim ends, that is the cause. */
export function withUnseen(done: Done, report: CheckReport | undefined): Done {
  const { error } = done
  const cause = causeIn(report)
  const failure = report && exitErrorOf(report)
  if (cause === undefined || failure === undefined || (error && error.exit !== Exit.notYet)) return done
  const hint = [error?.hint, `DNS: ${failure.message}`, failure.hint]
  return {
    ...done,
    cause,
    needsPerson: report?.verdict !== 'wait',
    error:
      error && new CliError(error.code, error.exit, error.message, { hint: hint.filter(Boolean).join('\n') }),
  }
}

function claimCause(claim: DomainClaim, error: CliError): Cause {
  const reason = claim.blocked_reason ?? claim.failure_reason
  const particulars = { DOMAIN: nameOf(claim), ID: claim.domain_id, VALUE: claim.record?.value }
  // While requests fail, why is what a person has to know.
  const last = error.cause instanceof CliError ? error.cause : error
  const cause = { ...causeOf(last, particulars), particulars }
  return reason ? { ...cause, code: `${error.code}: ${reason}` } : cause
}

/** FOUND then stands for all of them. */
const SEVERAL_FOUND = /"FOUND"(?:(?:, | and )"FOUND")+/

/** What a check of DNS found that a person has to know; undefined if there is nothing. */
export function causeIn(report: CheckReport | undefined): Cause | undefined {
  const finding = report?.findings.find(({ severity }) => severity !== 'info')
  if (report === undefined || finding === undefined) return undefined
  const { code, message, fix } = finding
  const { error, blocked_reason: reason } = finding.details
  const particulars = particularsIn(report, finding)
  return {
    particulars: { ...particulars, FOUND: particulars['FOUND'] ?? finding.seen?.join('" and "') },
    // A claim can end in several ways, with another fix for each.
    code:
      code === 'claim_blocked' && reason
        ? `${code}: ${reason}`
        : (code === 'claim_ended' && textIn(error)) || code,
    message: generalize(message, particulars, (value) => wordInMessage(value, finding, report)).replace(
      SEVERAL_FOUND,
      '"FOUND"',
    ),
    fix: generalize(fix, particulars),
    // Whoever hosts the DNS has nothing to do with the end of a claim.
    hosts: code === 'claim_ended' ? undefined : report.nameservers.map((server) => server.host),
  }
}

/** What is particular to a domain in the texts of a finding about it. */
export function particularsIn({ name, expected, zone }: CheckReport, finding: Finding): Particulars {
  const { found_at: place, target, chain, above } = finding.details
  const [seen, ...others] = finding.seen ?? []
  const parent = textIn(above)
  return {
    DOMAIN: name,
    VALUE: expected,
    ZONE: zone,
    HOST: zone === null ? undefined : relativeName(name, parent ?? zone),
    PARENT: parent,
    FOUND: textIn(place) ?? (others.length === 0 ? seen : undefined),
    TARGET: textIn(target) ?? (Array.isArray(chain) ? textIn(chain.at(-1)) : undefined),
    TIME: finding.secondsLeft === undefined ? undefined : cacheTime(finding.secondsLeft),
  }
}

const textIn = (detail: unknown) => (typeof detail === 'string' ? detail : undefined)

/** The word for a value in a message, such as a part of the expected one; undefined if the value goes for all domains. */
function wordInMessage(value: string, { seen = [] }: Finding, { name, expected }: CheckReport) {
  if (seen.includes(value)) return 'FOUND'
  const prefix = expected?.slice(0, expected.indexOf('=') + 1)
  if (/^\W*$/.test(value) || value === prefix) return undefined
  if (name.split('.').includes(value)) return 'HOST'
  return expected?.includes(value) ? 'PART OF VALUE' : 'FOUND'
}

/** What a check of DNS found so far, while the work waits for the record. */
export function dnsProgress(report: CheckReport): Progress {
  return { step: WAITING_FOR_DNS, cause: causeIn(report), needsPerson: report.verdict === 'fix' }
}

/**
 * How far a claim is that the service works on; a block can last.
 *
 * @param unseen the check that didn't show the record
 */
export function claimProgress(step: string, claim: DomainClaim, unseen?: CheckReport): Progress {
  const state = stateOf(claim)
  if (state.phase === 'blocked')
    return { step, cause: claimCause(claim, endedError(claim, state)), needsPerson: true }
  return { step, cause: causeIn(unseen), needsPerson: unseen !== undefined && unseen.verdict !== 'wait' }
}
