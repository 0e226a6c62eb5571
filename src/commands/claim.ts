import { BATCH_CLAIM_COLUMNS, ERROR_FIELDS, SINGLE_CLAIM_COLUMNS } from '../claims/columns.ts'
import {
  BATCH_OPTIONS,
  CLAIM_EVENT_MEANINGS,
  DEFAULT_CLAIM_TIMEOUT_SECONDS,
  isBatch,
} from '../claims/definition.ts'
import type { PublishFunction } from '../claims/publish.ts'
import { CHECK_REPORT_FIELDS } from '../dns/report.ts'
import { CLAIM_FIELDS } from '../service/types.ts'
import { createCommandDeadline } from '../timeout.ts'
import { askForDomain, createClaimRequest, NEW_CLAIM_OPTIONS } from './claims/create-options.ts'
import { defineCommand, defineTimeout, listEventFieldPaths, PUBLIC_RESOLVERS_OPTION } from './definition.ts'

export const command = defineCommand({
  description:
    'Starts or resumes a claim, shows its TXT record, waits for DNS, verifies, and follows it to its end.',
  arguments: [
    {
      syntax: '[domain...]',
      description: 'the domain to claim, or several',
      asked: true,
      completion: 'domains',
    },
  ],
  options: [
    ...NEW_CLAIM_OPTIONS,
    defineTimeout({
      description: 'give up after this long, with exit 8, but let --publish finish',
      default: String(DEFAULT_CLAIM_TIMEOUT_SECONDS),
    }),
    { flags: '--through-blocked', description: 'keep waiting while the claim is blocked' },
    {
      flags: '--no-check',
      description: "don't wait for DNS before asking the service to verify",
      conflicts: [PUBLIC_RESOLVERS_OPTION.flags],
    },
    PUBLIC_RESOLVERS_OPTION,
    {
      flags: '--publish <command>',
      description: 'add the record with this command, run by the shell; it gets MAILCLAIM_RECORD_… variables',
    },
    ...BATCH_OPTIONS,
  ],
  events: CLAIM_EVENT_MEANINGS,
  examples: {
    'mailclaim claim example.com': 'from the start to the completed claim',
    'mailclaim claim example.com --publish ./publish.sh': 'with a command that changes DNS',
    'mailclaim claim --from domains.txt --timeout 600': 'all domains of a list, as far as they get',
  },
  output: {
    schema: 'claim',
    lineSchema: 'event',
    fields: [...CLAIM_FIELDS, ...ERROR_FIELDS],
    columns: SINGLE_CLAIM_COLUMNS,
    eventFields: [
      ...listEventFieldPaths({ claim: CLAIM_FIELDS, earlier: CLAIM_FIELDS, report: CHECK_REPORT_FIELDS }),
      ...ERROR_FIELDS,
    ],
  },
  errors: ['claim', 'create', 'check', 'publish', 'follow', 'several'],
  account: 'signed_in',
  toleratesClosedPipe: true,
  async run({ arguments: domains, options }, io) {
    const { timeout = DEFAULT_CLAIM_TIMEOUT_SECONDS, check = true, publish } = options
    const { throughBlocked, publicResolvers } = options
    const [{ runClaim }, { findClaimsByDomain }, { requirePublishFunction }] = await Promise.all([
      import('../claims/workflow.ts'),
      import('../claims/ledger.ts'),
      import('../claims/publish.ts'),
    ])
    const publisher = publish === undefined ? undefined : await requirePublishFunction(publish, io)
    const deadline = createCommandDeadline({ timeout }, io.clock)
    const flow = { deadline, throughBlocked, check, publicResolvers, resumeOnly: options.all === true }
    if (!isBatch(domains, options)) {
      const [{ parseDomain }, { printEventsThenClaim }, session, { createChecklist }] = await Promise.all([
        import('../claims/load.ts'),
        import('../claims/write.ts'),
        import('../session/client.ts'),
        import('./claim-checklist.ts'),
      ])
      const request = createClaimRequest(parseDomain(domains[0] ?? (await askForDomain(io))), options)
      const client = session.openClient(io)
      const events = runClaim(request, { options: { ...flow, publish: publisher }, client, io })
      const [newest] = await findClaimsByDomain(request.name, io)
      await printEventsThenClaim(events, createChecklist(publish !== undefined, io), newest?.claim, io)
      return
    }
    const [{ resultIfCompleted, runClaimInBatch, runBatchCommand }, { getClaimState }, { requireRecord }] =
      await Promise.all([
        import('../claims/batch.ts'),
        import('../claims/lifecycle.ts'),
        import('../claims/record.ts'),
      ])
    await runBatchCommand(
      domains,
      options,
      {
        columns: BATCH_CLAIM_COLUMNS,
        takesIds: false,
        outputsEvents: true,
        deadline,
        async perform({ domain, region }, run) {
          const [newest] = await findClaimsByDomain(domain, run.io)
          const done = resultIfCompleted(newest, io.clock.now())
          if (done !== undefined) return done
          const says = (line: string) => run.say(`${domain}: ${line}`)
          const publishes: PublishFunction | undefined =
            publisher && ((record) => run.dns.inTurn(() => publisher(record, says)))
          const request = createClaimRequest(domain, options, region)
          const own = { ...flow, ...run.dns, publish: publishes }
          const events = runClaim(request, { options: own, client: run.client(), io: run.io })
          let isSaid = publish !== undefined
          return runClaimInBatch(events, run, async ({ event, claim }) => {
            if (isSaid || event !== 'waiting' || !getClaimState(claim, io.clock.now()).needsRecord) return
            isSaid = true
            const { name, value } = requireRecord(claim, domain)
            await run.say(`add to DNS: ${name} TXT ${value}`)
          })
        },
      },
      io,
    )
  },
})
