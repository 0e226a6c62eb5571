import type { DnsServerAddress } from '../context.ts'
import { formatResolver } from '../dns/wire/address.ts'
import { createDnsEffects, trySendQuery } from '../dns/wire/ask.ts'
import { getDnsSettings } from '../settings/settings.ts'
import type { Io } from '../terminal/io.ts'
import { createDeadline } from '../timeout.ts'
import { type CheckResult, okResult, skippedResult, warningResult } from './check-result.ts'

/** Maximum milliseconds to wait for a resolver, which may have to query other servers first. */
const RESOLVER_TIMEOUT_MS = 5000
/** Maximum milliseconds to wait for a root server, which answers from its own zone. */
const ROOT_TIMEOUT_MS = 3000
/** Addresses of two root servers of different operators (https://www.iana.org/domains/root/servers). */
const ROOT_SERVERS: readonly DnsServerAddress[] = [
  { address: '193.0.14.129', port: 53 },
  { address: '199.7.83.42', port: 53 },
]
const ROOT_QUESTION = { name: '.', type: 'SOA' } as const
/** Query for the NS records of `com`: a resolver that doesn't find them fails, or has a private root zone. */
const COM_QUESTION = { name: 'com', type: 'NS', recursionDesired: true } as const
const OVER_HTTPS = 'use a resolver over HTTPS: mailclaim config set resolver https://dns.quad9.net/dns-query'

/**
 * Checks that the configured resolvers, by default the system's, find the NS records of `com`. A failure is only a warning, because
 * commands may still work.
 */
export async function examineResolvers(io: Io): Promise<CheckResult> {
  const { resolvers: chosen } = getDnsSettings(io.settings)
  const resolvers = chosen === 'system' ? await io.dns.systemResolvers() : chosen
  if (resolvers.length === 0) return warningResult('the system has no usable resolver', OVER_HTTPS)
  const deadline = createDeadline(RESOLVER_TIMEOUT_MS, io.clock)
  const replies = await Promise.all(
    resolvers.map((resolver) => trySendQuery(resolver, COM_QUESTION, deadline, createDnsEffects(io))),
  )
  const problems = replies.map((reply) => {
    if (reply.kind !== 'answer') return reply.reason ?? 'no answer'
    const { rcode, answers } = reply.message
    if (rcode !== 'NOERROR') return rcode
    return answers.some(({ type }) => type === COM_QUESTION.type) ? '' : 'NOERROR without data'
  })
  const addresses = resolvers.map(formatResolver)
  const wrong = addresses.flatMap((address, at) => (problems[at] ? `${address} (${problems[at]})` : []))
  if (wrong.length > 0)
    return warningResult(`resolvers that did not find com, which exists: ${wrong.join(', ')}`, OVER_HTTPS)
  const owner = chosen === 'system' ? "the system's resolvers" : 'the chosen resolvers'
  return okResult(`${owner} respond: ${addresses.join(', ')}`)
}

/**
 * Checks that queries from this machine reach authoritative servers. A root server answers for the root zone with AA and without
 * RA; other flags show that something intercepts port 53. Skipped with a configured resolver or port, which may be of private DNS.
 */
export async function examineDirectDns(io: Io): Promise<CheckResult> {
  const { resolvers, authoritativePort } = getDnsSettings(io.settings)
  if (authoritativePort !== 53 || resolvers !== 'system')
    return skippedResult('not applicable with a custom resolver or port, since DNS may be private')
  const deadline = createDeadline(ROOT_TIMEOUT_MS, io.clock)
  const replies = await Promise.all(
    ROOT_SERVERS.map((server) => trySendQuery(server, ROOT_QUESTION, deadline, createDnsEffects(io))),
  )
  const answers = replies.flatMap((reply) => (reply.kind === 'answer' ? reply.message : []))
  if (answers.length === 0)
    return warningResult(
      'no name server is reachable from here: outbound port 53 is blocked',
      `have it opened, or ${OVER_HTTPS}`,
    )
  if (answers.some(({ ra, aa }) => ra || !aa))
    return warningResult(
      'DNS is intercepted: another server answers in place of the name servers',
      'run claims check from another network: VPNs, hotels and some providers intercept DNS',
    )
  return okResult('name servers are reachable')
}
