import { BATCH_ERROR_COLUMNS, ERROR_FIELDS } from '../../claims/columns.ts'
import { BATCH_OPTIONS, DEFAULT_CLAIM_TIMEOUT_SECONDS, isBatch } from '../../claims/definition.ts'
import { CHECK_REPORT_FIELDS, type CheckReportJson, toReportJson } from '../../dns/report.ts'
import { usageError } from '../../errors.ts'
import { type Column, summarizeValues } from '../../terminal/columns.ts'
import { createCommandDeadline } from '../../timeout.ts'
import { defineCommand, defineTimeout, PUBLIC_RESOLVERS_OPTION } from '../definition.ts'

const reportOf = (item: object) => item as unknown as CheckReportJson

/**
 * Columns of a check report as a row, in TSV and tables. The table format shows a single domain as text instead, unless `--fields`
 * is given.
 */
const COLUMNS: readonly Column[] = [
  { field: 'name', kind: 'id' },
  { field: 'expected', only: 'programs' },
  { field: 'verdict' },
  { field: 'ready', only: 'programs' },
  { field: 'retry_after_seconds', only: 'programs' },
  { field: 'zone', only: 'programs' },
  { field: 'claim.status', title: 'Claim', optional: true },
  { field: 'findings', value: (item) => reportOf(item).findings.map(({ code }) => code) },
  {
    field: 'nameservers',
    only: 'programs',
    value: (item) =>
      reportOf(item).nameservers.map(({ host, address, outcome }) => `${host}/${address ?? ''}=${outcome}`),
  },
  {
    field: 'values',
    title: 'TXT values',
    optional: true,
    // In tables, show the TXT values only if no value was expected: otherwise the verdict and the findings tell about them.
    text: (values, _look, item) =>
      reportOf(item).expected === null ? summarizeValues(values as string[]) : '',
    value: (item) => [...new Set(reportOf(item).nameservers.flatMap(({ values }) => values))],
  },
]

export const command = defineCommand({
  description:
    "Checks from here whether the TXT record is in DNS, and if not, why; the service isn't asked to verify.",
  arguments: [
    {
      syntax: '[domain...]',
      description: 'a domain name, or a placeholder domain id; or several',
      completion: 'domains',
    },
  ],
  options: [
    { flags: '--value <text>', description: 'the complete TXT value to expect, such as prefix=token' },
    {
      flags: '--name <name>',
      description: 'check exactly this name, whether or not it has a claim; needs --value',
    },
    { flags: '--wait', description: 'keep checking until the record is ready' },
    defineTimeout({
      description: 'stop waiting after this long, with exit 8',
      default: String(DEFAULT_CLAIM_TIMEOUT_SECONDS),
      needs: '--wait',
    }),
    PUBLIC_RESOLVERS_OPTION,
    ...BATCH_OPTIONS,
  ],
  output: {
    schema: 'report',
    fields: [...CHECK_REPORT_FIELDS, ...ERROR_FIELDS],
    columns: COLUMNS,
    formats: ['markdown', 'html'],
  },
  examples: {
    'mailclaim claims check example.com': "why isn't this claim verifying?",
    'mailclaim claims check example.net --value prefix=token': 'is this value there? without an account',
    'mailclaim claims check example.com --format html > report.html': 'a report for whoever edits the zone',
  },
  errors: ['claim', 'check', 'follow', 'several'],
  account: 'sometimes',
  async run({ arguments: domains, options }, io) {
    const { name, value, wait = false, publicResolvers, timeout = DEFAULT_CLAIM_TIMEOUT_SECONDS } = options
    const [{ checkClaimOrValue, emptyReport, sayNoValueWasExpected, printDnsReport }, { createClaimReader }] =
      await Promise.all([import('../../claims/check-dns.ts'), import('../../claims/load.ts')])
    // Never renew the access token, because a check must work while the service is down: with an expired token, use the claim in
    // the ledger.
    const renews = false
    const deadline = createCommandDeadline(wait ? { timeout } : {}, io.clock)
    const check = { publicResolvers, wait, deadline }
    if (!isBatch(domains, options)) {
      if (name !== undefined && (domains.length > 0 || value === undefined))
        throw usageError(
          '--name needs --value and no domain',
          'to see what is in DNS: mailclaim claims check example.com',
        )
      if (value !== undefined && name === undefined && domains.length === 0)
        throw usageError('--value needs a domain', 'as in: mailclaim claims check example.com --value …')
      const given = { value, isExact: name !== undefined }
      const readClaim = createClaimReader(io, { renews })
      const checked = await checkClaimOrValue(name ?? domains[0], given, check, readClaim, io)
      await printDnsReport(checked, check, COLUMNS, io)
      if (checked.error !== undefined) throw checked.error
      if (checked.hint !== undefined && !io.settings.quiet) await io.hint(checked.hint)
      if (expectsNoValue(checked.report)) await sayNoValueWasExpected(checked.report, io)
      return
    }
    if (value !== undefined || name !== undefined)
      throw usageError(
        '--value and --name are for one domain',
        'a list can have a value for each: domain,value',
      )
    if (['markdown', 'html'].includes(io.settings.format))
      throw usageError(`--format ${io.settings.format} is for one domain`, 'for several: --format jsonl')
    const { runBatchCommand } = await import('../../claims/batch.ts')
    let isNoted = false
    await runBatchCommand(
      domains,
      options,
      {
        columns: [...COLUMNS, ...BATCH_ERROR_COLUMNS],
        takesIds: true,
        createErrorRow: emptyReport,
        deadline,
        renews,
        async perform(input, run) {
          const each = { ...check, ...run.dns, releaseSlot: run.releaseSlot, reportWait: run.reportWait }
          const { report, error } = await checkClaimOrValue(input.domain, input, each, run.readClaim, run.io)
          if (expectsNoValue(report) && !isNoted) {
            isNoted = true
            await sayNoValueWasExpected(report, io)
          }
          const label = expectsNoValue(report) ? 'no value to look for' : report.verdict
          return { label, item: toReportJson(report), error, report }
        },
      },
      io,
    )
  },
})

/**
 * Whether the check had no expected value, because neither the user nor a claim gave one. False if a claim was read, even one that
 * no longer needs a record.
 */
const expectsNoValue = ({ expected, claim }: CheckReportJson): boolean => expected === null && claim === null
