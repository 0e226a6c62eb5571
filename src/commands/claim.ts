import { CLAIM_COLUMNS } from '../claims/columns.ts'
import { nameOf } from '../claims/lifecycle.ts'
import { writeNextSteps } from '../claims/next-steps.ts'
import { recordOf } from '../claims/record.ts'
import { runWorkflow, type WorkflowEvent } from '../claims/workflow.ts'
import type { Context } from '../context.ts'
import { REPORT_FIELDS } from '../dns/diagnosis/report.ts'
import { CliError, Exit, InterruptedError } from '../errors.ts'
import { drain } from '../service/polling.ts'
import { CLAIM_FIELDS, type DomainClaim } from '../service/types.ts'
import { connect } from '../session/connect.ts'
import { A_MONTH_SECONDS, parseSeconds } from '../settings/parse-value.ts'
import type { Settings } from '../settings/settings.ts'
import { type Checklist, createChecklist } from '../terminal/checklist.ts'
import { colorLevel, createPalette } from '../terminal/color.ts'
import { writeJsonLine, writeObject } from '../terminal/output.ts'
import { askForDomain, CREATE_OPTIONS, type CreateFlags, claimRequest } from './claims/create.ts'
import { defineCommand, eventFields, PUBLIC_RESOLVERS, SERVICE_EXITS } from './definition.ts'

interface Flags extends CreateFlags {
  readonly interval?: number
  readonly timeout?: number
  readonly throughBlocked?: true
  readonly check?: boolean
  readonly publicResolvers?: true
}

const DEFAULT_TIMEOUT_SECONDS = 3600

const STEPS = [
  { key: 'created', title: 'Claim' },
  { key: 'record', title: 'TXT record' },
  { key: 'dns', title: 'Seen in DNS' },
  { key: 'verification', title: 'Verification' },
  { key: 'completed', title: 'Completed' },
] as const

export const command = defineCommand<Flags>({
  description: `The whole flow in one command: starts the claim (or resumes the one in progress), shows the TXT record, waits until it is
in DNS, asks the service to verify, follows the claim until it ends and shows what is left to do. It can be interrupted at
any point and run again.`,
  arguments: [{ syntax: '[domain]', description: 'the domain to claim', completion: 'domains' }],
  options: [
    ...CREATE_OPTIONS,
    {
      flags: '--interval <seconds>',
      description: 'fixed delay between DNS checks and between polls',
      default: 'they grow',
      parse: (text) => parseSeconds(text, '--interval'),
    },
    {
      flags: '--timeout <seconds>',
      description: 'give up after this long, with exit 8',
      default: String(DEFAULT_TIMEOUT_SECONDS),
      parse: (text) => parseSeconds(text, '--timeout', A_MONTH_SECONDS),
    },
    { flags: '--through-blocked', description: 'keep waiting while the claim is blocked' },
    {
      flags: '--no-check',
      description: "don't wait for DNS before asking the service to verify",
      conflicts: [PUBLIC_RESOLVERS.flags],
    },
    PUBLIC_RESOLVERS,
  ],
  examples: {
    'mailclaim claim example.com': 'from the start to the completed claim',
    'mailclaim claim example.com --timeout 600 --format jsonl': 'in a script, as events',
  },
  output: {
    fields: CLAIM_FIELDS,
    columns: CLAIM_COLUMNS,
    events: eventFields({ claim: CLAIM_FIELDS, report: REPORT_FIELDS }),
  },
  exits: [...SERVICE_EXITS, Exit.notYet, Exit.negativeEnd],
  async run({ arguments: [domain], options }, context, settings) {
    const request = claimRequest(domain ?? (await askForDomain(context, settings)), options)
    const events = runWorkflow(
      request,
      {
        timeoutMs: (options.timeout ?? DEFAULT_TIMEOUT_SECONDS) * 1000,
        throughBlocked: options.throughBlocked === true,
        check: options.check !== false,
        intervalMs: options.interval === undefined ? undefined : options.interval * 1000,
        publicResolvers: options.publicResolvers === true,
      },
      connect(context, settings),
      context,
      settings,
    )
    const finished =
      settings.format === 'jsonl'
        ? drain(events, (event) => writeJsonLine(context, settings, event))
        : asChecklist(events, context, settings)
    const claim = await finished.catch((error: unknown) => {
      throw error instanceof InterruptedError ? resumable(error) : error
    })
    if (settings.format !== 'jsonl') await writeObject(context, settings, claim, CLAIM_COLUMNS)
    await writeNextSteps(claim, context, settings)
  },
})

/** Says to run the same command, because other options would start another claim. */
function resumable({ code, exit, message }: InterruptedError): CliError {
  return new CliError(code, exit, message, {
    hint: 'nothing is lost; to continue, run the same command again',
  })
}

type Events = AsyncGenerator<WorkflowEvent, DomainClaim, void>

async function asChecklist(events: Events, context: Context, settings: Settings): Promise<DomainClaim> {
  const palette = await createPalette(colorLevel(context.environment, settings.colorOption, context.stderr))
  const list = settings.quiet ? undefined : await createChecklist(STEPS, context, palette)
  try {
    return await drain(events, (event) => list && show(event, list))
  } finally {
    await list?.end()
  }
}

function recordLines(claim: DomainClaim): string[] {
  const { name, value } = recordOf(claim)
  return ['Add this TXT record to DNS:', `  name   ${name}`, `  value  ${value}`]
}

async function show(event: WorkflowEvent, list: Checklist): Promise<void> {
  switch (event.event) {
    case 'warning':
      return list.say(`warning: ${event.message}`)
    case 'waiting': {
      const fix = event.report?.findings[0]?.fix
      return list.waiting([event.message, ...(fix === undefined ? [] : [`→ ${fix}`])])
    }
    case 'record':
      // Above the list and uncut, to be copied.
      await list.say(...recordLines(event.claim))
      return list.tick('record', 'shown above')
    case 'created':
      await list.tick('created', `${nameOf(event.claim)}, ${event.message}`)
      return
    default:
      return list.tick(event.event, event.message)
  }
}
