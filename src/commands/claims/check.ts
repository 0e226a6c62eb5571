import { checkRequest } from '../../claims/precheck.ts'
import { recordOf } from '../../claims/record.ts'
import type { Context } from '../../context.ts'
import { type CheckRequest, checkDns } from '../../dns/check.ts'
import { exitErrorOf } from '../../dns/diagnosis/exit-status.ts'
import { duration } from '../../dns/diagnosis/labels.ts'
import { renderMarkdown } from '../../dns/diagnosis/markdown.ts'
import { renderReport } from '../../dns/diagnosis/render.ts'
import type { CheckReport } from '../../dns/diagnosis/report.ts'
import { reportJson } from '../../dns/diagnosis/report-json.ts'
import { WAIT_MS, waitForRecord } from '../../dns/wait.ts'
import { formatDnsAddress } from '../../dns/wire/address.ts'
import { dnsEffects } from '../../dns/wire/effects.ts'
import { Exit, usageError } from '../../errors.ts'
import type { Settings } from '../../settings/settings.ts'
import type { Column } from '../../terminal/columns.ts'
import { note, warn } from '../../terminal/notices.ts'
import { stdoutPalette, writeObject } from '../../terminal/output.ts'
import { startProgress } from '../../terminal/progress.ts'
import { canAnimate } from '../../terminal/spinner.ts'
import { defineCommand } from '../definition.ts'

interface Options {
  name?: string
  value?: string
  wait?: true
  timeout?: number
  publicResolvers?: true
}

export const command = defineCommand<Options>({
  description:
    'Checks from here whether the TXT record of a claim is visible, and if not, why: it queries the domain’s own name ' +
    'servers directly and names the cause with a fix. It doesn’t ask the service to verify anything, and won’t poison ' +
    'caches with a negative answer. With --name and --value it needs no account.',
  arguments: [
    {
      syntax: '[claim]',
      says: 'domain name or placeholder domain id of the claim',
      completion: 'domains',
    },
  ],
  options: [
    { flags: '--name <name>', says: 'check this name instead of a claim (requires --value)' },
    { flags: '--value <text>', says: 'the complete TXT value to expect, such as prefix=token' },
    {
      flags: '--wait',
      says: 'keep checking, after 5, 10, 20, then every 30 seconds, until the record is ready',
    },
    {
      flags: '--timeout <seconds>',
      says: 'stop waiting after this long (default: one hour)',
      parse: parseWaitSeconds,
    },
    { flags: '--public-resolvers', says: 'query 1.1.1.1, 8.8.8.8, and 9.9.9.9 as well' },
  ],
  formats: ['markdown'],
  examples: [
    { command: 'mailclaim claims check example.com', says: 'why isn’t this claim verifying?' },
    { command: 'mailclaim claims check --name example.com --value prefix=token', says: 'without an account' },
    {
      command: 'mailclaim claims check example.com --wait --timeout 900',
      says: 'wait for the record for up to 15 minutes',
    },
    {
      command: 'mailclaim claims check example.com --format markdown',
      says: 'a report to paste into a support ticket',
    },
  ],
  exits: [Exit.notFound, Exit.unavailable, Exit.notYet],
  async run({ arguments: [claim], options }, context, settings) {
    if (options.timeout !== undefined && options.wait === undefined)
      throw usageError('--timeout needs --wait')
    const record = await wantedRecord(claim, options, context, settings)
    const request: CheckRequest = {
      ...checkRequest(record, settings),
      publicResolvers: options.publicResolvers === true,
    }
    const report = options.wait
      ? await waited(request, (options.timeout ?? WAIT_MS / 1000) * 1000, context, settings)
      : await once(request, context, settings)
    await writeReport(report, request, context, settings)
    const failure = exitErrorOf(report, settings.format === 'table' || settings.format === 'markdown')
    if (failure !== undefined) throw failure
  },
})

/** Name and value from the options, or from the claim: as the ledger has it, else as the service has it now. */
async function wantedRecord(
  claim: string | undefined,
  options: Options,
  context: Context,
  settings: Settings,
): Promise<{ name: string; value: string }> {
  const { name, value } = options
  if (name !== undefined || value !== undefined) {
    if (claim !== undefined) throw usageError("a claim and --name/--value can't be used together")
    if (name === undefined) throw usageError('--value needs --name', 'add --name example.com')
    if (value === undefined)
      throw usageError(
        '--name needs --value',
        'add --value with the complete TXT value, such as prefix=token',
      )
    // Pasted with it out of a ticket or a zone file. Left in, it would be what the customer is told to publish.
    const bare = value
      .trim()
      .replace(/^(["'])(.*)\1$/s, '$2')
      .replace(/^“(.*)”$/s, '$1')
      .trim()
    if (bare === '') throw usageError('--value is empty', 'give the complete TXT value, such as prefix=token')
    if (bare !== value) await warn('ignoring the spaces or quotation marks around --value', context, settings)
    return { name, value: bare }
  }
  const { knownClaim, warnIfSettled } = await import('../../claims/known-claim.ts')
  const known = await knownClaim(claim, context, settings)
  await warnIfSettled(known, context, settings)
  return recordOf(known)
}

/** One check. It may take ten seconds, so a person sees that it is running. */
async function once(request: CheckRequest, context: Context, settings: Settings): Promise<CheckReport> {
  const progress = canAnimate(context)
    ? await startProgress(`querying the name servers of ${request.name}`, context, settings)
    : undefined
  try {
    return await checkDns(request, dnsEffects(context))
  } finally {
    await progress?.end()
  }
}

/** Checks until the record is ready or the time is over, and says why it goes on. */
async function waited(
  request: CheckRequest,
  timeoutMs: number,
  context: Context,
  settings: Settings,
): Promise<CheckReport> {
  await note(
    `waiting for the TXT record at ${request.name} for up to ${duration(timeoutMs / 1000)}`,
    context,
    settings,
  )
  const progress = await startProgress(`querying the name servers of ${request.name}`, context, settings)
  try {
    const checks = waitForRecord(request, timeoutMs, dnsEffects(context))
    for (;;) {
      const next = await checks.next()
      if (next.done) return next.value
      const { report, nextInMs, leftMs } = next.value
      if (nextInMs === null) continue
      const reason = report.findings[0]?.message ?? 'not ready yet'
      await progress.update(
        `${reason}; next check in ${duration(nextInMs / 1000)}, ${duration(leftMs / 1000)} left`,
      )
    }
  } finally {
    await progress.end()
  }
}

/** What TSV and CSV show of a report: one record. */
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
]

async function writeReport(
  report: CheckReport,
  request: CheckRequest,
  context: Context,
  settings: Settings,
): Promise<void> {
  const { stdout } = context
  if (settings.format === 'markdown') {
    const started = request.resolvers === 'system' ? await context.dns.systemResolvers() : request.resolvers
    await stdout.write(
      renderMarkdown(report, {
        at: context.clock.now(),
        version: context.program.version,
        resolvers: started.map(formatDnsAddress),
      }),
    )
  } else if (settings.format === 'table' && settings.fields === undefined) {
    const palette = await stdoutPalette(context, settings)
    await stdout.write(renderReport(report, { palette, width: stdout.columns ?? Number.POSITIVE_INFINITY }))
  } else {
    await writeObject(context, settings, reportJson(report), COLUMNS)
  }
}

function parseWaitSeconds(text: string): number {
  const seconds = /^\d{1,6}$/.test(text) ? Number(text) : 0
  if (seconds < 1)
    throw usageError(`--timeout: ${JSON.stringify(text)} is not a whole number of seconds, 1 or more`)
  return seconds
}
