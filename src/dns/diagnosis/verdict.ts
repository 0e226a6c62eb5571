import { groupByOutcome, type Observations, type ZoneObservations } from '../observation/observations.ts'
import type { Finding } from './finding.ts'
import { causeFindings } from './findings-cause.ts'
import { dnssecFindings } from './findings-dnssec.ts'
import { foreignAddresses, resolverFindings } from './findings-resolver.ts'
import { serverFindings } from './findings-server.ts'
import { zoneFindings } from './findings-zone.ts'
import type { Verdict } from './report.ts'

/** The verdict and the findings: errors first, then warnings, then remarks; within each, causes before consequences. */
export function diagnose(observations: ZoneObservations): { verdict: Verdict; findings: Finding[] } {
  const findings = [
    ...(hasExpected(observations) ? causeFindings(observations) : zoneFindings(observations)),
    ...dnssecFindings(observations),
    ...serverFindings(observations),
    // What a resolver sees then depends on the server that it asked.
    ...(hasExpected(observations) && observations.undelegated === undefined
      ? resolverFindings(observations)
      : []),
    ...foreignAddresses(observations),
  ]
  const rank = { error: 0, warning: 1, info: 2 }
  findings.sort((a, b) => rank[a.severity] - rank[b.severity])
  return { verdict: verdictOf(observations, findings), findings }
}

const hasExpected = (observations: ZoneObservations): observations is Observations =>
  observations.expected !== null

const WAITING: readonly Finding['code'][] = [
  'partial_propagation',
  'cached_absence',
  'cached_old_value',
  'stale_delegation',
]

function verdictOf(observations: ZoneObservations, findings: readonly Finding[]): Verdict {
  const { withRecord, withoutRecord } = groupByOutcome(observations.servers)
  const errors = findings.filter((finding) => finding.severity === 'error')
  if (errors.some((finding) => finding.certain !== false)) return 'fix'
  if (errors.length > 0 || !hasExpected(observations)) return 'unknown'
  if (findings.some((finding) => WAITING.includes(finding.code) && finding.severity === 'warning'))
    return 'wait'
  const isSeenByResolver = observations.resolvers.some((resolver) => resolver.outcome === 'match')
  if (withRecord.length === 0 && !isSeenByResolver) return withoutRecord.length > 0 ? 'fix' : 'unknown'
  return findings.some((finding) => finding.severity === 'warning') ? 'ready_with_warning' : 'ready'
}
