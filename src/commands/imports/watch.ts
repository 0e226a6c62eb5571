import { Exit } from '../../errors.ts'
import { IMPORT_COLUMNS } from '../../imports/columns.ts'
import { followImport } from '../../imports/follow.ts'
import { IMPORT_EVENTS, WATCH_DELAYS } from '../../imports/watch.ts'
import type { PollFlags } from '../../service/polling.ts'
import { IMPORT_FIELDS } from '../../service/types.ts'
import { connect } from '../../session/connect.ts'
import {
  defineCommand,
  eventFields,
  growing,
  intervalOption,
  SERVICE_EXITS,
  timeoutOption,
} from '../definition.ts'
import { IMPORT_ARGUMENT } from './get.ts'

export const command = defineCommand<PollFlags>({
  description: `Follows a contact import until it is completed or failed, with a progress bar on a terminal. It survives network
failures and renews an expired access token. --format jsonl prints a line for each change and each problem.`,
  arguments: [IMPORT_ARGUMENT],
  options: [intervalOption({ default: growing(WATCH_DELAYS) }), timeoutOption({ default: 'never' })],
  events: IMPORT_EVENTS,
  examples: {
    'mailclaim imports watch 479e3145-dd38-4932-8c0c-e58b548c9e76': 'follow an import until it ends',
    'mailclaim imports watch 479e3145-dd38-4932-8c0c-e58b548c9e76 --timeout 600 --format jsonl':
      'for ten minutes at most, as events',
  },
  output: {
    schema: 'import',
    lineSchema: 'event',
    fields: IMPORT_FIELDS,
    columns: IMPORT_COLUMNS,
    events: eventFields({ import: IMPORT_FIELDS }),
  },
  exits: [...SERVICE_EXITS, Exit.notYet, Exit.negativeEnd],
  account: 'signed_in',
  async run({ arguments: [id = ''], options }, io) {
    const [context, settings] = [io, io.settings]
    await followImport(id, options, connect(context, settings), context, settings)
  },
})
