import {
  groupByOutcome,
  type Observation,
  type StaleGlue,
  type ZoneObservations,
} from '../observation/observations.ts'
import type { Finding } from './finding.ts'
import { delegationPlace, glueFix, splitByGlue } from './findings-delegation.ts'
import { serverEvidence } from './server-list.ts'

/**
 * What to do about addresses that don't answer as they should: correct the glue where it is old, and for the others what
 * `fix` says, which is given how to take them out of use.
 */
export function fixAddresses(
  observations: ZoneObservations,
  servers: readonly Observation[],
  fix: (others: readonly Observation[], removal: string) => string,
): Pick<Finding, 'fix' | 'details'> {
  const { stale, others } = splitByGlue(observations, servers)
  const { withRecord, withoutRecord } = groupByOutcome(observations.servers)
  const serving = new Set([...withRecord, ...withoutRecord].map(({ host }) => host))
  // A host that serves the zone at another address has to stay.
  const isKept = others.some(({ host }) => serving.has(host))
  const place = `${delegationPlace(observations)} and in the zone itself`
  const removal = isKept
    ? others
        .map(({ host, server }) =>
          serving.has(host)
            ? `remove the address ${server?.address} from the A/AAAA records and the glue of ${host}`
            : `remove ${host} from the NS records ${place}`,
        )
        .join(', and ')
    : `remove ${others.length === 1 ? 'it' : 'them'} from the NS records of ${observations.zone}, ${place}`
  return {
    fix: [
      ...(stale.length > 0 ? [glueFix(observations, stale)] : []),
      ...(others.length > 0 ? [fix(others, removal)] : []),
    ].join('. '),
    details: {
      zone: observations.zone,
      servers: serverEvidence(servers),
      ...(stale.length > 0 ? { stale_glue: stale } : {}),
    },
  }
}

/** Whether the parent zone leads to old addresses only, and no resolver gets the record. */
export function isCutOff({ parent, resolvers }: ZoneObservations, stale: readonly StaleGlue[]): boolean {
  return (
    parent?.hosts.every((host) => stale.some((old) => old.host === host)) === true &&
    resolvers.every(({ outcome }) => outcome !== 'match')
  )
}
