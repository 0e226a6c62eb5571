import { formatServiceTimestamp } from '../../service/timestamps.ts'
import { OAUTH_GRANT_FIELDS, type OAuthGrant } from '../../service/types.ts'
import { type Column, formatCellValue } from '../../terminal/columns.ts'
import { defineCommand } from '../definition.ts'
import { createPagingOptions, printServiceList } from '../lists.ts'

/** Whether a grant is revoked. The service may set the time, the reason, or both. */
function isRevoked(grant: OAuthGrant): boolean {
  return (grant.revoked_at ?? grant.revoked_reason ?? null) !== null
}

const GRANT_COLUMNS: readonly Column[] = [
  { field: 'id', kind: 'id' },
  { field: 'client.name', title: 'Client' },
  { field: 'client_id', kind: 'id', only: 'programs' },
  { field: 'scopes' },
  {
    field: 'state',
    only: 'people',
    value: (grant) => (isRevoked(grant as OAuthGrant) ? 'revoked' : 'active'),
    text(state, look, grant) {
      const { revoked_at: at } = grant as OAuthGrant
      return at ? `${state} ${formatServiceTimestamp(at, look) ?? formatCellValue(at)}` : undefined
    },
    paint: (value, { palette }) => (value === 'active' ? palette.good : palette.faint),
  },
  { field: 'resource', only: 'programs' },
  { field: 'created_at', title: 'Created', text: formatServiceTimestamp, optional: true },
  { field: 'revoked_at', title: 'Revoked', text: formatServiceTimestamp, only: 'programs' },
  { field: 'revoked_reason', title: 'Reason', only: 'programs' },
]

export const command = defineCommand({
  description: 'Lists the OAuth grants of the team, revoked ones included.',
  options: [
    {
      flags: '--state <state>',
      description: 'only these grants (filtered here)',
      choices: ['active', 'revoked'],
      filter: true,
    },
    ...createPagingOptions('all'),
  ],
  examples: {
    'mailclaim grants list': 'all grants',
    'mailclaim grants list --state active --format tsv': 'those with access now, for a script',
    'mailclaim grants list --state revoked --json': 'as the service has them',
  },
  output: { schema: 'list', lineSchema: 'grant', fields: OAUTH_GRANT_FIELDS, columns: GRANT_COLUMNS },
  errors: ['list'],
  account: 'signed_in',
  async run({ options }, io) {
    const { state } = options
    await printServiceList(
      {
        fetcher: (lists, client) => lists.createGrantFetcher(client),
        filter: state === undefined ? undefined : (grant) => isRevoked(grant) === (state === 'revoked'),
        columns: GRANT_COLUMNS,
        ifEmpty: state === undefined ? 'There are no grants.' : `There are no ${state} grants.`,
      },
      options,
      io,
    )
  },
})
