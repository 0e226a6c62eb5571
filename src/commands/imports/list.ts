import { Exit } from '../../errors.ts'
import { IMPORT_LIST_COLUMNS } from '../../imports/columns.ts'
import { importPages } from '../../service/imports.ts'
import { IMPORT_STATUSES, type ImportStatus } from '../../service/types.ts'
import { connect } from '../../session/connect.ts'
import { defineCommand } from '../definition.ts'
import { type ListFlags, listOptions, printList, requireRange } from '../lists.ts'

/** The service's own default (section 8). */
const USUAL_LIMIT = 10

export const command = defineCommand<ListFlags & { readonly status?: ImportStatus }>({
  description: 'Lists the contact imports of the team, 10 unless told otherwise.',
  options: [
    {
      flags: '--status <status>',
      says: 'only imports with this status (the service filters)',
      choices: IMPORT_STATUSES,
    },
    ...listOptions(String(USUAL_LIMIT)),
  ],
  examples: [
    { command: 'mailclaim imports list', says: 'the first ten' },
    { command: 'mailclaim imports list --status failed --all', says: 'everything that failed' },
    {
      command: 'mailclaim imports list --all --format jsonl | jq -r .id',
      says: 'every id, as the pages arrive',
    },
  ],
  exits: [Exit.notConfigured, Exit.notSignedIn, Exit.refused, Exit.unavailable],
  async run({ options }, context, settings) {
    requireRange(options)
    const { status } = options
    await printList(
      {
        fetchPage: importPages(connect(context, settings), status),
        usualLimit: USUAL_LIMIT,
        columns: IMPORT_LIST_COLUMNS,
        nothing:
          status === undefined
            ? 'There are no contact imports.'
            : `There are no contact imports that are ${status}.`,
      },
      options,
      context,
      settings,
    )
  },
})
