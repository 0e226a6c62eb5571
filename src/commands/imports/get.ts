import { IMPORT_COLUMNS } from '../../imports/columns.ts'
import { CONTACT_IMPORT_FIELDS } from '../../service/types.ts'
import { type ArgumentDefinition, defineCommand } from '../definition.ts'

export const CONTACT_IMPORT_ARGUMENT: ArgumentDefinition = {
  syntax: '<id>',
  description: 'the id of the contact import',
}

export const command = defineCommand({
  description: 'Shows one contact import.',
  arguments: [CONTACT_IMPORT_ARGUMENT],
  examples: {
    'mailclaim imports get 479e3145-dd38-4932-8c0c-e58b548c9e76': 'one import',
    'mailclaim imports get 479e3145-dd38-4932-8c0c-e58b548c9e76 --json | jq .counts': 'its counts',
  },
  output: { schema: 'import', fields: CONTACT_IMPORT_FIELDS, columns: IMPORT_COLUMNS },
  account: 'signed_in',
  async run({ arguments: [id = ''] }, io) {
    const [{ getContactImport }, { openClient }] = await Promise.all([
      import('../../service/lists.ts'),
      import('../../session/client.ts'),
    ])
    await io.write(await getContactImport(openClient(io), id), IMPORT_COLUMNS)
  },
})
