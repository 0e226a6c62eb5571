import { nameOf, needsRecord, stateOf } from '../claims/lifecycle.ts'
import { recordOf } from '../claims/record.ts'
import { hostText, type RecordPlace } from '../claims/record-place.ts'
import type { WorkflowEvent, WorkflowResult } from '../claims/workflow.ts'
import type { Context } from '../context.ts'
import { drain } from '../service/polling.ts'
import type { DomainClaim } from '../service/types.ts'
import type { Settings } from '../settings/settings.ts'
import { withGivenOptions } from '../settings/suggested-commands.ts'
import { type Checklist, createChecklist } from '../terminal/checklist.ts'
import { colorLevel, createPalette } from '../terminal/color.ts'
import { formatDuration } from '../terminal/duration.ts'
import { addressesIn, withLinks } from '../terminal/hyperlinks.ts'
import { warn } from '../terminal/notices.ts'

const STEPS = [
  { key: 'created', title: 'Claim' },
  { key: 'record', title: 'TXT record' },
  { key: 'published', title: 'Published' },
  { key: 'dns', title: 'Seen in DNS' },
  { key: 'verification', title: 'Verification' },
  { key: 'completed', title: 'Completed' },
  { key: 'unpublished', title: 'Unpublished' },
] as const

/** How a person follows the workflow of a claim: its steps are checked off on stderr. */
export interface ClaimChecklist {
  /** Takes the delay until the next check of DNS, in milliseconds. */
  onCheck(nextInMs: number): void
  /** Writes a line that stays above the list. */
  say(line: string): Promise<void>
  /** Runs the workflow and shows each event; where no list is wanted, only warnings. */
  follow(events: AsyncGenerator<WorkflowEvent, WorkflowResult, void>): Promise<WorkflowResult>
}

/** What a checklist depends on. */
export interface ChecklistOptions {
  readonly timeoutMs: number
  /** Whether a program adds the record, and whether one removes it. */
  readonly publishes: boolean
  readonly unpublishes: boolean
  readonly placeOf: (claim: DomainClaim) => Promise<RecordPlace | undefined>
}

/** Creates the checklist; it appears with the first event. */
export function createClaimChecklist(
  { timeoutMs, publishes, unpublishes, placeOf }: ChecklistOptions,
  context: Pick<Context, 'stderr' | 'environment' | 'clock'>,
  settings: Pick<Settings, 'quiet' | 'colorOption' | 'argv'>,
): ClaimChecklist {
  const progress = trackProgress(timeoutMs, context)
  let list: Checklist | undefined
  return {
    onCheck: progress.onCheck,
    say: async (line) => list?.say(line),
    async follow(events) {
      if (settings.quiet)
        return drain(events, ({ event, message }) =>
          event === 'warning' ? warn(message, context, settings) : undefined,
        )
      /** Those of the record's DNS host, as soon as it is known. */
      const addresses: string[] = []
      const record: RecordBlock = {
        heading: publishes ? 'The TXT record:' : 'Add this TXT record to DNS:',
        async placeOf(claim) {
          const place = await placeOf(claim)
          addresses.push(...addressesIn(place?.dnsHost))
          return place
        },
      }
      const steps = STEPS.filter(
        ({ key }) => (key !== 'published' || publishes) && (key !== 'unpublished' || unpublishes),
      )
      const { environment } = context
      const palette = await createPalette(colorLevel(environment, settings.colorOption, context.stderr))
      const stderr = withLinks(context.stderr, addresses, environment)
      const shown = await createChecklist(steps, { environment, stderr }, palette, progress.text)
      list = shown
      try {
        return await drain(events, (event) =>
          show({ ...event, message: withGivenOptions(event.message, settings.argv) }, shown, record),
        )
      } finally {
        await shown.end()
      }
    },
  }
}

/** What a person reads next to the step in progress: when the next check of DNS follows, or how long it has been. */
function trackProgress(timeoutMs: number, { clock }: Pick<Context, 'clock'>) {
  const start = clock.monotonic()
  const duration = (ms: number) => formatDuration(Math.max(0, ms) / 1000)
  let nextCheckAt = start
  return {
    onCheck(nextInMs: number) {
      nextCheckAt = clock.monotonic() + nextInMs
    },
    text() {
      const now = clock.monotonic()
      const what =
        nextCheckAt > now ? `next check in ${duration(nextCheckAt - now)}` : `${duration(now - start)} so far`
      return `${what}, ${duration(start + timeoutMs - now)} left`
    },
  }
}

/** How the record is shown. */
interface RecordBlock {
  readonly heading: string
  readonly placeOf: (claim: DomainClaim) => Promise<RecordPlace | undefined>
}

async function show(event: WorkflowEvent, list: Checklist, { heading, placeOf }: RecordBlock): Promise<void> {
  switch (event.event) {
    case 'warning':
      return list.warn(event.message)
    case 'ended':
      return list.waiting([]) // The error says it.
    case 'waiting':
      return list.waiting(reasonLines(event))
    case 'record': {
      if (!needsRecord(event.claim)) return
      const { name, value } = recordOf(event.claim)
      const place = await placeOf(event.claim)
      // Above the list and uncut, to be copied.
      await list.say(
        heading,
        `  host       ${hostText(place)}`,
        `  full name  ${name}`,
        `  value      ${value}`,
        ...(place?.dnsHost === undefined ? [] : [`  DNS host   ${place.dnsHost}`]),
      )
      return list.tick('record', 'shown above')
    }
    case 'created':
      await list.tick('created', `${nameOf(event.claim)}, ${event.message}`)
      return
    case 'verification':
      // While the claim is blocked, it isn't done.
      return stateOf(event.claim).phase === 'blocked' ? undefined : list.tick(event.event, event.message)
    default:
      return list.tick(event.event, event.message)
  }
}

/** Why it waits. The record itself has been shown, so only a mistake needs a description. */
function reasonLines({ message, report }: WorkflowEvent): string[] {
  const [finding, ...others] = report?.findings ?? []
  if (finding === undefined) return [message]
  if (finding.code !== 'missing') return [message, `→ ${finding.fix}`]
  const host = others.find(({ code }) => code === 'wrong_provider')
  return ["The TXT record above isn't in DNS yet", ...(host === undefined ? [] : [`→ ${host.message}`])]
}
