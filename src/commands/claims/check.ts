import type { ClaimReader } from '../../claims/current-claim.ts'
import { lastSeen } from '../../claims/lifecycle.ts'
import { causesIn, dnsProgress } from '../../claims/many/done-claim.ts'
import { type Done, WAITING_FOR_DNS } from '../../claims/many/tally.ts'
import { checkRequest, concludedReport, conclusionOf, openReport } from '../../claims/precheck.ts'
import type { Context } from '../../context.ts'
import { type CheckRequest, checkDns } from '../../dns/check.ts'
import { type CheckReport, exitErrorOf, REPORT_FIELDS, reportJson, valuesSeen } from '../../dns/report.ts'
import { waitForRecord } from '../../dns/wait.ts'
import { formatDnsAddress } from '../../dns/wire/address.ts'
import { dnsEffects } from '../../dns/wire/ask.ts'
import { CliError, Exit, usageError } from '../../errors.ts'
import { timedOutAfter } from '../../service/polling.ts'
import type { Settings } from '../../settings/settings.ts'
import { commandLine } from '../../shell-quote.ts'
import type { Column } from '../../terminal/columns.ts'
import { formatDuration } from '../../terminal/duration.ts'
import { hint, note, warn } from '../../terminal/notices.ts'
import { stdoutPalette, writeObject } from '../../terminal/output.ts'
import { startProgress, withProgress } from '../../terminal/progress.ts'
import {
  defineCommand,
  intervalOption,
  PUBLIC_RESOLVERS,
  SERVICE_EXITS,
  timeoutOption,
} from '../definition.ts'
import { type CheckTarget, findTarget, latestTarget, typedTarget } from './check-target.ts'
import { ERROR_FIELDS, isMany, MANY_OPTIONS, type ManyFlags, runForAll } from './many.ts'

/** How long to wait by default, in milliseconds. */
const WAIT_MS = 3_600_000

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
    'checks that value, without it shows the zone, who hosts it, and the TXT records that each name server has. Of a ' +
    'claim that was last seen more than a minute ago, it asks the service meanwhile whether it is still open, if possible.',
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
    intervalOption({
      description: 'fixed delay between checks',
      default: '5, 10, 20, then 30',
      needs: '--wait',
    }),
    timeoutOption({
      description: 'stop waiting after this long, with exit 8',
      default: String(WAIT_MS / 1000),
      needs: '--wait',
    }),
    PUBLIC_RESOLVERS,
    ...MANY_OPTIONS,
  ],
  output: {
    schema: 'report',
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
  async run({ arguments: domains, options }, io) {
    const [context, settings] = [io, io.settings]
    if (isMany(domains, options)) return checkMany(domains, options, context, settings)
    const target = await typedTarget(domains[0], options, context, settings)
    if (options.wait && target.value === null && target.seen === undefined)
      throw usageError(
        '--wait needs a value to wait for',
        'add --value with the complete TXT value, such as prefix=token',
      )
    // Without a claim, the code of the requests isn't needed.
    const reader =
      target.seen && (await import('../../claims/current-claim.ts')).createHastyReader(context, settings)
    const { report, end } = await checkTarget(target, reader?.read, options, context, settings)
    await writeReport(report, context, settings)
    await reader?.settled()
    if (end !== undefined) throw end
    const failure = exitErrorOf(report, ['table', 'markdown', 'html'].includes(settings.format))
    if (failure !== undefined)
      throw options.wait ? stillWaiting(failure, options, context, settings) : failure
    if (report.expected === null && target.seen === undefined && settings.format === 'table')
      await hint(
        `to check for a value: mailclaim claims check ${report.name} --value prefix=token${dnsOptions(settings)}`,
        context,
        settings,
      )
  },
})

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
  let latest: ClaimReader | undefined
  const { timeout = WAIT_MS / 1000 } = options
  const started = context.clock.monotonic()
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
      async perform({ domain, value }, { context, settings, progress }) {
        if (options.wait) progress({ step: WAITING_FOR_DNS })
        latest ??= (await import('../../claims/current-claim.ts')).createClaimReader(context, settings)
        const target = await findTarget(domain, value ?? null, context, settings)
        if (options.wait && target.value === null && target.seen === undefined)
          throw usageError(
            `--wait needs a value to wait for: no claim of ${domain} is known on this machine`,
            GIVE_VALUE,
          )
        const onCheck = (seen: CheckReport) => progress(dnsProgress(seen))
        const left = Math.max(0, timeout - (context.clock.monotonic() - started) / 1000)
        const own = { ...options, timeout: left }
        const { report, end } = await checkTarget(target, latest, own, context, settings, onCheck)
        return doneCheck(report, end ?? exitErrorOf(report))
      },
    },
    context,
    settings,
  )
}

const GIVE_VALUE =
  'give the value in the list (domain,prefix=token), or the placeholder domain id of the claim'

/** What a report says among many. */
function doneCheck(report: CheckReport, error: CliError | undefined): Done {
  const { name, expected, verdict } = report
  const isLook = expected === null && error === undefined && report.claim?.status !== 'completed'
  const look = {
    code: 'claim_unknown',
    message: 'no claim of DOMAIN is known on this machine, so its DNS was only looked at',
    fix: GIVE_VALUE,
    particulars: { DOMAIN: name },
  }
  return {
    label:
      report.claim?.status === 'completed'
        ? 'completed'
        : report.ready && report.claim?.status === 'blocked'
          ? 'blocked'
          : isLook
            ? 'no claim'
            : verdict,
    item: reportJson(report),
    error,
    needsPerson: error !== undefined && verdict !== 'wait',
    causes: isLook ? [look, ...causesIn(report)] : causesIn(report),
  }
}

/** The options that make the hint's command ask the same servers. */
function dnsOptions({ resolvers = [], authoritativePort }: Settings): string {
  return [
    ...resolvers.map((resolver) => ` --resolver ${formatDnsAddress(resolver)}`),
    ...(authoritativePort === 53 ? [] : [` --authoritative-port ${authoritativePort}`]),
  ].join('')
}

interface Checked {
  readonly report: CheckReport
  /** How the claim of the record ended. */
  readonly end?: CliError | undefined
}

/**
 * Checks once, or with `--wait` until there is nothing left to wait for. Meanwhile the service is asked whether the record is still
 * that of the claim, and the claim is open: another record has to be checked instead.
 */
async function checkTarget(
  asked: CheckTarget,
  latest: ClaimReader | undefined,
  { wait, timeout = WAIT_MS / 1000, ...options }: Options,
  context: Context,
  settings: Settings,
  onCheck?: (report: CheckReport) => void,
): Promise<Checked> {
  const waits = wait === true && asked.value !== null
  const end = context.clock.monotonic() + timeout * 1000
  const target = waits ? await latestTarget(asked, latest, context) : asked
  let now = target
  const look = async (maxAgeMs?: number) => {
    now = await latestTarget(now, latest, context, maxAgeMs)
  }
  const isChanged = () => now.name !== target.name || now.value !== target.value
  const isMoot = () => isChanged() || conclusionOn(now, context) !== undefined
  const request = checkRequest(target, settings, options.publicResolvers)
  let seen: CheckReport
  if (waits && !isMoot()) {
    const onEach = async (report: CheckReport) => {
      onCheck?.(now.seen === undefined ? report : openReport(report, now.seen.claim))
      await look()
      return isMoot()
    }
    seen = await untilReady(request, { ...options, timeout }, context, settings, onEach)
    if (!isMoot()) await look(0)
  } else [seen] = await Promise.all([checkOnce(request, context, settings), look()])
  if (isChanged()) {
    const left = (end - context.clock.monotonic()) / 1000
    const rest = { ...options, ...(wait && left > 0 && { wait, timeout: left }) }
    return checkTarget(now, latest, rest, context, settings, onCheck)
  }
  if (now.seen === undefined) return { report: seen }
  const conclusion = conclusionOn(now, context)
  if (conclusion !== undefined) return { report: concludedReport(seen, conclusion), end: conclusion.error }
  const { unasked, claim, seenAt } = now.seen
  if (unasked !== undefined)
    await warn(
      `couldn't ask the service about the claim of ${now.name} (${unasked.message}): as last seen ${lastSeen(seenAt, context.clock.now())}`,
      context,
      settings,
    )
  return { report: openReport(seen, claim) }
}

function conclusionOn({ seen }: CheckTarget, { clock }: Pick<Context, 'clock'>) {
  if (seen?.unasked?.exit === Exit.notFound) return { status: seen.claim.status ?? null, error: seen.unasked }
  return seen && conclusionOf(seen.claim, clock.now())
}

function checkOnce(request: CheckRequest, context: Context, settings: Settings): Promise<CheckReport> {
  return withProgress(
    `querying the name servers of ${request.name}`,
    () => checkDns(request, dnsEffects(context)),
    context,
    settings,
  )
}

/**
 * Checks until the record is ready or the time is over, and shows what it waits for.
 *
 * @param onEach gets each check but the last; true ends the wait
 */
async function untilReady(
  request: CheckRequest,
  { timeout }: Options & { readonly timeout: number },
  context: Context,
  settings: Settings,
  onEach: (report: CheckReport) => Promise<boolean>,
): Promise<CheckReport> {
  await note(
    `waiting for the TXT record at ${request.name} for up to ${formatDuration(timeout)}`,
    context,
    settings,
  )
  const progress = await startProgress(`querying the name servers of ${request.name}`, context, settings)
  try {
    const checks = waitForRecord(request, timeout * 1000, dnsEffects(context))
    for (;;) {
      const step = await checks.next()
      if (step.done) return step.value
      const { report, nextInMs, leftMs } = step.value
      if (nextInMs === null) continue
      if (await onEach(report)) return report
      const reason = report.findings[0]?.message ?? 'not ready yet'
      await progress.update(
        `${reason}; next check in ${formatDuration(nextInMs / 1000)}, ${formatDuration(leftMs / 1000)} left`,
      )
    }
  } finally {
    await progress.end()
  }
}

async function writeReport(report: CheckReport, context: Context, settings: Settings): Promise<void> {
  const { stdout } = context
  if (settings.format === 'markdown' || settings.format === 'html') {
    const resolvers = settings.resolvers ?? (await context.dns.systemResolvers())
    const made = {
      at: context.clock.now(),
      version: context.program.version,
      resolvers: resolvers.map(formatDnsAddress),
    }
    if (settings.format === 'markdown') {
      const { renderMarkdown } = await import('../../dns/markdown.ts')
      return await stdout.write(renderMarkdown(report, made))
    }
    const { renderHtml } = await import('../../dns/html.ts')
    await stdout.write(renderHtml(report, { ...made, command: commandLine(settings.argv, context.platform) }))
  } else if (settings.format === 'table' && settings.fields === undefined) {
    const palette = await stdoutPalette(context, settings)
    const { renderReport } = await import('../../dns/terminal.ts')
    await stdout.write(renderReport(report, { palette, width: stdout.columns ?? Number.POSITIVE_INFINITY }))
  } else {
    await writeObject(context, settings, reportJson(report), COLUMNS)
  }
}
