import type { Context } from '../../context.ts'
import type { Finding } from '../../dns/diagnosis/finding.ts'
import { cacheTime } from '../../dns/diagnosis/labels.ts'
import type { CheckReport } from '../../dns/diagnosis/report.ts'
import { serverText } from '../../dns/diagnosis/server-list.ts'
import { plainText } from '../../dns/diagnosis/text.ts'
import { relativeName } from '../../dns/wire/name.ts'
import { CliError, Exit } from '../../errors.ts'
import type { DomainClaim } from '../../service/types.ts'
import type { Settings } from '../../settings/settings.ts'
import { escapeCodePoint } from '../../terminal/sanitize.ts'
import type { SeenClaim } from '../current-claim.ts'
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

/** FOUND then stands for all of them. */
const SEVERAL_FOUND = /"FOUND"(?:(?:, | and )"FOUND")+/

/** What a check of DNS found that a person has to know, in the order of the report. */
export function causesIn(report: CheckReport | undefined): readonly Cause[] {
  if (report === undefined) return []
  const findings = report.findings.filter(({ severity }) => severity !== 'info')
  return findings.map((finding) => causeIn(report, finding))
}

function causeIn(report: CheckReport, finding: Finding): Cause {
  const { code, fix } = finding
  const { error, blocked_reason: block, failure_reason: failure } = finding.details
  const particulars = particularsIn(report, finding)
  const found: string[] = []
  const message = generalize(finding.message, particulars, (value) => {
    const word = wordInMessage(value, finding, report)
    if (word === 'FOUND') found.push(value)
    return word
  })
  const { FOUND } = particulars
  const values = FOUND ? [FOUND] : (finding.seen ?? found)
  return {
    particulars: { ...particulars, FOUND: listed(values.map(visible)) },
    // A claim can end in several ways, with another fix for each.
    code: code.startsWith('claim_')
      ? [textIn(error) ?? code, textIn(block) ?? textIn(failure)].filter(Boolean).join(': ')
      : code,
    message: message.replace(SEVERAL_FOUND, 'FOUND'),
    own: plainText(finding.message),
    fix: generalize(fix, particulars),
    // Whoever hosts the DNS has nothing to do with the claim.
    hosts: code.startsWith('claim_') ? undefined : report.nameservers.map((server) => server.host),
  }
}

/** Several values in quotation marks. */
const listed = (values: readonly string[]) =>
  values.length > 1 ? values.map((value) => `"${value}"`).join(', ') : values[0]

/** A value whose spaces are visible where a person would miss them. */
const visible = (value: string) =>
  value.replaceAll(/^\s+|\s+$|[^\S ]/g, (spaces) => [...spaces].map(escapeCodePoint).join(''))

/** What is particular to a domain in the texts of a finding about it. */
export function particularsIn({ name, expected, zone }: CheckReport, finding: Finding): Particulars {
  const { found_at: place, target, chain, above, domain, servers } = finding.details
  const [seen, ...others] = finding.seen ?? []
  const parent = textIn(above)
  return {
    DOMAIN: name,
    VALUE: expected,
    ZONE: textIn(domain) ?? zone,
    HOST: zone === null ? undefined : relativeName(name, parent ?? zone),
    PARENT: parent,
    FOUND: textIn(place) ?? (others.length === 0 ? seen : undefined),
    TARGET: textIn(target) ?? (Array.isArray(chain) ? textIn(chain.at(-1)) : undefined),
    SERVER: serversIn(servers),
    TIME: finding.secondsLeft === undefined ? undefined : cacheTime(finding.secondsLeft),
  }
}

/** The servers in the details of a finding, as `listServers` has them in its message. */
function serversIn(detail: unknown): string | undefined {
  if (!Array.isArray(detail)) return undefined
  const servers = detail as (string | { readonly host: string; readonly address: string | null })[]
  return servers
    .map((server) => (typeof server === 'string' ? server : serverText(server.host, server.address)))
    .join(', ')
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
