import { ERROR_FIELDS, SINGLE_CLAIM_COLUMNS } from '../../claims/columns.ts'
import { BATCH_OPTIONS, type BatchOptions, isBatch, WATCH_EVENT_MEANINGS } from '../../claims/definition.ts'
import type { ClaimEvents, ClaimTask, ClaimWorkflowOptions } from '../../claims/workflow.ts'
import { CLAIM_FIELDS, type DomainClaim } from '../../service/types.ts'
import type { OptionDefinition } from '../../settings/option.ts'
import type { Io } from '../../terminal/io.ts'
import { createCommandDeadline } from '../../timeout.ts'
import {
  CLAIMS_ARGUMENT,
  defineCommand,
  defineTimeout,
  listEventFieldPaths,
  type OutputDefinition,
} from '../definition.ts'

/** Options for waiting, of `claims watch` and `claims verify --wait`. */
export const CLAIM_WAITING_OPTIONS = [
  defineTimeout({ default: 'never' }),
  { flags: '--through-blocked', description: 'keep waiting while the claim is blocked' },
] as const satisfies readonly OptionDefinition[]

/** Output of `claims watch` and of `claims verify`. */
export const WATCH_OUTPUT: OutputDefinition = {
  schema: 'claim',
  lineSchema: 'event',
  fields: [...CLAIM_FIELDS, ...ERROR_FIELDS],
  columns: SINGLE_CLAIM_COLUMNS,
  eventFields: [...listEventFieldPaths({ claim: CLAIM_FIELDS }), ...ERROR_FIELDS],
}

export const command = defineCommand({
  description: 'Follows a claim until it is completed, blocked or ended.',
  arguments: [CLAIMS_ARGUMENT],
  options: [...CLAIM_WAITING_OPTIONS, ...BATCH_OPTIONS],
  events: WATCH_EVENT_MEANINGS,
  examples: {
    'mailclaim claims watch example.com': 'follow a claim until it ends',
    'mailclaim claims watch example.com --timeout 600 --format jsonl': 'for ten minutes at most, as events',
    'mailclaim claims watch --all': 'all open claims, in one process',
  },
  output: WATCH_OUTPUT,
  errors: ['claim', 'follow', 'several'],
  account: 'signed_in',
  async run({ arguments: domains, options }, io) {
    const { throughBlocked } = options
    const watch = { deadline: createCommandDeadline(options, io.clock), throughBlocked }
    const { followClaim } = await import('../../claims/workflow.ts')
    await runVerifyOrWatchCommand(domains, options, watch, followClaim, io)
  },
})

/**
 * Verifies or follows the claims of a command line, and prints the results.
 *
 * @param begin starts the work on one claim
 * @returns the single claim as last seen; undefined for several claims
 * @throws CliError as `findClaim` and `printEventsThenClaim`; for several claims, as `runVerifyOrWatchBatch`
 */
export async function runVerifyOrWatchCommand(
  domains: readonly string[],
  flags: BatchOptions,
  options: ClaimWorkflowOptions,
  begin: (task: ClaimTask) => ClaimEvents,
  io: Io,
): Promise<DomainClaim | undefined> {
  if (isBatch(domains, flags)) {
    const { runVerifyOrWatchBatch } = await import('../../claims/batch.ts')
    await runVerifyOrWatchBatch(domains, flags, options, begin, io)
    return undefined
  }
  const [{ findClaim }, { openClient }, { printEventText, printEventsThenClaim }] = await Promise.all([
    import('../../claims/load.ts'),
    import('../../session/client.ts'),
    import('../../claims/write.ts'),
  ])
  const target = await findClaim(domains[0], io)
  const events = begin({ target, client: openClient(io), io, options })
  return printEventsThenClaim(events, { show: (event) => printEventText(event, io) }, target.entry?.claim, io)
}
