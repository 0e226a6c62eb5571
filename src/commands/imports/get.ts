import { IMPORT_COLUMNS } from '../../imports/columns.ts'
import { getImport } from '../../service/lists.ts'
import { IMPORT_FIELDS } from '../../service/types.ts'
import { connect } from '../../session/connect.ts'
import { writeObject } from '../../terminal/output.ts'
import { type ArgumentDefinition, defineCommand, SERVICE_EXITS } from '../definition.ts'

export const IMPORT_ARGUMENT: ArgumentDefinition = {
  syntax: '<id>',
  description: 'the id of the contact import',
}

export const command = defineCommand({
  description: 'Shows one contact import.',
  arguments: [IMPORT_ARGUMENT],
  examples: {
    'mailclaim imports get 479e3145-dd38-4932-8c0c-e58b548c9e76': 'one import',
    'mailclaim imports get 479e3145-dd38-4932-8c0c-e58b548c9e76 --json | jq .counts': 'its counts',
  },
  output: { schema: 'import', fields: IMPORT_FIELDS, columns: IMPORT_COLUMNS },
  exits: SERVICE_EXITS,
  account: 'signed_in',
  async run({ arguments: [id = ''] }, io) {
    const [context, settings] = [io, io.settings]
    const found = await getImport(connect(context, settings), id)
    await writeObject(context, settings, found, IMPORT_COLUMNS)
  },
})
