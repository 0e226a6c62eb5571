import { Exit } from '../../errors.ts'
import { followImport } from '../../imports/follow.ts'
import type { PollFlags } from '../../service/polling.ts'
import { connect } from '../../session/connect.ts'
import { A_MONTH_SECONDS, parseTimeout } from '../../settings/config.ts'
import { defineCommand } from '../definition.ts'
import { IMPORT_ARGUMENT } from './get.ts'

export const command = defineCommand<PollFlags>({
  description: `Follows a contact import until it is completed or failed, with a progress bar on a terminal. A network that comes and
goes and an access token that expires are survived. With --format jsonl, a line for each change and each problem.`,
  arguments: [IMPORT_ARGUMENT],
  options: [
    {
      flags: '--interval <seconds>',
      says: 'a fixed pause between two questions (growing from 1 to 10)',
      parse: (text) => parseTimeout(text, '--interval'),
    },
    {
      flags: '--timeout <seconds>',
      says: 'give up after this long, with exit 8 (never)',
      parse: (text) => parseTimeout(text, '--timeout', A_MONTH_SECONDS),
    },
  ],
  examples: [
    {
      command: 'mailclaim imports watch 479e3145-dd38-4932-8c0c-e58b548c9e76',
      says: 'follow an import to its end',
    },
    {
      command: 'mailclaim imports watch 479e3145-dd38-4932-8c0c-e58b548c9e76 --timeout 600 --format jsonl',
      says: 'for ten minutes at most, as events',
    },
  ],
  exits: [
    Exit.notConfigured,
    Exit.notSignedIn,
    Exit.notFound,
    Exit.refused,
    Exit.unavailable,
    Exit.notYet,
    Exit.negativeEnd,
  ],
  async run({ arguments: [id = ''], options }, context, settings) {
    await followImport(id, options, connect(context, settings), context, settings)
  },
})
