import { CLAIM_COLUMNS, MANY_CLAIM_COLUMNS } from '../../claims/columns.ts'
import { followClaim, followQuietly } from '../../claims/follow.ts'
import { stateOf } from '../../claims/lifecycle.ts'
import { claimProgress, doneClaim } from '../../claims/many/done-claim.ts'
import type { ManyWork, OneRun } from '../../claims/many/run-many.ts'
import { type Done, VERIFYING } from '../../claims/many/tally.ts'
import { withDnsHint } from '../../claims/precheck.ts'
import { type ResolvedClaim, resolveClaim } from '../../claims/resolve.ts'
import { WATCH_DELAYS, WATCH_EVENTS, type WatchOptions } from '../../claims/watch.ts'
import type { Context } from '../../context.ts'
import type { CheckReport } from '../../dns/report.ts'
import { exitErrorOf } from '../../dns/report.ts'
import { Exit } from '../../errors.ts'
import { pollTimes } from '../../service/polling.ts'
import { CLAIM_FIELDS } from '../../service/types.ts'
import { connect } from '../../session/connect.ts'
import {
  CLAIM_ARGUMENTS,
  defineCommand,
  eventFields,
  growing,
  intervalOption,
  type OptionDefinition,
  type OutputDefinition,
  SERVICE_EXITS,
  timeoutOption,
} from '../definition.ts'
import { ERROR_FIELDS, isMany, MANY_OPTIONS, type ManyFlags, runForAll } from './many.ts'

export interface WatchFlags extends ManyFlags {
  readonly interval?: number
  readonly timeout?: number
  readonly throughBlocked?: true
}

/** The options of `claims watch`; `claims verify --wait` takes them too. */
export const WATCH_OPTIONS: readonly OptionDefinition[] = [
  intervalOption({ default: growing(WATCH_DELAYS) }),
  timeoutOption({ default: 'when the claim expires' }),
  { flags: '--through-blocked', description: 'keep waiting while the claim is blocked' },
]

/** What `claims watch` prints; `claims verify` prints the same, and with `--wait` the same events. */
export const WATCH_OUTPUT: OutputDefinition = {
  schema: 'claim',
  lineSchema: 'event',
  fields: [...CLAIM_FIELDS, ...ERROR_FIELDS],
  columns: CLAIM_COLUMNS,
  events: [...eventFields({ claim: CLAIM_FIELDS }), ...ERROR_FIELDS],
}

export const command = defineCommand<WatchFlags>({
  description: `Polls a claim until it is completed, blocked (unless --through-blocked) or ended. It survives network failures and
renews an expired access token. --format jsonl prints a line for each change and each problem.`,
  arguments: [CLAIM_ARGUMENTS],
  options: [...WATCH_OPTIONS, ...MANY_OPTIONS],
  events: WATCH_EVENTS,
  examples: {
    'mailclaim claims watch example.com': 'follow a claim until it ends',
    'mailclaim claims watch example.com --timeout 600 --format jsonl': 'for ten minutes at most, as events',
    'mailclaim claims watch example.com --through-blocked': 'wait out a block that can lift by itself',
    'mailclaim claims watch --all': 'all open claims, in one process',
  },
  output: WATCH_OUTPUT,
  exits: [...SERVICE_EXITS, Exit.notYet, Exit.negativeEnd],
  account: 'signed_in',
  async run({ arguments: domains, options }, io) {
    const [context, settings] = [io, io.settings]
    const watch = watchOptions(options, context)
    if (isMany(domains, options)) {
      const work: ManyWork['perform'] = async ({ domain }, run) =>
        followOne(await resolveClaim(domain, run.context, run.settings), watch, run)
      return runForAll(domains, options, { ...WATCH_MANY, perform: work }, context, settings)
    }
    const [argument] = domains
    const resolved = await resolveClaim(argument, context, settings)
    await followClaim(resolved, watch, connect(context, settings), context, settings)
  },
})

/** The time begins now, for all domains. */
export function watchOptions(flags: WatchFlags, { clock }: Pick<Context, 'clock'>): WatchOptions {
  return { ...pollTimes(flags, clock), throughBlocked: flags.throughBlocked === true }
}

/** How `claims watch` of several claims is reported; `claims verify --wait` is too. */
export const WATCH_MANY = {
  command: 'claims watch',
  columns: MANY_CLAIM_COLUMNS,
  rowsForPeople: false,
  resumes: true,
  lastEvent: 'done',
  waits: true,
  takesIds: true,
  notDone: "aren't completed",
} as const satisfies Partial<ManyWork> & { readonly takesIds: boolean }

/**
 * Follows one of several claims to its end. What the ledger knows to be completed stays so.
 *
 * @param unseen the check that didn't show the record before the service was asked to verify it
 */
export async function followOne(
  resolved: Pick<ResolvedClaim, 'domainId' | 'others' | 'entry'>,
  options: WatchOptions,
  { context, settings, client, progress }: OneRun,
  unseen?: CheckReport,
): Promise<Done> {
  const known = resolved.entry?.claim
  if (known !== undefined && stateOf(known).phase === 'completed')
    return doneClaim(known, undefined, 'done', context, settings)
  const { claim, error } = await followQuietly(resolved, options, client(), context, settings, ({ claim }) =>
    progress(claimProgress(options.verifying ? VERIFYING : (claim.status ?? 'no status'), claim, unseen)),
  )
  const shown = error && withDnsHint(error, unseen && exitErrorOf(unseen))
  return doneClaim(claim, shown, 'done', context, settings, unseen)
}
