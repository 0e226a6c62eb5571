import type { ExpectedTxt } from '../dns/check.ts'
import { isConclusive } from '../dns/observations.ts'
import { type CheckReport, type CheckReportJson, exitErrorOf, toReportJson } from '../dns/report.ts'
import { formatResolver } from '../dns/wire/address.ts'
import { type CliError, usageError } from '../errors.ts'
import type { DomainClaim } from '../service/types.ts'
import { getDnsSettings } from '../settings/settings.ts'
import { mailclaimCommand } from '../shell-quote.ts'
import type { Column } from '../terminal/columns.ts'
import type { Io } from '../terminal/io.ts'
import { createRenderContext, hasOwnLayout } from '../terminal/output.ts'
import { sanitizeLine } from '../terminal/sanitize.ts'
import { describeLedger } from './ledger.ts'
import { describeDomain, domainArg, getClaimState } from './lifecycle.ts'
import { type ClaimReader, parseDomain, resolveToClaimOrDomain } from './load.ts'
import { parseClaimTxtValue, requireExpectedTxt } from './record.ts'
import {
  createDnsWaitPrinter,
  type DnsCheckOptions,
  type RefetchableClaim,
  toTimeoutError,
  watchDns,
} from './watch-dns.ts'

/** Result of `claims check` for one domain. */
export interface CheckReportWithError {
  readonly report: CheckReport
  /** The error that the check ends with; undefined for exit 0. */
  readonly error?: CliError | undefined
  /** The next step for a claim whose record is visible in DNS: to have it verified. Ignored if `error` is set. */
  readonly hint?: string | undefined
}

/**
 * Checks DNS for the given value, else for the record of the domain's claim. Without a value to expect, reports the TXT values at
 * the name.
 *
 * @param domain a domain name, or the `domain_id` of a claim; if undefined, the user picks a claim from the ledger
 * @param value the TXT value to expect instead of the claim's
 * @param isExact whether to check exactly the name `domain` (`--name`), even if it has a claim with a record at another name
 * @throws CliError as `resolveToClaimOrDomain`, `readClaim` and `requireExpectedTxt`; exit 2 for a malformed value, for a value
 *   with an id that the ledger doesn't have, or for `wait` without a value or claim
 */
export async function checkClaimOrValue(
  domain: string | undefined,
  { value, isExact = false }: { readonly value?: string | undefined; readonly isExact?: boolean },
  options: DnsCheckOptions,
  readClaim: ClaimReader,
  io: Io,
): Promise<CheckReportWithError> {
  const expected = value === undefined ? null : parseClaimTxtValue(value, '--value')
  const found = isExact ? { domain: parseDomain(domain ?? '') } : await resolveToClaimOrDomain(domain, io)
  if (expected !== null && expected !== value)
    await io.warn('ignoring spaces, quotation marks, or invisible characters around --value')
  if ('domain' in found) {
    const { domain: name } = found
    if (options.wait && expected === null)
      throw usageError(`--wait needs a value to wait for, and no claim of ${name} is known`, 'add --value')
    return checkRecord({ name, expected, mayBeCut: true }, undefined, options, io)
  }
  const { entry, domainId, name: asked } = found
  if (expected !== null) {
    if (entry === undefined)
      throw usageError(`"${domain}" is neither a domain nor a claim that is known ${describeLedger(io)}`)
    const own = requireExpectedTxt(entry.claim, asked)
    return checkRecord({ ...own, expected, mayBeCut: expected !== own.expected }, undefined, options, io)
  }
  const first = await readClaim(found, options.deadline)
  let claim = first
  const readAgain = async () => {
    claim = await readClaim({ ...found, entry: entry && { ...entry, claim } }, options.deadline)
    return claim
  }
  const { isOpen, phase } = getClaimState(first, io.clock.now())
  // The service may omit the record of a claim that has ended, for which `requireExpectedTxt` would throw.
  const hasRecord = isOpen || first.record?.value
  const own = hasRecord ? requireExpectedTxt(first, asked) : { name: asked ?? first.name ?? domainId }
  // The value of a claim that ended without success is useless in DNS, so expect none: the report then lists the TXT values.
  const wanted = { expected: null, ...own, ...(!isOpen && phase !== 'completed' && { expected: null }) }
  const checked = await checkRecord(wanted, { claim: first, read: readAgain }, options, io)
  return applyClaim(checked, claim, io.clock.now())
}

/**
 * Adds the claim's state to the result of its DNS check. A claim that the service has accepted or completed needs no record, so
 * the check is `ready`. For a claim that ended without success, the result has the claim's error.
 */
function applyClaim(checked: CheckReportWithError, claim: DomainClaim, now: number): CheckReportWithError {
  const { report, error } = checked
  const judged = getClaimState(claim, now)
  const own = { ...report, claim: { status: claim.status ?? 'unknown' } }
  const over = { retry_after_seconds: null, findings: [] }
  if (!judged.isOpen && judged.error !== undefined) {
    // Remove the findings: if the claim ended during the wait for DNS, they still tell the user to publish the claim's value,
    // which is useless now.
    const unasked = { ...over, expected: null, verdict: 'unknown', ready: false } as const
    return { report: report.expected === null ? own : { ...own, ...unasked }, error: judged.error }
  }
  const hint = judged.needsRecord ? `to verify it: mailclaim claim${domainArg(claim)}` : undefined
  if (judged.needsRecord || judged.phase === 'blocked') return { report: own, error, hint }
  const remark = `${describeDomain(claim)} no longer needs its record: ${judged.text}`
  return { report: { ...own, ...over, verdict: 'ready', ready: true, remark } }
}

/**
 * Checks DNS once; with `wait`, repeats the check as `watchDns` does, if a value is expected and the claim, if any, needs its
 * record.
 */
async function checkRecord(
  wanted: ExpectedTxt,
  of: RefetchableClaim | undefined,
  options: DnsCheckOptions,
  io: Io,
): Promise<CheckReportWithError> {
  const waits =
    options.wait && wanted.expected !== null && (!of || getClaimState(of.claim, io.clock.now()).needsRecord)
  if (waits || io.stderr.isTTY) await io.progress.update(`querying the name servers of ${wanted.name}`)
  try {
    let last: CheckReport | undefined
    const { reportWait = createDnsWaitPrinter(io) } = options
    for await (const { report, nextInMs, news } of watchDns(wanted, of, options, io)) {
      last = report
      if (!waits || nextInMs === null) break
      options.releaseSlot?.()
      await reportWait(report, news, nextInMs)
    }
    // `watchDns` yields at least one check or throws, so `last` is defined here.
    const report = last as CheckReport
    const failure = exitErrorOf(report, printsFindings(io))
    return { report, error: waits ? failure && toTimeoutError(failure, options.deadline) : failure }
  } finally {
    await io.progress.end()
  }
}

/** Whether the format prints the findings for the user, so that the error needn't repeat them. */
const printsFindings = ({ settings }: Io): boolean =>
  hasOwnLayout(settings) || ['markdown', 'html'].includes(settings.format)

/** Notice for a check without a value to expect, which ends with exit 0 whatever DNS has. */
const NO_VALUE_NOTICE =
  'no claim is known here, so no value was looked for: give it with --value, or as domain,value in a list'

/**
 * Tells the user that a check had no value to look for; or warns of the first finding instead, if no server gave a conclusive
 * answer and the format doesn't print the findings.
 */
export async function sayNoValueWasExpected(
  { findings, nameservers, resolvers }: CheckReportJson,
  io: Io,
): Promise<void> {
  const [first] = findings
  const hasSeen = [...nameservers, ...resolvers].some(({ outcome }) => isConclusive(outcome))
  if (first === undefined || hasSeen || printsFindings(io)) await io.say(NO_VALUE_NOTICE)
  else await io.warn(first.message)
}

/** Returns the row of a domain whose check ended with an error: a report with verdict `unknown`, and without servers. */
export const emptyReport = (name: string): CheckReportJson => ({
  name,
  expected: null,
  verdict: 'unknown',
  ready: false,
  retry_after_seconds: null,
  claim: null,
  zone: null,
  nameservers: [],
  resolvers: [],
  findings: [],
})

/** Writes the DNS report of one domain to stdout. @param columns of the report in TSV, and in a table with `--fields` */
export async function printDnsReport(
  { report }: CheckReportWithError,
  { publicResolvers }: DnsCheckOptions,
  columns: readonly Column[],
  io: Io,
): Promise<void> {
  const { stdout, settings, clock, installation } = io
  const { format } = settings
  if (format === 'markdown' || format === 'html') {
    const { name, expected } = report
    const { resolvers, authoritativePort } = getDnsSettings(settings)
    const asked = (resolvers === 'system' ? await io.dns.systemResolvers() : resolvers).map(formatResolver)
    // Name the value, resolvers and port in the report's command line: whoever repeats the check may have neither this claim nor
    // these settings.
    const words = [
      ...(expected === null ? [name] : ['--name', name, '--value', expected]),
      ...(resolvers === 'system' ? [] : asked.flatMap((one) => ['--resolver', one])),
      ...(authoritativePort === 53 ? [] : ['--authoritative-port', String(authoritativePort)]),
      ...(publicResolvers ? ['--public-resolvers'] : []),
    ]
    const made = {
      at: clock.now(),
      version: installation.version,
      resolvers: asked,
      command: mailclaimCommand(['claims', 'check', ...words], io.platform),
    }
    const render =
      format === 'markdown'
        ? (await import('../dns/markdown.ts')).renderMarkdownReport
        : (await import('../dns/html.ts')).renderHtmlReport
    return stdout.write(render(report, made))
  }
  if (!hasOwnLayout(settings)) return io.write(toReportJson(report), columns)
  if (report.remark !== undefined) return stdout.write(`${sanitizeLine(report.remark)}\n`)
  const { renderTerminalReport } = await import('../dns/terminal.ts')
  await stdout.write(renderTerminalReport(report, await createRenderContext(io)))
}
