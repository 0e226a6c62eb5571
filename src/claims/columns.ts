import { formatServiceTimestamp, formatTimestampWithRelativeTime } from '../service/timestamps.ts'
import type { DomainClaim } from '../service/types.ts'
import type { Column } from '../terminal/columns.ts'
import { getClaimState } from './lifecycle.ts'

/** Columns of a claim's TXT record, as `claims record` and `claim` print it. */
export const RECORD_COLUMNS: readonly Column[] = [
  { field: 'type' },
  { field: 'host', title: 'Host', only: 'people' },
  { field: 'name', title: 'Full name', kind: 'id' },
  { field: 'value', kind: 'id', paint: (_value, { palette }) => palette.strong },
  { field: 'ttl', title: 'TTL' },
]

/** Columns of one claim, as `claims get` and other commands print it. */
export const SINGLE_CLAIM_COLUMNS: readonly Column[] = [
  { field: 'name', title: 'Domain', kind: 'id' },
  {
    field: 'status',
    paint: (_status, { palette, now }, claim) =>
      getClaimState(claim, now).phase === 'completed' ? palette.good : palette.strong,
  },
  { field: 'meaning', only: 'people', value: (claim, now) => getClaimState(claim, now).text },
  // By default, only programs get this column and the next one: for users, the column `meaning` describes the state.
  { field: 'blocked_reason', only: 'programs' },
  { field: 'failure_reason', only: 'programs' },
  { field: 'domain_id', title: 'Domain id', kind: 'id' },
  { field: 'region' },
  { field: 'record.type', title: 'Record type', only: 'programs' },
  { field: 'record.name', title: 'Record name', kind: 'id' },
  {
    field: 'record.value',
    title: 'Record value',
    kind: 'id',
    paint: (_value, { palette }) => palette.strong,
  },
  { field: 'created_at', title: 'Created', text: formatTimestampWithRelativeTime },
  { field: 'expires_at', only: 'programs' },
  {
    field: 'expires',
    title: 'Expires',
    only: 'people',
    optional: true,
    value: expiry,
    text: formatTimestampWithRelativeTime,
  },
  { field: 'id', title: 'Claim id', kind: 'id' },
]

/**
 * Fields that the table of a single claim shows, but lists of claims show only to programs: in a terminal, the column `meaning`
 * needs their width.
 */
const TSV_FIELDS = ['domain_id', 'region', 'created_at', 'id', 'record.name', 'record.value']

export const CLAIM_LIST_COLUMNS: readonly Column[] = SINGLE_CLAIM_COLUMNS.flatMap((column): Column[] => {
  if (column.field === 'expires') return [{ ...column, text: formatServiceTimestamp }]
  return [TSV_FIELDS.includes(column.field) ? { ...column, only: 'programs' } : column]
})

/** Columns of a domain's error, in the rows of a run over several domains. */
export const BATCH_ERROR_COLUMNS: readonly Column[] = [
  { field: 'error.code', title: 'Problem', optional: true },
  { field: 'error.message', title: 'Message', only: 'programs' },
]

/** Columns of a claim's row in a run over several domains. */
export const BATCH_CLAIM_COLUMNS: readonly Column[] = [
  ...CLAIM_LIST_COLUMNS.filter(({ field }) => !['meaning', 'expires'].includes(field)),
  { field: 'seen_at', title: 'Last seen', optional: true, kind: 'time' },
  ...BATCH_ERROR_COLUMNS,
]

/** Dotted names of an error's JSON fields, for `--fields`. */
export const ERROR_FIELDS = ['code', 'message', 'hint', 'status', 'exit'].map((field) => `error.${field}`)

/** Returns `expires_at` of an open or expired claim; undefined for others, where the date would look like a deadline. */
function expiry(claim: DomainClaim, now: number): unknown {
  const { isOpen, phase } = getClaimState(claim, now)
  return isOpen || phase === 'expired' ? claim.expires_at : undefined
}
