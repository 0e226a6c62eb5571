import { otherProfilesWith } from '../../claims/ledger.ts'
import { endOf } from '../../claims/lifecycle.ts'
import { causeIn } from '../../claims/many/done-claim.ts'
import type { Done } from '../../claims/many/tally.ts'
import { checkRequest, endedReport } from '../../claims/precheck.ts'
import { MAX_VALUE_BYTES, recordOf } from '../../claims/record.ts'
import { resolveClaimOrDomain } from '../../claims/resolve.ts'
import type { Context } from '../../context.ts'
import { type CheckRequest, checkDns } from '../../dns/check.ts'
import { exitErrorOf } from '../../dns/diagnosis/exit-status.ts'
import { doubtGivenValue, readGivenValue } from '../../dns/diagnosis/given-value.ts'
import { valuesSeen } from '../../dns/diagnosis/labels.ts'
import { type CheckReport, REPORT_FIELDS } from '../../dns/diagnosis/report.ts'
import { reportJson } from '../../dns/diagnosis/report-json.ts'
import { plainText } from '../../dns/diagnosis/text.ts'
import { WAIT_MS, waitForRecord } from '../../dns/wait.ts'
import { formatDnsAddress } from '../../dns/wire/address.ts'
import { dnsEffects } from '../../dns/wire/effects.ts'
import { checkName } from '../../dns/wire/name.ts'
import { CliError, Exit, usageError } from '../../errors.ts'
import { timedOutAfter } from '../../service/polling.ts'
import { A_MONTH_SECONDS, parseSeconds } from '../../settings/parse-value.ts'
import type { Settings } from '../../settings/settings.ts'
import { commandLine } from '../../shell-quote.ts'
import type { Column } from '../../terminal/columns.ts'
import { formatDuration } from '../../terminal/duration.ts'
import { addressesIn, withLinks } from '../../terminal/hyperlinks.ts'
import { hint, note, warn } from '../../terminal/notices.ts'
import { stdoutPalette, writeObject } from '../../terminal/output.ts'
import { startProgress, withProgress } from '../../terminal/progress.ts'
import { sanitizeLine } from '../../terminal/sanitize.ts'
import { defineCommand, PUBLIC_RESOLVERS, SERVICE_EXITS } from '../definition.ts'
import { ERROR_FIELDS, isMany, MANY_OPTIONS, type ManyFlags, runForAll } from './many.ts'

interface Options extends ManyFlags {
  name?: string
  value?: string
  wait?: true
  interval?: number
  timeout?: number
  publicResolvers?: true
}

/** A report in TSV and CSV: one record. */
const COLUMNS: readonly Column[] = [
  { field: 'name' },
  { field: 'expected' },
  { field: 'verdict' },
  { field: 'ready' },
  { field: 'retry_after_seconds' },
  { field: 'zone' },
  { field: 'findings', value: (item) => (item as CheckReport).findings.map((finding) => finding.code) },
  {
    field: 'nameservers',
    value: (item) =>
      (item as CheckReport).nameservers.map(
        (server) => `${server.host}/${server.address ?? ''}=${server.outcome}`,
      ),
  },
  { field: 'values', value: (item) => valuesSeen(item as CheckReport) },
]

export const command = defineCommand<Options>({
  description:
    "Checks from here whether the TXT record of a claim is visible, and if not, why: it queries the domain's own name " +
    "servers directly and names the cause with a fix. It doesn't ask the service to verify anything, and won't poison " +
    'caches with a negative answer. For a domain without a claim on this machine it needs no account: with --value it ' +
    'checks that value, without it shows the zone, who hosts it, and the TXT records that each name server has.',
  arguments: [
    {
      syntax: '[domain...]',
      description: 'a domain name, or the placeholder domain id of a claim; or several',
      completion: 'domains',
    },
  ],
  options: [
    {
      flags: '--value <text>',
      description: 'the complete TXT value to expect, such as prefix=token, instead of the one of the claim',
    },
    {
      flags: '--name <name>',
      description: 'check exactly this name, whether or not it has a claim; needs --value',
    },
    {
      flags: '--wait',
      description: 'keep checking until the record is ready',
    },
    {
      flags: '--interval <seconds>',
      description: 'fixed delay between checks',
      default: '5, 10, 20, then 30',
      needs: '--wait',
      parse: (text) => parseSeconds(text, '--interval'),
    },
    {
      flags: '--timeout <seconds>',
      needs: '--wait',
      description: 'stop waiting after this long, with exit 8',
      default: String(WAIT_MS / 1000),
      parse: (text) => parseSeconds(text, '--timeout', A_MONTH_SECONDS),
    },
    PUBLIC_RESOLVERS,
    ...MANY_OPTIONS,
  ],
  output: {
    schema: 'check-report',
    fields: [...REPORT_FIELDS, ...ERROR_FIELDS],
    columns: COLUMNS,
    formats: ['markdown', 'html'],
  },
  examples: {
    'mailclaim claims check example.com': "why isn't this claim verifying?",
    'mailclaim claims check example.net': 'what is in DNS? without a claim or an account',
    'mailclaim claims check example.net --value prefix=token': 'is this value there? without an account',
    'mailclaim claims check example.com --wait --timeout 900': 'wait for the record for up to 15 minutes',
    'mailclaim claims check example.com --format markdown': 'a report to paste into a support ticket',
    'mailclaim claims check example.com --format html > report.html': 'the same as a page, with a picture',
    'mailclaim claims check --from domains.csv --format jsonl':
      'all domains of a list, a report on each line',
    'mailclaim claims check --all --format markdown': 'all open claims, in one report by cause',
  },
  exits: [...SERVICE_EXITS, Exit.notYet, Exit.negativeEnd],
  account: 'sometimes',
  // With a value, it needs no account.
  toleratesDamagedConfig: ({ value }) => (value === undefined ? undefined : 'with a warning'),
  async run({ arguments: domains, options }, context, settings) {
    if (isMany(domains, options)) return checkMany(domains, options, context, settings)
    const [claim] = domains
    const { end, ...record } = await recordToCheck(claim, options, context, settings)
    if (options.wait && record.value === null)
      throw usageError(
        '--wait needs a value to wait for',
        'add --value with the complete TXT value, such as prefix=token',
      )
    const request = checkRequest(record, settings, options.publicResolvers)
    const seen =
      options.wait && end === undefined
        ? await untilReady(request, options, context, settings)
        : await checkOnce(request, context, settings)
    const own = options.value === undefined ? seen : doubtGivenValue(seen)
    const report = end === undefined ? own : endedReport(own, end)
    await writeReport(report, request, context, settings)
    if (end !== undefined) throw end
    const failure = exitErrorOf(report, ['table', 'markdown', 'html'].includes(settings.format))
    if (failure !== undefined)
      throw options.wait ? stillWaiting(failure, options, context, settings) : failure
    if (report.expected === null && settings.format === 'table')
      await hint(
        `to check for a value: mailclaim claims check ${report.name} --value prefix=token${dnsOptions(settings)}`,
        context,
        settings,
      )
  },
})

/** Checks several domains, each as it would be checked alone. */
async function checkMany(
  domains: readonly string[],
  options: Options,
  context: Context,
  settings: Settings,
): Promise<void> {
  const alone = options.value === undefined ? (options.name === undefined ? undefined : '--name') : '--value'
  if (alone !== undefined)
    throw usageError(
      `${alone} is for one domain`,
      'a list can have a value for each: domain,value (--from FILE)',
    )
  const { timeout = WAIT_MS / 1000, interval } = options
  await runForAll(
    domains,
    options,
    {
      command: 'claims check',
      columns: [...COLUMNS, { field: 'error.code', title: 'Error' }],
      rowsForPeople: false,
      emptyItem: (domain) => ({
        name: domain,
        expected: null,
        verdict: 'unknown',
        ready: false,
        retry_after_seconds: null,
        zone: null,
        nameservers: [],
        resolvers: [],
        findings: [],
      }),
      resumes: false,
      waits: options.wait === true,
      takesIds: true,
      notDone: "aren't ready",
      async perform({ domain, value }, { context, settings }) {
        const given = value === undefined ? {} : { value }
        const { end, ...record } = await recordToCheck(domain, given, context, settings)
        const request = checkRequest(record, settings, options.publicResolvers)
        const waits = options.wait && end === undefined && record.value !== null
        const seen = waits
          ? await lastReport(
              waitForRecord(request, timeout * 1000, dnsEffects(context), interval && interval * 1000),
            )
          : await checkDns(request, dnsEffects(context))
        const own = value === undefined ? seen : doubtGivenValue(seen)
        const report = end === undefined ? own : endedReport(own, end)
        return doneCheck(report, end ?? exitErrorOf(report))
      },
    },
    context,
    settings,
  )
}

async function lastReport(steps: ReturnType<typeof waitForRecord>): Promise<CheckReport> {
  for (;;) {
    const step = await steps.next()
    if (step.done) return step.value
  }
}

/** What a report says among many. */
function doneCheck(report: CheckReport, error: CliError | undefined): Done {
  const { expected, verdict } = report
  return {
    label: expected === null && error === undefined ? 'seen' : verdict,
    item: reportJson(report),
    error,
    needsPerson: error !== undefined && verdict !== 'wait',
    cause: causeIn(report),
  }
}

/** The options that make the hint's command ask the same servers. */
function dnsOptions({ resolvers = [], authoritativePort }: Settings): string {
  return [
    ...resolvers.map((resolver) => ` --resolver ${formatDnsAddress(resolver)}`),
    ...(authoritativePort === 53 ? [] : [` --authoritative-port ${authoritativePort}`]),
  ].join('')
}

/**
 * The record to check, from the options, or from the claim as the ledger or else the service has it, and how that claim
 * ended; null: any value.
 */
async function recordToCheck(
  argument: string | undefined,
  { name, value: given }: Options,
  context: Context,
  settings: Settings,
): Promise<{ name: string; value: string | null; end?: CliError | undefined }> {
  const value = given === undefined ? null : await cleanValue(given, context, settings)
  if (name !== undefined) {
    if (argument !== undefined) throw usageError("a domain and --name can't be used together")
    if (value === null)
      throw usageError(
        '--name needs --value',
        `add --value with the complete TXT value, or see what is there: mailclaim claims check <domain>`,
      )
    return { name, value }
  }
  if (argument === undefined && value !== null)
    throw usageError('--value needs a domain', 'give it as in: mailclaim claims check example.com --value …')
  const target = await resolveClaimOrDomain(argument, context, settings)
  if ('domain' in target) {
    if (value === null) await hintAtOtherProfiles(target.domain, context, settings)
    return { name: target.domain, value }
  }
  // With a value nothing is needed from the service, and without a base URL nobody can ask it: a mistyped domain, not an id.
  const domain = checkName(argument ?? '')
  if (target.entry === undefined && !domain.ok && (value !== null || settings.baseUrl === undefined))
    throw usageError(domain.problem, domain.fix)
  const { claimWithRecord, warnIfCompleted } = await import('../../claims/known-claim.ts')
  const claim = await claimWithRecord(target, context, settings)
  const record = recordOf(claim)
  if (value !== null) return { name: record.name, value }
  const end = endOf(claim, context.clock.now())
  if (end === undefined) await warnIfCompleted(claim, context, settings)
  return { ...record, end }
}

/** The error at the end of a wait, with the command that continues it. */
function stillWaiting(
  failure: CliError,
  { timeout = WAIT_MS / 1000 }: Options,
  context: Context,
  settings: Settings,
): CliError {
  if (failure.exit === Exit.usage) return failure
  const again = `to keep waiting, run again: ${commandLine(settings.argv, context.platform)}`
  return new CliError(failure.code, failure.exit, `${timedOutAfter(timeout * 1000)}: ${failure.message}`, {
    hint: [failure.hint, again].filter(Boolean).join('\n'),
  })
}

/** Only the profile that made a claim knows which value to expect. */
async function hintAtOtherProfiles(domain: string, context: Context, settings: Settings): Promise<void> {
  const [other] = await otherProfilesWith(domain, context, settings)
  if (other === undefined) return
  const command = commandLine(['claims', 'check', domain, '--profile', other], context.platform)
  await hint(`profile ${other} has a claim of ${domain}: ${command}`, context, settings)
}

/** @throws CliError exit 2 if it can't be a complete value */
async function cleanValue(given: string, context: Context, settings: Settings): Promise<string> {
  if (Buffer.byteLength(given) > MAX_VALUE_BYTES)
    throw usageError(`--value is longer than a TXT record can be (${MAX_VALUE_BYTES} bytes)`)
  const read = readGivenValue(given)
  if (!read.ok) throw usageError(`--value ${read.problem}`, sanitizeLine(read.fix))
  if (read.value !== given)
    await warn(
      'ignoring spaces, quotation marks, or invisible characters in --value that cannot belong to it',
      context,
      settings,
    )
  return read.value
}

function checkOnce(request: CheckRequest, context: Context, settings: Settings): Promise<CheckReport> {
  return withProgress(
    `querying the name servers of ${request.name}`,
    () => checkDns(request, dnsEffects(context)),
    context,
    settings,
  )
}

/** Checks until the record is ready or the time is over, and shows what it waits for. */
async function untilReady(
  request: CheckRequest,
  { timeout = WAIT_MS / 1000, interval }: Options,
  context: Context,
  settings: Settings,
): Promise<CheckReport> {
  await note(
    `waiting for the TXT record at ${request.name} for up to ${formatDuration(timeout)}`,
    context,
    settings,
  )
  const progress = await startProgress(`querying the name servers of ${request.name}`, context, settings)
  try {
    const checks = waitForRecord(request, timeout * 1000, dnsEffects(context), interval && interval * 1000)
    for (;;) {
      const next = await checks.next()
      if (next.done) return next.value
      const { report, nextInMs, leftMs } = next.value
      if (nextInMs === null) continue
      const reason = plainText(report.findings[0]?.message ?? 'not ready yet')
      await progress.update(
        `${reason}; next check in ${formatDuration(nextInMs / 1000)}, ${formatDuration(leftMs / 1000)} left`,
      )
    }
  } finally {
    await progress.end()
  }
}

async function writeReport(
  report: CheckReport,
  request: CheckRequest,
  context: Context,
  settings: Settings,
): Promise<void> {
  const { stdout } = context
  if (settings.format === 'markdown' || settings.format === 'html') {
    const started = request.resolvers === 'system' ? await context.dns.systemResolvers() : request.resolvers
    const made = {
      at: context.clock.now(),
      version: context.program.version,
      resolvers: started.map(formatDnsAddress),
    }
    if (settings.format === 'markdown') {
      const { renderMarkdown } = await import('../../dns/diagnosis/markdown.ts')
      return await stdout.write(renderMarkdown(report, made))
    }
    const { renderHtml } = await import('../../dns/html-report/report-body.ts')
    await stdout.write(renderHtml(report, { ...made, command: commandLine(settings.argv, context.platform) }))
  } else if (settings.format === 'table' && settings.fields === undefined) {
    const palette = await stdoutPalette(context, settings)
    const { renderReport } = await import('../../dns/diagnosis/render.ts')
    const pages = report.findings.flatMap(({ code, fix }) =>
      code === 'wrong_provider_hint' ? addressesIn(plainText(fix)) : [],
    )
    const output = withLinks(stdout, pages, context.environment)
    await output.write(renderReport(report, { palette, width: stdout.columns ?? Number.POSITIVE_INFINITY }))
  } else {
    await writeObject(context, settings, reportJson(report), COLUMNS)
  }
}
