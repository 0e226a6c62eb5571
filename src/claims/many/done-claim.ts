import type { Context } from '../../context.ts'
import type { Finding } from '../../dns/diagnosis/finding.ts'
import { cacheTime } from '../../dns/diagnosis/labels.ts'
import type { CheckReport } from '../../dns/diagnosis/report.ts'
import { relativeName } from '../../dns/wire/name.ts'
import { CliError, Exit } from '../../errors.ts'
import type { DomainClaim } from '../../service/types.ts'
import type { Settings } from '../../settings/settings.ts'
import { endedError, nameOf, stateOf } from '../lifecycle.ts'
import { mayComplete } from '../precheck.ts'
import { generalize, type Particulars } from './general-text.ts'
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

const needsFix = (unseen: CheckReport | undefined) => unseen !== undefined && unseen.verdict !== 'wait'

/** That the claim is blocked, if it is. */
function blockOf(claim: DomainClaim): readonly Cause[] {
  const state = stateOf(claim)
  return state.phase === 'blocked' ? [claimCause(claim, endedError(claim, state))] : []
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

/** What a check of DNS found that a person has to know: the first finding that says so, and beside it that the claim is blocked. */
export function causesIn(report: CheckReport | undefined): readonly Cause[] {
  if (report === undefined) return []
  const [first, ...others] = report.findings.filter(({ severity }) => severity !== 'info')
  const block = others.find(({ code }) => code === 'claim_blocked')
  return [first, block].flatMap((finding) => (finding === undefined ? [] : [causeIn(report, finding)]))
}

function causeIn(report: CheckReport, finding: Finding): Cause {
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
    // Whoever hosts the DNS has nothing to do with the end of a claim, or a block.
    hosts: ['claim_ended', 'claim_blocked'].includes(code)
      ? undefined
      : report.nameservers.map((server) => server.host),
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
