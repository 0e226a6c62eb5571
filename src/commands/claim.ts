import { CLAIM_COLUMNS, MANY_CLAIM_COLUMNS } from '../claims/columns.ts'
import { createHastyReader, type HastyReader } from '../claims/current-claim.ts'
import { asArgument, nameOf, needsRecord } from '../claims/lifecycle.ts'
import { claimProgress, dnsProgress, doneClaim, withLeftover } from '../claims/many/done-claim.ts'
import { STARTING, VERIFYING, WAITING_FOR_DNS } from '../claims/many/tally.ts'
import { writeNextSteps } from '../claims/next-steps.ts'
import { laterJobHint } from '../claims/other-machines.ts'
import { withDnsHint } from '../claims/precheck.ts'
import { recordOf } from '../claims/record.ts'
import { findPlace, type RecordPlace } from '../claims/record-place.ts'
import { runWorkflow, WORKFLOW_EVENTS, type WorkflowResult } from '../claims/workflow.ts'
import { writeClaim } from '../claims/write-claim.ts'
import type { Context } from '../context.ts'
import { type CheckReport, exitErrorOf, REPORT_FIELDS, reportJson } from '../dns/report.ts'
import { CliError, Exit } from '../errors.ts'
import { drain, lastRequestFailed, pollTimes, resumable, timedOutAfter } from '../service/polling.ts'
import { CLAIM_FIELDS, type DomainClaim } from '../service/types.ts'
import { connect } from '../session/connect.ts'
import { isProgramFormat, type Settings } from '../settings/settings.ts'
import { commandLine } from '../shell-quote.ts'
import { writeJsonLine } from '../terminal/output.ts'
import { createClaimChecklist } from './claim-checklist.ts'
import { askForDomain } from './claims/create.ts'
import { CREATE_OPTIONS, type CreateFlags, claimRequest } from './claims/create-options.ts'
import { ERROR_FIELDS, isMany, MANY_OPTIONS, type ManyFlags, runForAll } from './claims/many.ts'
import {
  defineCommand,
  eventFields,
  intervalOption,
  PUBLIC_RESOLVERS,
  SERVICE_EXITS,
  timeoutOption,
} from './definition.ts'
import {
  labeledOutput,
  PUBLISH_OPTIONS,
  type Publish,
  type PublishFlags,
  publisher,
  requireProgram,
} from './publish-options.ts'

interface Flags extends CreateFlags, ManyFlags, PublishFlags {
  readonly interval?: number
  readonly timeout?: number
  readonly throughBlocked?: true
  readonly check?: boolean
  readonly publicResolvers?: true
  readonly publish?: string
  readonly unpublish?: string
}

const DEFAULT_TIMEOUT_SECONDS = 3600

export const command = defineCommand<Flags>({
  description: `The whole flow in one command: starts the claim (or resumes the one in progress), shows the TXT record, waits until it is
in DNS, asks the service to verify, follows the claim until it ends and shows what is left to do. It can be interrupted at
any point and run again. If DNS can't be queried from this machine, it asks the service to verify without waiting for the
record. When the time is up, JSON, CSV and TSV show the claim as it is, in JSON with what is missing.
If a newer claim has replaced the one that this machine knows, it ends with exit 9 and starts no other, which would end the
newer one: "mailclaim claims create" does that. With --all it starts no claim at all: a domain whose claim has ended or is
gone ends with exit 9 or 5. While it waits for DNS, it asks the service about the claim once a minute.`,
  arguments: [
    {
      syntax: '[domain...]',
      description: 'the domain to claim, or several',
      asked: true,
      completion: 'domains',
    },
  ],
  options: [
    ...CREATE_OPTIONS,
    intervalOption({
      description: 'fixed delay between DNS checks and between polls',
      default: 'they grow',
    }),
    timeoutOption({
      description:
        'give up after this long, with exit 8 (7 if the service never answered), but let a program that changes DNS finish',
      default: String(DEFAULT_TIMEOUT_SECONDS),
    }),
    { flags: '--through-blocked', description: 'keep waiting while the claim is blocked' },
    {
      flags: '--no-check',
      description: "don't wait for DNS before asking the service to verify",
      conflicts: [PUBLIC_RESOLVERS.flags],
    },
    PUBLIC_RESOLVERS,
    {
      flags: '--publish <command>',
      description:
        'add the record with this program of yours, without a shell; it gets MAILCLAIM_RECORD_… variables',
      completion: 'files',
    },
    {
      flags: '--unpublish <command>',
      description: 'remove the record with this program after completion',
      completion: 'files',
    },
    ...PUBLISH_OPTIONS.map((option) => ({ ...option, needs: '--publish' })),
    ...MANY_OPTIONS,
  ],
  events: WORKFLOW_EVENTS,
  examples: {
    'mailclaim claim example.com': 'from the start to the completed claim',
    'mailclaim claim example.com --timeout 600 --format jsonl': 'in a script, as events',
    'mailclaim claim example.com --publish ./publish.sh --unpublish ./publish.sh':
      'with a program that changes DNS',
    'mailclaim claim --from domains.txt': 'all domains of a list, each as far as it gets',
  },
  output: {
    schema: 'claim',
    lineSchema: 'event',
    fields: [
      ...CLAIM_FIELDS,
      'missing.step',
      'missing.message',
      'missing.report',
      'leftover',
      ...ERROR_FIELDS,
    ],
    columns: CLAIM_COLUMNS,
    events: [
      ...eventFields({
        claim: CLAIM_FIELDS,
        earlier: CLAIM_FIELDS,
        report: [...REPORT_FIELDS, ...ERROR_FIELDS],
      }),
      ...ERROR_FIELDS,
    ],
  },
  exits: [...SERVICE_EXITS, Exit.notYet, Exit.negativeEnd],
  account: 'signed_in',
  changes: true,
  async run({ arguments: domains, options }, io) {
    const [context, settings] = [io, io.settings]
    await requireProgram('--publish', options.publish, context)
    await requireProgram('--unpublish', options.unpublish, context)
    if (isMany(domains, options)) return claimMany(domains, options, context, settings)
    const [domain] = domains
    const request = claimRequest(domain ?? (await askForDomain(context, settings)), options)
    const workflow = workflowOptions(options, context)
    const { timeoutMs } = workflow
    let place: Promise<RecordPlace | undefined> | undefined
    const placeOf = (claim: DomainClaim) => {
      place ??= findPlace(claim.record?.name ?? nameOf(claim), context, settings)
      return place
    }
    const [publishes, unpublishes] = [options.publish !== undefined, options.unpublish !== undefined]
    const checklist = createClaimChecklist({ timeoutMs, publishes, unpublishes, placeOf }, context, settings)
    const isShown = settings.format !== 'jsonl' && !settings.quiet
    const changeDns = (action: 'publish' | 'unpublish') =>
      programFor(action, options, context, settings, isShown ? checklist.say : undefined)
    const client = connect(context, settings)
    const reader = createHastyReader(context, settings, () => client)
    const events = runWorkflow(
      request,
      {
        ...workflow,
        latest: reader.read,
        onCheck: checklist.onCheck,
        publish: changeDns('publish'),
        unpublish: changeDns('unpublish'),
      },
      client,
      context,
      settings,
    )
    const finished =
      settings.format === 'jsonl'
        ? drain(events, (event) => writeJsonLine(context, settings, event))
        : checklist.follow(events)
    const result = await finished.catch(resumable).finally(reader.settled)
    const { claim, error, missing, unpublished } = result
    // For people the record is above, and the claim is as it was.
    if (settings.format !== 'jsonl' && (error === undefined || settings.format !== 'table'))
      await writeClaim(documentOf(result), context, settings)
    if (error !== undefined && missing !== undefined) {
      // A program that changes DNS isn't stopped at the end of the time.
      const passed = publishes ? Math.floor((context.clock.monotonic() - workflow.since) / 1000) * 1000 : 0
      throw timeoutError({ claim, error, missing }, Math.max(timeoutMs, passed), context, settings)
    }
    if (error !== undefined) throw error
    if (!settings.quiet) await writeNextSteps(claim, await placeOf(claim), context, settings, unpublished)
  },
})

/** What `--publish` or `--unpublish` runs; undefined without the option. */
function programFor(
  action: 'publish' | 'unpublish',
  options: Flags,
  context: Context,
  settings: Settings,
  say?: (line: string) => Promise<void>,
): Publish | undefined {
  const command = options[action]
  return command === undefined
    ? undefined
    : publisher(action, { option: `--${action}`, command }, options, context, settings, say)
}

/** The time begins now, for all domains. */
function workflowOptions(options: Flags, { clock }: Context) {
  return {
    ...pollTimes(options, clock),
    timeoutMs: (options.timeout ?? DEFAULT_TIMEOUT_SECONDS) * 1000,
    throughBlocked: options.throughBlocked === true,
    resumeOnly: options.all === true,
    check: options.check !== false,
    publicResolvers: options.publicResolvers === true,
  }
}

/** Runs the flow for several domains, each as far as it gets in the time. */
async function claimMany(
  domains: readonly string[],
  options: Flags,
  context: Context,
  settings: Settings,
): Promise<void> {
  let reader: HastyReader | undefined
  const timed = workflowOptions(options, context)
  await runForAll(
    domains,
    options,
    {
      command: 'claim',
      columns: MANY_CLAIM_COLUMNS,
      rowsForPeople: false,
      resumes: true,
      restarts: options.all !== true,
      lastEvent: 'ended',
      waits: true,
      takesIds: false,
      notDone: "aren't completed",
      async perform({ domain, options: own }, { context, settings, client, say, progress, inTurn }) {
        progress({ step: STARTING })
        const request = claimRequest(domain, { ...options, ...own })
        const changeDns = (action: 'publish' | 'unpublish'): Publish | undefined => {
          const run = programFor(action, options, labeledOutput(domain, context), settings)
          if (run === undefined) return undefined
          return (record) => {
            progress({ step: `waiting to ${action}` })
            return inTurn(() => {
              context.interrupts.signal.throwIfAborted()
              progress({ step: `${action}ing` })
              return run(record)
            })
          }
        }
        const [publish, unpublish] = [changeDns('publish'), changeDns('unpublish')]
        let unseen: CheckReport | undefined
        const onUnseen = (report: CheckReport) => {
          unseen = report
        }
        const onCheck = (_nextInMs: number, report: CheckReport) => {
          onUnseen(report)
          progress(dnsProgress(report))
        }
        reader ??= createHastyReader(context, settings, client)
        const latest = reader.read
        const workflow = { ...timed, latest, onCheck, onUnseen, publish, unpublish }
        let step = WAITING_FOR_DNS
        const events = runWorkflow(request, workflow, client(), context, settings)
        // A record that the first check finds needs nobody to add it.
        let isSettled = publish !== undefined
        const result = await drain(events, ({ event, claim, report }) => {
          if (event === 'dns') unseen = undefined
          if (event === 'dns' || event === 'verification') step = VERIFYING
          if (event === 'created' || event === 'published' || step === VERIFYING)
            progress(claimProgress(step, claim, unseen))
          const isFirstLook = report !== undefined || event === 'warning' || options.check === false
          if (event === 'dns') isSettled = true
          if (isSettled || event === 'created' || !isFirstLook || !needsRecord(claim)) return undefined
          isSettled = true
          const { name, value } = recordOf(claim)
          return say(`add to DNS: ${name} TXT ${value}`)
        })
        const { claim, error, missing, leftover } = result
        const event = error === undefined ? 'completed' : missing === undefined ? 'ended' : 'waiting'
        const done = doneClaim(
          settings.format === 'jsonl' ? claim : documentOf(result),
          missing?.report || !error ? error : withDnsHint(error, unseen && exitErrorOf(unseen)),
          event,
          context,
          settings,
          missing?.report ?? unseen,
        )
        return leftover === undefined ? done : withLeftover(done, claim, leftover)
      },
    },
    context,
    settings,
  ).finally(() => reader?.settled())
}

type TimedOut = Required<Pick<WorkflowResult, 'claim' | 'missing'>> & { readonly error: CliError }

/** The claim, and if the time is up, what is missing; or why its record is still in DNS. */
function documentOf({ claim, error, missing, leftover }: WorkflowResult): DomainClaim {
  if (leftover !== undefined) return { ...claim, leftover } as DomainClaim
  if (missing === undefined) return claim
  const { step, report } = missing
  const details = { step, message: error?.message, ...(report && { report: reportJson(report) }) }
  return { ...claim, missing: details } as DomainClaim
}

/** Says that the time is up. People have read the cause above; with --quiet and in JSON, the error has it. */
function timeoutError(
  { claim, error, missing }: TimedOut,
  timeoutMs: number,
  context: Context,
  settings: Settings,
): CliError {
  const isShown = !settings.quiet && !isProgramFormat(settings)
  const { report } = missing
  const short =
    report === undefined
      ? `${nameOf(claim)} is still in progress${lastRequestFailed(error.cause)}`
      : exitErrorOf(report, true)?.message
  const hints = [
    isShown || report === undefined ? undefined : error.hint,
    `nothing is lost; to continue, run again: ${commandLine(settings.argv, context.platform)}`,
    laterJobHint(
      claim,
      missing.step === 'completed' ? 'mailclaim claims watch ID' : 'mailclaim claims verify ID --wait',
      context,
    ),
    report === undefined
      ? undefined
      : `to ask the service without checking DNS first: mailclaim claims verify${asArgument(claim)} --no-check --wait`,
  ]
  const cause = isShown ? short : error.message
  return new CliError(error.code, error.exit, `${timedOutAfter(timeoutMs)}: ${cause}`, {
    hint: hints.filter(Boolean).join('\n'),
  })
}
