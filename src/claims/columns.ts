import { readableTimestamp, readableTimestampInFull } from '../service/timestamps.ts'
import type { DomainClaim } from '../service/types.ts'
import type { Column, Item } from '../terminal/columns.ts'
import type { LedgerEntry } from './ledger.ts'
import { GONE, stateOf } from './lifecycle.ts'

/** The columns of a claim. */
export const CLAIM_COLUMNS: readonly Column[] = [
  { field: 'name', title: 'Domain', kind: 'id' },
  {
    field: 'status',
    paint: (value, palette) => (value === 'completed' ? palette.good : palette.strong),
  },
  {
    field: 'meaning',
    only: 'people',
    value: (claim) => stateOf(claim as DomainClaim).description,
  },
  // For people, the meaning includes the reasons.
  { field: 'blocked_reason', only: 'programs' },
  { field: 'failure_reason', only: 'programs' },
  { field: 'domain_id', title: 'Domain id', kind: 'id' },
  { field: 'region' },
  { field: 'record.type', title: 'Record type', only: 'programs' },
  { field: 'record.name', title: 'Record name', only: 'programs' },
  { field: 'record.value', title: 'Record value', only: 'programs' },
  { field: 'record', title: 'Record', only: 'people', text: (_record, _look, claim) => recordText(claim) },
  { field: 'created_at', title: 'Created', text: readableTimestampInFull },
  { field: 'expires_at', only: 'programs' },
  { field: 'expires', title: 'Expires', only: 'people', value: expiry, text: readableTimestampInFull },
  { field: 'id', title: 'Claim id', kind: 'id' },
]

/** A claim in a list: with `gone_at` if the service no longer has it. */
export type ListedClaim = DomainClaim & Partial<Pick<LedgerEntry, 'gone_at'>>

export const listedClaim = ({ gone_at, claim }: LedgerEntry): ListedClaim =>
  gone_at === null ? claim : { ...claim, gone_at }

/** The columns of a list: a domain's name is enough for the next command, and leaves room for the meaning. */
export const CLAIM_LIST_COLUMNS: readonly Column[] = [
  ...CLAIM_COLUMNS.filter((column) => column.field !== 'record'),
  { field: 'gone_at', only: 'programs' } as const,
].map((column) => {
  // The status stays what the service sent last.
  if (column.field === 'status')
    return { ...column, text: (_status, _look, claim) => goneText(claim, 'gone') }
  if (column.field === 'meaning')
    return { ...column, text: (_meaning, _look, claim) => goneText(claim, GONE) }
  if (column.field === 'expires') return { ...column, optional: true, text: readableTimestamp }
  return ['domain_id', 'region', 'created_at', 'id'].includes(column.field)
    ? { ...column, only: 'programs' }
    : column
})

/** The columns of a claim among many, or of a domain without one. */
export const MANY_CLAIM_COLUMNS: readonly Column[] = [
  ...CLAIM_COLUMNS.flatMap((column): Column[] => {
    if (column.field === 'record' || column.only === 'programs') return [column]
    if (column.field === 'name' || column.field === 'status') return [column]
    return column.only === 'people' ? [] : [{ ...column, only: 'programs' }]
  }),
  { field: 'error.code', title: 'Error', only: 'programs' },
  { field: 'error.message', title: 'Problem', only: 'programs' },
]

const goneText = (item: Item, text: string) => ((item as ListedClaim).gone_at ? text : undefined)

/** When the claim expires; undefined once it can't: a date beside a completed claim would look like a deadline. */
function expiry(item: Item): unknown {
  const claim = item as ListedClaim
  const { phase } = stateOf(claim)
  const isOver = claim.gone_at || phase === 'completed' || (phase === 'ended' && claim.status !== 'expired')
  return isOver ? undefined : claim.expires_at
}

function recordText({ record }: DomainClaim): string | undefined {
  if (!record) return undefined
  return [record.type ?? 'TXT', record.name, record.value].filter((part) => part).join('  ')
}
