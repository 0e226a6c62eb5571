import { decodeValues } from '../wire/txt-answer.ts'
import { groupByOutcome, type Observation } from './observations.ts'

/** The name servers of the zone by the TXT set that they have, those with the newest version of the zone first. */
export function groupByTxtSet(servers: readonly Observation[]): readonly (readonly Observation[])[] {
  const { withRecord, withoutRecord } = groupByOutcome(servers)
  const groups = new Map<string, Observation[]>()
  for (const server of [...withRecord, ...withoutRecord]) {
    const key = JSON.stringify(decodeValues(server.values).sort())
    groups.set(key, [...(groups.get(key) ?? []), server])
  }
  const newest = (group: readonly Observation[]) =>
    group.map(serialOf).reduce((best, serial) => (isNewer(serial, best) ? serial : best))
  return [...groups.values()].sort(
    (a, b) => Number(isNewer(newest(b), newest(a))) - Number(isNewer(newest(a), newest(b))),
  )
}

/** The serial number of the zone at a server; null if unknown. */
export const serialOf = ({ soa }: Observation) => soa?.serial ?? null

/** Serial numbers wrap around, so their distance tells which is newer (RFC 1982). */
export function isNewer(serial: number | null, other: number | null): boolean {
  if (serial === null || other === null || serial === other) return false
  return (serial - other) >>> 0 < 0x8000_0000
}
