import { CLAIM_COLUMNS, ERROR_FIELDS } from '../../claims/columns.ts'
import { isMany, type ManyFlags, WATCH_EVENTS } from '../../claims/definition.ts'
import type { ClaimEvents } from '../../claims/workflow.ts'
import { Exit } from '../../errors.ts'
import { pollTimes } from '../../service/polling.ts'
import { CLAIM_FIELDS } from '../../service/types.ts'
import type { Io } from '../../terminal/io.ts'
import {
  CLAIM_ARGUMENTS,
  defineCommand,
  eventFields,
  type OptionDefinition,
  type OutputDefinition,
  SERVICE_EXITS,
  timeoutOption,
} from '../definition.ts'
import { MANY_OPTIONS } from './many-options.ts'

export interface WatchFlags extends ManyFlags {
  readonly timeout?: number
  readonly throughBlocked?: true
}

/** The options of `claims watch`; `claims verify --wait` takes them too. */
export const WATCH_OPTIONS: readonly OptionDefinition[] = [
  timeoutOption({ default: 'never' }),
  { flags: '--through-blocked', description: 'keep waiting while the claim is blocked' },
]

/** What `claims watch` prints; `claims verify` prints the same. */
export const WATCH_OUTPUT: OutputDefinition = {
  schema: 'claim',
  lineSchema: 'event',
  fields: [...CLAIM_FIELDS, ...ERROR_FIELDS],
  columns: CLAIM_COLUMNS,
  events: [...eventFields({ claim: CLAIM_FIELDS }), ...ERROR_FIELDS],
}

export const command = defineCommand<WatchFlags>({
  description: 'Follows a claim until it is completed, blocked or ended.',
  arguments: [CLAIM_ARGUMENTS],
  options: [...WATCH_OPTIONS, ...MANY_OPTIONS],
  events: WATCH_EVENTS,
  examples: {
    'mailclaim claims watch example.com': 'follow a claim until it ends',
    'mailclaim claims watch example.com --timeout 600 --format jsonl': 'for ten minutes at most, as events',
    'mailclaim claims watch --all': 'all open claims, in one process',
  },
  output: WATCH_OUTPUT,
  exits: [...SERVICE_EXITS, Exit.notYet, Exit.negativeEnd],
  account: 'signed_in',
  async run({ arguments: domains, options }, io) {
    const watch = { ...pollTimes(options, io.clock), throughBlocked: options.throughBlocked === true }
    const [{ followClaim }, { findClaim }, { connect }] = await Promise.all([
      import('../../claims/workflow.ts'),
      import('../../claims/load.ts'),
      import('../../session/connect.ts'),
    ])
    if (!isMany(domains, options)) {
      const known = await findClaim(domains[0], io)
      const wasCompleted = known.entry?.claim.status === 'completed'
      return showClaimWork(followClaim(known, watch, connect(io), io), wasCompleted, io)
    }
    const { runClaims } = await import('../../claims/many.ts')
    await runClaims(
      domains,
      options,
      watch,
      (known, run) => followClaim(known, watch, run.client(), run.io),
      io,
    )
  },
})

/**
 * Shows the work on one claim to its end, with the claim on stdout, and the next steps of one that it has completed.
 *
 * @param wasCompleted whether this machine had seen that before: then the steps have been shown
 * @throws CliError why the claim isn't completed
 */
export async function showClaimWork(events: ClaimEvents, wasCompleted: boolean, io: Io): Promise<void> {
  const { noteEvent, showEvents, writeClaim, writeNextSteps } = await import('../../claims/write.ts')
  const { claim, error } = await showEvents(events, (event) => noteEvent(event, io), io)
  if (io.settings.format !== 'jsonl') await writeClaim(claim, io)
  if (error !== undefined) throw error
  if (claim.status === 'completed' && !wasCompleted) await writeNextSteps(claim, io)
}
