import { parseTimestamp } from '../service/timestamps.ts'
import type { DomainClaim } from '../service/types.ts'
import type { Column, Item, RenderContext } from '../terminal/columns.ts'
import { relativeTime } from '../terminal/relative-time.ts'
import { standingOf } from './lifecycle.ts'

function moment(value: unknown, { now }: Pick<RenderContext, 'now'>): string | undefined {
  const at = parseTimestamp(value)
  return at === undefined || now === undefined ? undefined : `${relativeTime(at, now)} (${value})`
}

/** A claim as tables, detail views, TSV and CSV show it. */
export const CLAIM_COLUMNS: readonly Column[] = [
  { field: 'name', title: 'Domain', kind: 'id' },
  {
    field: 'status',
    paint: (_value, palette) => palette.strong,
  },
  {
    field: 'standing',
    title: 'Means',
    only: 'people',
    value: (claim) => standingOf(claim as DomainClaim).says,
  },
  // The standing says the reasons to people.
  { field: 'blocked_reason', only: 'programs' },
  { field: 'failure_reason', only: 'programs' },
  { field: 'domain_id', title: 'Domain id', kind: 'id' },
  { field: 'region' },
  { field: 'record.type', title: 'Record type', only: 'programs' },
  { field: 'record.name', title: 'Record name', only: 'programs' },
  { field: 'record.value', title: 'Record value', only: 'programs' },
  { field: 'record', title: 'Record', only: 'people', value: (claim) => spokenRecord(claim as DomainClaim) },
  { field: 'created_at', title: 'Created', text: moment },
  { field: 'expires_at', only: 'programs' },
  { field: 'expires', title: 'Expires', only: 'people', value: expiry, text: moment },
  { field: 'id', title: 'Claim id', kind: 'id' },
]

/** The same in a list: a domain's name is enough for people to go on with, and leaves room for what the status means. */
export const CLAIM_LIST_COLUMNS: readonly Column[] = CLAIM_COLUMNS.filter(
  (column) => column.field !== 'record',
).map((column) => {
  if (column.field === 'expires') return { ...column, optional: true }
  return ['domain_id', 'region', 'created_at', 'id'].includes(column.field)
    ? { ...column, only: 'programs' }
    : column
})

/** When the claim ends if nobody verifies it. A domain that is somebody's already would seem to be lost on that day. */
function expiry(item: Item): unknown {
  const claim = item as DomainClaim
  const { phase } = standingOf(claim)
  const over = phase === 'completed' || (phase === 'ended' && claim.status !== 'expired')
  return over ? undefined : claim.expires_at
}

function spokenRecord({ record }: DomainClaim): string | undefined {
  if (!record) return undefined
  return [record.type ?? 'TXT', record.name, record.value].filter((part) => part).join('  ')
}
