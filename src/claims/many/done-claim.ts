import type { Context } from '../../context.ts'
import type { Finding } from '../../dns/diagnosis/finding.ts'
import type { CheckReport } from '../../dns/diagnosis/report.ts'
import { partsOf, type Text, type Value } from '../../dns/diagnosis/text.ts'
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
  const { found_at: place, target, above } = finding.details
  const host = zone === null || zone === name ? undefined : relativeName(name, zone)
  const general = (whole: Text) =>
    generalHost(
      partsOf(whole)
        .map((part) => (typeof part === 'string' ? part : generalValue(part, finding, report)))
        .join(''),
      [host, typeof above === 'string' ? relativeName(name, above) : undefined],
    )
  return {
    code: finding.code,
    message: general(finding.message),
    fix: general(finding.fix),
    hosts: nameservers.map((server) => server.host),
    particulars: {
      DOMAIN: name,
      VALUE: expected,
      ZONE: zone,
      FOUND: typeof place === 'string' ? place : undefined,
      TARGET: typeof target === 'string' ? target : undefined,
    },
  }
}

/** A value in a text, as the word that stands for those of all domains. What differs from the expected value is another one. */
function generalValue({ value, isQuoted }: Value, { seen = [] }: Finding, { name, expected }: CheckReport) {
  const prefix = expected?.slice(0, expected.indexOf('=') + 1)
  const isGeneral = (/^\W*$/.test(value) || value === prefix) && !seen.includes(value)
  const isLabel = !seen.includes(value) && name.split('.').includes(value)
  const isPart = !seen.includes(value) && expected?.includes(value) === true
  const word =
    value === expected ? 'VALUE' : isGeneral ? value : isLabel ? 'HOST' : isPart ? 'PART OF VALUE' : 'FOUND'
  return isQuoted ? `"${word}"` : word
}

/** The text with `HOST` where it has the host of a record: any other word of the text may be spelled like a label. */
function generalHost(text: string, hosts: readonly (string | undefined)[]): string {
  return hosts.reduce<string>((whole, host) => {
    if (host === undefined || host === '@') return whole
    return whole.replaceAll(/(?<=\bhost |\bhost of the record to )[^\s,;()]+/g, (found) =>
      found.replace(/\.$/, '') === host ? found.replace(host, 'HOST') : found,
    )
  }, text)
}
