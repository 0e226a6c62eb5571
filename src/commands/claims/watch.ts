import { CLAIM_COLUMNS } from '../../claims/columns.ts'
import { followClaim } from '../../claims/follow.ts'
import { resolveClaim } from '../../claims/resolve.ts'
import { WATCH_EVENTS } from '../../claims/watch.ts'
import { Exit } from '../../errors.ts'
import { CLAIM_FIELDS } from '../../service/types.ts'
import { connect } from '../../session/connect.ts'
import { A_MONTH_SECONDS, parseSeconds } from '../../settings/parse-value.ts'
import {
  CLAIM_ARGUMENT,
  defineCommand,
  eventFields,
  type OptionDefinition,
  type OutputDefinition,
  SERVICE_EXITS,
} from '../definition.ts'

export interface WatchFlags {
  readonly interval?: number
  readonly timeout?: number
  readonly throughBlocked?: true
}

/** The options of `claims watch`; `claims verify --wait` takes them too. */
export const WATCH_OPTIONS: readonly OptionDefinition[] = [
  {
    flags: '--interval <seconds>',
    description: 'fixed delay between polls',
    default: 'grows from 2 to 30',
    parse: (text) => parseSeconds(text, '--interval'),
  },
  {
    flags: '--timeout <seconds>',
    description: 'give up after this long, with exit 8',
    default: 'when the claim expires',
    parse: (text) => parseSeconds(text, '--timeout', A_MONTH_SECONDS),
  },
  { flags: '--through-blocked', description: 'keep waiting while the claim is blocked' },
]

/** What `claims watch` prints; `claims verify` prints the same, and with `--wait` the same events. */
export const WATCH_OUTPUT: OutputDefinition = {
  schema: 'claim',
  lineSchema: 'claim-event',
  fields: CLAIM_FIELDS,
  columns: CLAIM_COLUMNS,
  events: eventFields({ claim: CLAIM_FIELDS }),
}

export const command = defineCommand<WatchFlags>({
  description: `Polls a claim until it is completed, blocked (unless --through-blocked) or ended. It survives network failures and
renews an expired access token. --format jsonl prints a line for each change and each problem.`,
  arguments: [CLAIM_ARGUMENT],
  options: WATCH_OPTIONS,
  events: WATCH_EVENTS,
  examples: {
    'mailclaim claims watch example.com': 'follow a claim until it ends',
    'mailclaim claims watch example.com --timeout 600 --format jsonl': 'for ten minutes at most, as events',
    'mailclaim claims watch example.com --through-blocked': 'wait out a block that can lift by itself',
  },
  output: WATCH_OUTPUT,
  exits: [...SERVICE_EXITS, Exit.notYet, Exit.negativeEnd],
  account: 'signed_in',
  async run({ arguments: [argument], options }, context, settings) {
    const resolved = await resolveClaim(argument, context, settings)
    await followClaim(resolved, options, connect(context, settings), context, settings)
  },
})
