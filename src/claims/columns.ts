import { readableTimestamp, readableTimestampInFull } from '../service/timestamps.ts'
import type { DomainClaim } from '../service/types.ts'
import type { Column } from '../terminal/columns.ts'
import { judge } from './lifecycle.ts'

/** The columns of a record. */
export const RECORD_COLUMNS: readonly Column[] = [
  { field: 'type' },
  { field: 'host', title: 'Host', only: 'people' },
  { field: 'name', title: 'Full name', kind: 'id' },
  { field: 'value', kind: 'id', paint: (_value, { palette }) => palette.strong },
  { field: 'ttl', title: 'TTL' },
]

/** The columns of a claim. */
export const CLAIM_COLUMNS: readonly Column[] = [
  { field: 'name', title: 'Domain', kind: 'id' },
  {
    field: 'status',
    paint: (_status, { palette, now }, claim) =>
      judge(claim, now).phase === 'completed' ? palette.good : palette.strong,
  },
  {
    field: 'meaning',
    only: 'people',
    value: (claim, now) => judge(claim, now).text,
  },
  // For people, the meaning includes the reasons.
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
  { field: 'created_at', title: 'Created', text: readableTimestampInFull },
  { field: 'expires_at', only: 'programs' },
  {
    field: 'expires',
    title: 'Expires',
    only: 'people',
    optional: true,
    value: expiry,
    text: readableTimestampInFull,
  },
  { field: 'id', title: 'Claim id', kind: 'id' },
]

const FOR_PROGRAMS = ['domain_id', 'region', 'created_at', 'id', 'record.name', 'record.value']

/** The columns of a list: a domain's name is enough for the next command, and leaves room for the meaning. */
export const CLAIM_LIST_COLUMNS: readonly Column[] = CLAIM_COLUMNS.flatMap((column): Column[] => {
  if (column.field === 'expires') return [{ ...column, text: readableTimestamp }]
  return [FOR_PROGRAMS.includes(column.field) ? { ...column, only: 'programs' } : column]
})

/** What a row has beside a domain's own columns if the work on it failed. */
export const ERROR_COLUMNS: readonly Column[] = [
  { field: 'error.code', title: 'Problem', optional: true },
  { field: 'error.message', title: 'Message', only: 'programs' },
]

/** The columns of a claim among several. */
export const MANY_CLAIM_COLUMNS: readonly Column[] = [
  ...CLAIM_LIST_COLUMNS.filter(({ field }) => !['meaning', 'expires'].includes(field)),
  { field: 'seen_at', title: 'Last seen', optional: true, kind: 'time' },
  ...ERROR_COLUMNS,
]

/** The fields of JSON that an error has. */
export const ERROR_FIELDS = ['code', 'message', 'hint', 'status', 'exit'].map((field) => `error.${field}`)

/** When the claim expires; undefined once it can't: a date beside a completed claim would look like a deadline. */
function expiry(claim: DomainClaim, now: number): unknown {
  const { isOpen, phase } = judge(claim, now)
  return isOpen || phase === 'expired' ? claim.expires_at : undefined
}
