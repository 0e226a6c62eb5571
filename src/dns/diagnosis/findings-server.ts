import { groupByOutcome, type ZoneObservations } from '../observation/observations.ts'
import type { Finding } from './finding.ts'
import {
  aliasedNameServers,
  delegationNotChecked,
  noNameservers,
  parentChildMismatch,
} from './findings-delegation.ts'
import { filterFindings, tcpBlocked } from './findings-transport.ts'
import { notQueried, unreachable } from './findings-unreachable.ts'
import {
  failsTxtOnly,
  intercepted,
  interceptedServers,
  lameServers,
  notAuthoritative,
  txtRefused,
} from './findings-wrong-answers.ts'

/** Servers don't give larger answers over UDP, and some verifiers stop reading there. */
const LARGE_ANSWER = 4096

/** Too many for people to find their way. */
const MANY_RECORDS = 40

/** What is wrong with the name servers themselves, whatever the record. */
export function serverFindings(observations: ZoneObservations): Finding[] {
  const { servers } = observations
  if (servers.every((server) => server.server === undefined && server.outcome === 'unreachable'))
    return [noNameservers(observations)]
  return [
    ...answerFindings(observations),
    ...filterFindings(observations),
    aliasedNameServers(observations),
    parentChildMismatch(observations),
    delegationNotChecked(observations),
    tooManyTxt(observations),
  ].filter((finding) => finding !== undefined)
}

/** The servers that don't answer TXT queries for the zone as they should, one finding for each kind of failure. */
function answerFindings(observations: ZoneObservations): Finding[] {
  const { servers } = observations
  // That these answer from the zone above has a finding of its own.
  const fromAbove = observations.undelegated?.without.map(({ server }) => server.address) ?? []
  const serving = servers.filter(({ server }) => !fromAbove.includes(server?.address ?? ''))
  const { withRecord, withoutRecord, lame: failing, silent, notChecked } = groupByOutcome(serving)
  const answering = [...withRecord, ...withoutRecord]
  const refusing = [...failing, ...silent].filter(failsTxtOnly)
  const replaced = interceptedServers(
    observations,
    failing.filter((server) => !refusing.includes(server)),
  )
  const unserving = failing.filter((server) => !refusing.includes(server) && !replaced.includes(server))
  const lame = unserving.filter((server) => server.withoutAuthority !== true)
  const proxied = unserving.filter((server) => server.withoutAuthority === true)
  // A server that answered with an alias isn't dead, even if nothing is known about the alias.
  const unread = silent.filter((server) => server.aliases.length === 0 && !refusing.includes(server))
  const truncated = unread.filter((server) => server.tcpFailure !== undefined)
  const dead = unread.filter((server) => server.tcpFailure === undefined)
  const nobodyAnswered = dead.length + notChecked.length === servers.length

  const findings: Finding[] = []
  if (replaced.length > 0) findings.push(intercepted(observations, replaced, answering.length === 0))
  if (proxied.length > 0) findings.push(notAuthoritative(observations, proxied))
  if (lame.length > 0)
    findings.push(lameServers(observations, lame, lame.length + notChecked.length === servers.length))
  if (refusing.length > 0) findings.push(txtRefused(observations, refusing, answering.length === 0))
  if (truncated.length > 0 || answering.some((server) => server.tcpFailure !== undefined))
    findings.push(tcpBlocked(observations, truncated, answering.length > 0))
  if (nobodyAnswered && dead.length === 0) findings.push(notQueried(observations, notChecked))
  else if (dead.length > 0) findings.push(unreachable(observations, dead, nobodyAnswered))
  return findings
}

function tooManyTxt(observations: ZoneObservations): Finding | undefined {
  const largest = [...observations.servers].sort((a, b) => b.size - a.size)[0]
  if (largest === undefined || largest.values.length === 0) return undefined
  if (largest.size <= LARGE_ANSWER && largest.values.length < MANY_RECORDS) return undefined
  return {
    code: 'too_many_txt',
    severity: 'warning',
    message: `There are ${largest.values.length} TXT records at ${observations.name}, ${largest.size} bytes together: more than many resolvers and verifiers can handle`,
    fix: 'Remove TXT records you no longer need (old proofs for other services)',
    details: { records: largest.values.length, bytes: largest.size },
  }
}
