import type { WantedRecord } from '../dns/check.ts'
import { isDnsData } from '../dns/observations.ts'
import { type CheckReport, type CheckReportJson, exitErrorOf, reportJson } from '../dns/report.ts'
import { formatDnsAddress } from '../dns/wire/address.ts'
import { type CliError, usageError } from '../errors.ts'
import type { DomainClaim } from '../service/types.ts'
import { dnsSettings } from '../settings/settings.ts'
import { commandLine } from '../shell-quote.ts'
import type { Column } from '../terminal/columns.ts'
import type { Io } from '../terminal/io.ts'
import { createRenderContext } from '../terminal/output.ts'
import { sanitizeLine } from '../terminal/sanitize.ts'
import { ledgerInForce } from './ledger.ts'
import { judge, nameOf } from './lifecycle.ts'
import { type ClaimReader, findClaimOrDomain, parseDomain } from './load.ts'
import { readValue, wantedBy } from './record.ts'
import {
  type CheckOptions,
  checkOnce,
  createWaitTeller,
  notInTime,
  type WatchedClaim,
  watchDns,
} from './watch-dns.ts'

/** What came of a check. */
export interface Checked {
  readonly report: CheckReport
  /** How the command ends. */
  readonly error?: CliError | undefined
}

/**
 * Checks the record of a claim, or for a value at its name; of a domain without a known claim, shows what is in DNS.
 *
 * @param domain a claim or a domain; picked from a list if nothing was typed
 * @param value what a person gave, instead of the value of the claim's record
 * @param isExact whether the domain is the name to check, whether or not it has a claim
 */
export async function checkSubject(
  domain: string | undefined,
  { value, isExact = false }: { readonly value?: string | undefined; readonly isExact?: boolean },
  options: CheckOptions,
  readClaim: ClaimReader,
  io: Io,
): Promise<Checked> {
  const expected = value === undefined ? null : readValue(value, '--value')
  const found = isExact ? { domain: parseDomain(domain ?? '') } : await findClaimOrDomain(domain, io)
  if (expected !== null && expected !== value)
    await io.warn('ignoring spaces, quotation marks, or invisible characters around --value')
  if ('domain' in found) {
    const { domain: name } = found
    if (options.wait && expected === null)
      throw usageError(`--wait needs a value to wait for, and no claim of ${name} is known`, 'add --value')
    return checkRecord({ name, expected, isGiven: true }, undefined, options, io)
  }
  const { entry, domainId, name: asked } = found
  if (expected !== null) {
    if (entry === undefined)
      throw usageError(`"${domain}" is neither a domain nor a claim that is known ${ledgerInForce(io)}`)
    const known = wantedBy(entry.claim, asked)
    return checkRecord({ ...known, expected, isGiven: expected !== known.expected }, undefined, options, io)
  }
  const first = await readClaim(found, options.deadline)
  let claim = first
  const again = async () => {
    claim = await readClaim({ ...found, entry: entry && { ...entry, claim } }, options.deadline)
    return claim
  }
  // A claim that is over may have no record.
  const isOver = !judge(first, io.clock.now()).isOpen && !first.record?.value
  const wanted = isOver ? { name: asked ?? first.name ?? domainId, expected: null } : wantedBy(first, asked)
  const checked = await checkRecord(wanted, { claim: first, read: again }, options, io)
  return withClaim(checked, claim, io.clock.now())
}

/** What a check means for the claim: one that the service has accepted or completed no longer needs the record. */
function withClaim({ report, error }: Checked, claim: DomainClaim, now: number): Checked {
  const judged = judge(claim, now)
  const own = { ...report, claim: { status: claim.status ?? 'unknown' } }
  if (!judged.isOpen && judged.error !== undefined) return { report: own, error: judged.error }
  if (judged.needsRecord || judged.phase === 'blocked') return { report: own, error }
  return {
    report: {
      ...own,
      ...{ verdict: 'ready', ready: true, retry_after_seconds: null, findings: [] },
      remark: `${nameOf(claim)} no longer needs its record: ${judged.text}`,
    },
  }
}

/** Checks once, or with `wait` until the record is ready, the claim no longer needs it, or the time is up. */
async function checkRecord(
  wanted: WantedRecord,
  of: WatchedClaim | undefined,
  options: CheckOptions,
  io: Io,
): Promise<Checked> {
  const waits =
    options.wait && wanted.expected !== null && (!of || judge(of.claim, io.clock.now()).needsRecord)
  if (waits || io.stderr.isTTY) await io.progress.update(`querying the name servers of ${wanted.name}`)
  try {
    if (!waits) {
      const report = await checkOnce(wanted, options, io)
      return { report, error: exitErrorOf(report, isShown(io)) }
    }
    let last: CheckReport | undefined
    const { tell = createWaitTeller(io) } = options
    for await (const { report, nextInMs, news } of watchDns(wanted, of, options, io)) {
      last = report
      if (nextInMs === null) break
      options.letNext?.()
      await tell(report, news, nextInMs)
    }
    // There is at least one check.
    const report = last as CheckReport
    const failure = exitErrorOf(report, isShown(io))
    return { report, error: failure && notInTime(failure, options.deadline) }
  } finally {
    await io.progress.end()
  }
}

/** Whether people have just read the findings, so that the error needn't repeat them. */
const isShown = ({ settings }: Io): boolean => ['table', 'markdown', 'html'].includes(settings.format)

/** What exit 0 doesn't say of a check that only looked. */
const ONLY_LOOKED =
  'no claim is known here, so no value was looked for: give it with --value, or as domain,value in a list'

/** A person who doesn't see the findings is warned if nothing was seen at all, which is exit 0 as well. */
export async function sayItOnlyLooked(
  { findings, nameservers, resolvers }: CheckReportJson,
  io: Io,
): Promise<void> {
  const [first] = findings
  const hasSeen = [...nameservers, ...resolvers].some(({ outcome }) => isDnsData(outcome))
  if (first === undefined || hasSeen || isShown(io)) await io.say(ONLY_LOOKED)
  else await io.warn(first.message)
}

/** What there is of a domain that wasn't checked. */
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

/** Writes the report of one domain in the chosen format. @param options of the check */
export async function writeReport(
  { report }: Checked,
  { publicResolvers }: CheckOptions,
  columns: readonly Column[],
  io: Io,
): Promise<void> {
  const { stdout, settings, clock, program } = io
  const { format } = settings
  if (format === 'markdown' || format === 'html') {
    const { name, expected } = report
    const { resolvers, authoritativePort } = dnsSettings(settings)
    const asked = (resolvers === 'system' ? await io.dns.systemResolvers() : resolvers).map(formatDnsAddress)
    // Wherever the value and the resolvers came from.
    const words = [
      ...(expected === null ? [name] : ['--name', name, '--value', expected]),
      ...(resolvers === 'system' ? [] : asked.flatMap((one) => ['--resolver', one])),
      ...(authoritativePort === 53 ? [] : ['--authoritative-port', String(authoritativePort)]),
      ...(publicResolvers ? ['--public-resolvers'] : []),
    ]
    const made = {
      at: clock.now(),
      version: program.version,
      resolvers: asked,
      command: commandLine(['claims', 'check', ...words], io.platform),
    }
    if (format === 'markdown') {
      const { renderMarkdown } = await import('../dns/markdown.ts')
      return stdout.write(renderMarkdown(report, made))
    }
    const { renderHtml } = await import('../dns/html.ts')
    return stdout.write(renderHtml(report, made))
  }
  if (format !== 'table' || settings.fields !== undefined) return io.write(reportJson(report), columns)
  if (report.remark !== undefined) return stdout.write(`${sanitizeLine(report.remark)}\n`)
  const { renderReport } = await import('../dns/terminal.ts')
  await stdout.write(renderReport(report, await createRenderContext(io)))
}
