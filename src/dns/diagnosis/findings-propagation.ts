import { formatDuration } from '../../terminal/duration.ts'
import {
  type Observation,
  type Observations,
  oldStateTtl,
  type ServerAtHost,
  type StaleGlue,
  type ZoneObservations,
} from '../observation/observations.ts'
import { groupByTxtSet, isNewer, serialOf } from '../observation/txt-groups.ts'
import { decodeValues } from '../wire/txt-answer.ts'
import type { Finding } from './finding.ts'
import { glueFix, splitByGlue } from './findings-delegation.ts'
import { listValues } from './labels.ts'
import { join, quote, type Text, text, unquoted } from './text.ts'
import { type ExplainedValue, explainValues } from './value-comparison.ts'

/** Some servers of the zone have the record, others don't. */
export function partialPropagation(
  observations: Observations,
  withRecord: readonly Observation[],
  withoutRecord: readonly Observation[],
): Finding {
  const disjoint = disjointNsSets(withRecord, withoutRecord)
  const { stale: glue, others: copies } = splitByGlue(observations, withoutRecord)
  const isLagging = !disjoint && copies.length > 0 && lagOf(withRecord, copies) === 'behind'
  // A secondary server that isn't notified looks for changes after the refresh time of its SOA record.
  const refresh = copies.flatMap((server) => server.soa?.refresh ?? [])
  // A server that is behind still has to copy the corrected value; any other one keeps the wrong value.
  const wrong = copies.filter(
    (server) => faultAt(observations, server) !== undefined && lagOf(withRecord, [server]) !== 'behind',
  )
  const secondsLeft = isLagging ? Math.max(...refresh, oldStateTtl(copies) ?? 0) : undefined
  return {
    code: 'partial_propagation',
    severity: disjoint || copies.length === 0 || wrong.length > 0 ? 'error' : 'warning',
    message: text`${withRecord.length} of ${withRecord.length + withoutRecord.length} name servers have the record: ${withRecord.map(describeServer).join(', ')}; not yet: ${join(
      withoutRecord.map((server) => describeServerAndFault(observations, server)),
      ', ',
    )}`,
    fix: advice(observations, { disjoint, withRecord, withoutRecord, glue, copies, wrong, secondsLeft }),
    ...(secondsLeft === undefined ? {} : { secondsLeft }),
    details: {
      with: withRecord.map((server) => ({ ...identify(server), serial: serialOf(server) })),
      without: withoutRecord.map((server) => ({
        ...identify(server),
        outcome: server.outcome,
        serial: serialOf(server),
      })),
      ...(disjoint ? { apart: disjoint } : {}),
      ...(glue.length > 0 ? { stale_glue: glue } : {}),
      old_state_ttl: oldStateTtl(withoutRecord),
    },
  }
}

/** A server has the record in some of its answers only. */
export function unsteadyServer(
  { name, zone }: Observations,
  { host, server }: ServerAtHost,
  withoutRecord: readonly Observation[],
): Finding {
  const seconds = oldStateTtl(withoutRecord)
  return {
    code: 'partial_propagation',
    severity: 'warning',
    message: `${host} (${server.address}) has the record at ${name} in some of its answers, but not in all: the machines behind this address don't have the same version of ${zone}, or the record was added during the check`,
    fix: 'Wait a few minutes, and check again. If nothing changes, ask the DNS provider why the machines behind this address differ',
    ...(seconds === null ? {} : { secondsLeft: seconds }),
    details: { host, address: server.address, old_state_ttl: seconds },
  }
}

/** The name servers have different TXT records at the name; undefined if they agree. */
export function differingServers(observations: ZoneObservations): Finding | undefined {
  const { name, zone, servers } = observations
  const [newest, ...others] = groupByTxtSet(servers)
  if (newest === undefined || others.length === 0) return undefined
  const groups = [newest, ...others]
  const older = others.flat()
  const { stale: glue, others: copies } = splitByGlue(observations, older)
  const disjoint = disjointNsSets(newest, older)
  const listed = (group: readonly Observation[]) => group.map(describeServer).join(', ')
  return {
    code: 'partial_propagation',
    severity: 'warning',
    message: text`The name servers of ${zone} have different TXT records at ${name}: ${join(
      groups.map((group) => text`${listValues(group[0]?.values ?? [])} at ${listed(group)}`),
      '; ',
    )}`,
    fix:
      copies.length === 0
        ? glueFix(observations, glue)
        : disjoint
          ? `The name servers belong to two different zones: one lists only ${disjoint.with.join(', ')}, the other only ${disjoint.without.join(', ')}. Waiting won't help. Make every change in both places, or remove one set from the delegation`
          : [...(glue.length > 0 ? [glueFix(observations, glue)] : []), copyFix(newest, older)].join('. '),
    details: {
      groups: groups.map((group) => ({
        values: decodeValues(group[0]?.values ?? []),
        servers: group.map((server) => ({ ...identify(server), serial: serialOf(server) })),
      })),
      ...(disjoint ? { apart: [disjoint.with, disjoint.without] } : {}),
      ...(glue.length > 0 ? { stale_glue: glue } : {}),
    },
  }
}

/** Copies of a zone name the same primary server, and only one that is behind has an older serial. */
function copyFix(newest: readonly Observation[], older: readonly Observation[]): string {
  const primaries = new Set([...newest, ...older].flatMap(({ soa }) => soa?.primary ?? []))
  const lag = lagOf(newest, older)
  const refresh = Math.max(0, ...older.map(({ soa }) => soa?.refresh ?? 0))
  return primaries.size > 1
    ? `They don't copy the zone from each other: their SOA records name different primary servers (${[...primaries].join(', ')}). Waiting won't help: make every change at each provider`
    : lagFix(lag, refresh)
}

/** What to do, the most certain cause first. @param copies the servers without the record whose address is right. */
function advice(
  observations: Observations,
  seen: {
    disjoint: DisjointNsSets | undefined
    withRecord: readonly Observation[]
    withoutRecord: readonly Observation[]
    glue: readonly StaleGlue[]
    copies: readonly Observation[]
    wrong: readonly Observation[]
    secondsLeft: number | undefined
  },
): Text {
  const { disjoint, withRecord, withoutRecord, glue, copies, wrong, secondsLeft } = seen
  if (copies.length === 0) return glueFix(observations, glue)
  if (disjoint) return disjointFix(disjoint)
  if (wrong.length > 0)
    return text`Waiting won't help: correct the value at ${wrong.map(({ host }) => host).join(', ')}: ${unquoted(observations.expected)}`
  if (glue.length > 0)
    return `${glueFix(observations, glue)}. ${lagFix(lagOf(withRecord, copies), secondsLeft)}`
  return (
    possiblyStaleGlueFix(observations, withRecord, withoutRecord) ??
    lagFix(lagOf(withRecord, withoutRecord), secondsLeft)
  )
}

type DisjointNsSets = { with: string[]; without: string[] }

function disjointFix(disjoint: DisjointNsSets): string {
  return `The name servers belong to two different zones: those with the record list only ${disjoint.with.join(', ')}, the others only ${disjoint.without.join(', ')}. Waiting won't help. Add the record in both places, or remove one set from the delegation`
}

/** One host has two addresses that answer differently. One of them may be old, but the servers weren't asked which. */
function possiblyStaleGlueFix(
  { parent }: Observations,
  withRecord: readonly Observation[],
  withoutRecord: readonly Observation[],
): string | undefined {
  const host = withRecord.find((server) => withoutRecord.some((other) => other.host === server.host))?.host
  if (host === undefined || parent === undefined) return undefined
  const addresses = (servers: readonly Observation[]) =>
    servers.flatMap((server) => (server.host === host ? [server.server?.address ?? ''] : [])).join(', ')
  return `${host} gives different answers at its addresses. If ${addresses(withoutRecord)} is an old address, update the glue record for ${host} at the registrar and its A/AAAA records; otherwise wait until that server has copied the zone`
}

type Lag = 'behind' | 'same' | 'ahead'

/** Whether the zone at the servers without the record is older, the same, or newer, going by its serials. */
function lagOf(withRecord: readonly Observation[], withoutRecord: readonly Observation[]): Lag {
  const isAhead = withoutRecord.every((server) =>
    withRecord.every((other) => isNewer(serialOf(server), serialOf(other))),
  )
  if (isAhead) return 'ahead'
  const newest = new Set(withRecord.map(serialOf))
  return withoutRecord.every((server) => serialOf(server) !== null && newest.has(serialOf(server)))
    ? 'same'
    : 'behind'
}

/** @param seconds the longest time that copying takes; 0 if unknown. */
function lagFix(lag: Lag, seconds = 0): string {
  if (lag === 'ahead')
    return 'The servers without the record have a newer version of the zone: it was removed there, or they get the zone from somewhere else. Add it where the newest version is edited'
  if (lag === 'same')
    return "Wait a few minutes. If nothing changes, the servers don't copy the zone from each other although their serials match: fix the record at every provider that serves this zone"
  return `Wait until the other name servers have copied the zone: within seconds if they are notified of changes${seconds > 0 ? `, or else within ${formatDuration(seconds)}` : ''}. If it takes longer, ask the DNS provider why they haven't`
}

/** `ns1.example.com (192.0.2.1, serial 42)`. */
function describeServer(server: Observation): string {
  const known = [
    ...(server.server === undefined ? [] : [server.server.address]),
    ...(serialOf(server) === null ? [] : [`serial ${serialOf(server)}`]),
  ]
  return known.length === 0 ? server.host : `${server.host} (${known.join(', ')})`
}

/** What is wrong with the value at a server; an old token isn't a mistake, only an older version of the zone. */
function faultAt({ expected, name }: Observations, server: Observation): ExplainedValue | undefined {
  const [best] = explainValues(expected, decodeValues(server.values), name)
  return best?.fault === 'stale_token' ? undefined : best
}

/** Adds what is wrong with the value there, unless it is only an older version of the zone. */
function describeServerAndFault(observations: Observations, server: Observation): Text {
  const best = faultAt(observations, server)
  if (best === undefined) return describeServer(server)
  return text`${describeServer(server)}, which has ${join(best.seen.map(quote), ' and ')} [${best.fault}]`
}

/**
 * The NS sets of the servers with the record and of those without, if they have no server in common: the domain was only
 * half moved. Copies of a zone that has just been changed share some.
 */
function disjointNsSets(
  withRecord: readonly Observation[],
  withoutRecord: readonly Observation[],
): DisjointNsSets | undefined {
  const hosts = (servers: readonly Observation[]) => [
    ...new Set(servers.flatMap((server) => server.nsSet ?? [])),
  ]
  const sets = { with: hosts(withRecord).sort(), without: hosts(withoutRecord).sort() }
  const areKnown = [...withRecord, ...withoutRecord].every((server) => server.nsSet !== undefined)
  return areKnown && sets.with.every((host) => !sets.without.includes(host)) ? sets : undefined
}

const identify = (server: Observation) => ({
  host: server.host,
  address: server.server?.address ?? null,
})
