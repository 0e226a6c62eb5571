import type { DnsAddress } from '../../context.ts'
import { groupByOutcome, oldStateTtl, type ZoneObservations } from '../observation/observations.ts'
import type { Located } from '../resolution/delegation-walk.ts'
import { describeReplies } from '../resolution/resolver-replies.ts'
import type { Location } from '../resolution/zone-search.ts'
import { formatDnsAddress, PUBLIC_RESOLVERS } from '../wire/address.ts'
import { decodeValues } from '../wire/txt-answer.ts'
import type { Finding } from './finding.ts'
import { LEAVE_INTERCEPTION } from './labels.ts'
import type { CheckReport, ResolverReport, Verdict } from './report.ts'
import { capitalize } from './text.ts'

/** Keeps a script that waits as long as the report says from spinning. */
const MIN_WAIT_SECONDS = 1
/** A longer TTL is most likely a mistake, and many caches ignore it (RFC 2308 section 5, RFC 8767 section 4). */
const MAX_WAIT_SECONDS = 86_400

/** What the check was asked for. */
interface Asked {
  readonly name: string
  readonly expected: string | null
}

/** The report of a check that found the zone. */
export function buildReport(
  observations: ZoneObservations,
  verdict: Verdict,
  findings: Finding[],
): CheckReport {
  return {
    name: observations.name,
    expected: observations.expected,
    verdict,
    ready: verdict === 'ready' || verdict === 'ready_with_warning',
    retry_after_seconds: retryAfter(observations, verdict, findings),
    zone: observations.zone,
    nameservers: observations.servers.map((server) => ({
      host: server.host,
      address: server.server?.address ?? null,
      outcome: server.outcome,
      authoritative: server.authoritative,
      values: decodeValues(server.values),
      ttl: server.ttl,
      serial: server.soa?.serial ?? null,
      ms: server.ms,
    })),
    resolvers: observations.resolvers.map(
      (resolver): ResolverReport => ({
        address: formatDnsAddress(resolver.resolver),
        outcome: resolver.outcome,
        values: decodeValues(resolver.values),
        ttl: resolver.ttl,
        ms: resolver.ms,
      }),
    ),
    findings,
    path: observations.path,
  }
}

/** How long caches may keep the old state: what resolvers say is left of it, or else the TTLs at the servers without the record. */
function retryAfter(
  observations: ZoneObservations,
  verdict: Verdict,
  findings: readonly Finding[],
): number | null {
  if (observations.expected === null) return null
  if (verdict === 'ready' || verdict === 'ready_with_warning' || verdict === 'unknown') return null
  const left = findings.flatMap(({ secondsLeft }) => secondsLeft ?? [])
  if (left.length > 0) return atMostADay(Math.max(MIN_WAIT_SECONDS, ...left))
  const { withoutRecord } = groupByOutcome(observations.servers)
  const seconds = atMostADay(oldStateTtl(withoutRecord))
  return verdict === 'wait' ? Math.max(seconds ?? 0, MIN_WAIT_SECONDS) : seconds
}

const atMostADay = (seconds: number | null | undefined): number | null =>
  seconds == null ? null : Math.min(seconds, MAX_WAIT_SECONDS)

/** The report of a check that ended before it queried a name server. */
function emptyReport(asked: Asked, name: string, verdict: Verdict, finding: Finding): CheckReport {
  return {
    name,
    expected: asked.expected,
    verdict,
    ready: false,
    retry_after_seconds: null,
    zone: null,
    nameservers: [],
    resolvers: [],
    findings: [finding],
  }
}

/** The report on an invalid name. */
export function invalidNameReport(asked: Asked, problem: string, fix: string): CheckReport {
  return emptyReport(asked, asked.name, 'fix', {
    code: 'invalid_name',
    severity: 'error',
    message: problem,
    fix,
    details: { input: asked.name },
  })
}

/** The report of a check that found no zone. */
export function zoneNotFoundReport(
  asked: Asked,
  name: string,
  location: Exclude<Location, Located>,
  resolvers: readonly DnsAddress[],
): CheckReport {
  if (location.kind === 'no-domain')
    return {
      ...emptyReport(asked, name, 'fix', {
        code: 'domain_not_found',
        severity: 'error',
        message: `The domain ${location.domain} doesn't exist: ${location.saidBy === 'resolver' ? 'the resolver' : `the registry (${location.saidBy})`} answers NXDOMAIN`,
        fix: `Check the spelling of ${location.domain}. If it's right, the domain isn't registered, has expired, or has no name servers set at the registrar`,
        details: { domain: location.domain, said_by: location.saidBy },
      }),
      retry_after_seconds: atMostADay(location.soa?.negativeTtl),
      path: location.path,
    }
  const replies = location.resolverReplies.map(({ resolver, level, reply }) => ({
    resolver: formatDnsAddress(resolver),
    question: `${level} NS`,
    answer: reply.kind === 'answer' ? reply.message.rcode : reply.kind,
  }))
  const addresses = resolvers.map(formatDnsAddress)
  const answering = location.resolverReplies.filter(({ reply }) => reply.kind === 'answer')
  const isAnswered = answering.length > 0
  // The actual public resolver would give a usable answer; any other may be broken itself.
  const isIntercepted = answering.some(({ resolver }) =>
    PUBLIC_RESOLVERS.some(({ address, port }) => address === resolver.address && port === resolver.port),
  )
  const otherResolver = 'use a resolver that works: --resolver 9.9.9.9'
  const said = describeReplies(location.resolverReplies, resolvers)
  const report = emptyReport(asked, name, 'unknown', {
    code: 'resolver_broken',
    severity: 'error',
    message:
      addresses.length === 0
        ? "No DNS resolver is configured on this machine, so the name servers couldn't be found"
        : `Couldn't find the name servers of ${name}: ${said}. The record itself may be fine`,
    fix: isIntercepted
      ? `Something on this network most likely answers instead, so another resolver won't help: ${LEAVE_INTERCEPTION}`
      : isAnswered
        ? `${capitalize(otherResolver)}. If that one gives no usable answer either, something on this network intercepts DNS: ${LEAVE_INTERCEPTION}`
        : `Check this machine's network connection, or ${otherResolver}`,
    details: { resolvers: addresses, replies },
  })
  return { ...report, path: location.path }
}
