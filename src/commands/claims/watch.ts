import { followClaim } from '../../claims/follow.ts'
import { resolveClaim } from '../../claims/resolve.ts'
import { Exit } from '../../errors.ts'
import { connect } from '../../session/connect.ts'
import { A_MONTH_SECONDS, parseTimeout } from '../../settings/config.ts'
import type { OptionDefinition } from '../definition.ts'
import { defineCommand } from '../definition.ts'
import { CLAIM_ARGUMENT } from './argument.ts'

export interface WatchFlags {
  readonly interval?: number
  readonly timeout?: number
  readonly throughBlocked?: true
}

/** The options of `claims watch`; `claims verify --wait` takes them too. */
export const WATCH_OPTIONS: readonly OptionDefinition[] = [
  {
    flags: '--interval <seconds>',
    says: 'a fixed pause between two questions (growing from 2 to 30)',
    parse: (text) => parseTimeout(text, '--interval'),
  },
  {
    flags: '--timeout <seconds>',
    says: 'give up after this long, with exit 8 (at the end of the claim)',
    parse: (text) => parseTimeout(text, '--timeout', A_MONTH_SECONDS),
  },
  { flags: '--through-blocked', says: 'go on waiting while the claim is blocked' },
]

export const command = defineCommand<WatchFlags>({
  description: `Asks for a claim until it is settled: completed, blocked (unless --through-blocked), or over. A network that comes and
goes and an access token that expires are survived. With --format jsonl, a line for each change and each problem.`,
  arguments: [CLAIM_ARGUMENT],
  options: WATCH_OPTIONS,
  examples: [
    { command: 'mailclaim claims watch example.com', says: 'follow a claim to its end' },
    {
      command: 'mailclaim claims watch example.com --timeout 600 --format jsonl',
      says: 'for ten minutes at most, as events',
    },
    {
      command: 'mailclaim claims watch example.com --through-blocked',
      says: 'wait out a block that can lift by itself',
    },
  ],
  exits: [
    Exit.notConfigured,
    Exit.notSignedIn,
    Exit.notFound,
    Exit.unavailable,
    Exit.notYet,
    Exit.negativeEnd,
  ],
  async run({ arguments: [argument], options }, context, settings) {
    const { domainId } = await resolveClaim(argument, context, settings)
    await followClaim(domainId, options, connect(context, settings), context, settings)
  },
})
