import { IMPORT_LIST_COLUMNS } from '../../imports/columns.ts'
import { CONTACT_IMPORT_FIELDS, CONTACT_IMPORT_STATUSES } from '../../service/types.ts'
import { defineCommand } from '../definition.ts'
import { createPagingOptions, printServiceList } from '../lists.ts'

/** Default of `--limit`, the same as the service's own default. */
const DEFAULT_LIMIT = 10

export const command = defineCommand({
  description: 'Lists the contact imports of the team, the first 10 by default.',
  options: [
    {
      flags: '--status <status>',
      description: 'only imports with this status (the service filters)',
      choices: CONTACT_IMPORT_STATUSES,
      filter: true,
    },
    ...createPagingOptions(String(DEFAULT_LIMIT)),
  ],
  examples: {
    'mailclaim imports list': 'the first ten',
    'mailclaim imports list --status failed --all': 'all that failed',
    'mailclaim imports list --all --format jsonl | jq -r .id': 'all ids, as the pages arrive',
  },
  output: {
    schema: 'list',
    lineSchema: 'import',
    fields: CONTACT_IMPORT_FIELDS,
    columns: IMPORT_LIST_COLUMNS,
  },
  errors: ['list'],
  account: 'signed_in',
  async run({ options }, io) {
    const { status } = options
    await printServiceList(
      {
        fetcher: (lists, client) => lists.createContactImportFetcher(client, status),
        defaultLimit: DEFAULT_LIMIT,
        columns: IMPORT_LIST_COLUMNS,
        ifEmpty:
          status === undefined
            ? 'There are no contact imports.'
            : `There are no contact imports with the status ${status}.`,
      },
      options,
      io,
    )
  },
})
