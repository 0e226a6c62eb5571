import { IMPORT_COLUMNS, IMPORT_EVENT_MEANINGS } from '../../imports/columns.ts'
import { CONTACT_IMPORT_FIELDS } from '../../service/types.ts'
import { createCommandDeadline } from '../../timeout.ts'
import { defineCommand, defineTimeout, listEventFieldPaths } from '../definition.ts'
import { CONTACT_IMPORT_ARGUMENT } from './get.ts'

export const command = defineCommand({
  description: 'Follows a contact import until it is completed or failed.',
  arguments: [CONTACT_IMPORT_ARGUMENT],
  options: [defineTimeout({ default: 'never' })],
  events: IMPORT_EVENT_MEANINGS,
  examples: {
    'mailclaim imports watch 479e3145-dd38-4932-8c0c-e58b548c9e76': 'follow an import until it ends',
    'mailclaim imports watch 479e3145-dd38-4932-8c0c-e58b548c9e76 --timeout 600 --format jsonl':
      'for ten minutes at most, as events',
  },
  output: {
    schema: 'import',
    lineSchema: 'event',
    fields: CONTACT_IMPORT_FIELDS,
    columns: IMPORT_COLUMNS,
    eventFields: listEventFieldPaths({ import: CONTACT_IMPORT_FIELDS }),
  },
  errors: ['import'],
  account: 'signed_in',
  async run({ arguments: [id = ''], options }, io) {
    const [{ watchImport }, { openClient }] = await Promise.all([
      import('../../imports/watch.ts'),
      import('../../session/client.ts'),
    ])
    await watchImport(id, createCommandDeadline(options, io.clock), openClient(io), io)
  },
})
