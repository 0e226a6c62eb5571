import type { DnsAddress } from '../context.ts'
import type { AliasEnd, Observation, TxtValue } from './observe.ts'
import type { ProbeResult } from './probe.ts'

/** Where the aliases from the name lead, looked up from zone to zone at the authoritative servers. */
export interface AliasPath {
  readonly targets: readonly string[]
  readonly end: AliasEnd
  readonly values: readonly TxtValue[]
  readonly ttl: number | null
  readonly negativeTtl: number | undefined
}

/** What a recursive resolver said, and what it said with checking disabled after a SERVFAIL. */
export interface ResolverObservation extends Observation {
  readonly resolver: DnsAddress
  readonly unchecked: Observation | undefined
}

/** Everything that was seen of a zone that could be found; the findings are made of nothing else. */
export interface Facts {
  readonly name: string
  readonly expected: string
  readonly expectedBytes: Uint8Array
  readonly zone: string
  readonly servers: readonly Observation[]
  readonly parent: { readonly zone: string; readonly hosts: readonly string[] } | undefined
  readonly childHosts: readonly string[] | undefined
  readonly alias: AliasPath | undefined
  readonly probes: ProbeResult | undefined
  readonly resolvers: readonly ResolverObservation[]
}

/** The servers by what their answers are worth. */
export interface Tally {
  readonly matching: readonly Observation[]
  /** Authoritative answers without the value. */
  readonly without: readonly Observation[]
  /** They answered, but not as a server of the zone. */
  readonly lame: readonly Observation[]
  /** No answer, or one that could not be read whole. */
  readonly silent: readonly Observation[]
  readonly unchecked: readonly Observation[]
}

export function tally(servers: readonly Observation[]): Tally {
  const of = (...outcomes: Observation['outcome'][]) =>
    servers.filter((server) => outcomes.includes(server.outcome))
  return {
    matching: of('match'),
    without: of('mismatch', 'absent', 'nxdomain'),
    lame: of('lame', 'refused', 'servfail'),
    silent: of('timeout', 'unreachable'),
    unchecked: of('not_checked'),
  }
}

/**
 * Seconds for which a cache that looked already may hold the old state: the TTL of the set that was there, or of its
 * absence (RFC 2308 section 5).
 */
export function oldStateTtl(servers: readonly Observation[]): number | null {
  const seconds = servers.flatMap((server) => {
    const known =
      server.values.length > 0 || server.aliases.length > 0
        ? server.ttl
        : (server.negativeTtl ?? server.soa?.negativeTtl)
    return known === null || known === undefined ? [] : [known]
  })
  return seconds.length === 0 ? null : Math.max(...seconds)
}
