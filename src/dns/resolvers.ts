import { toComparableKeyData } from './dnssec.ts'
import type { CheckRun } from './locate.ts'
import { isConclusive, type ResolverObservation } from './observations.ts'
import { toTxtObservation } from './servers.ts'
import type { DnsServer } from './wire/address.ts'
import { queryDns, trySendQuery } from './wire/ask.ts'
import { collectNsHosts, type DnsReply } from './wire/message.ts'

/** Maximum milliseconds for the TXT queries to a resolver, which queries servers from the root down if its cache is empty. */
const RESOLVER_MS = 5000

/**
 * Queries a resolver for the TXT set of the name. If the resolver lacks the record although the name servers have it, also queries
 * the resolver for records of the zone that its cache may hold outdated: the NS set or, if DNSSEC validation fails, DS and DNSKEY.
 *
 * @param zone zone of the name if the name servers have the record; otherwise undefined
 */
export async function observeResolver(
  resolver: DnsServer,
  zone: string | undefined,
  check: CheckRun,
): Promise<ResolverObservation> {
  const { name, expected } = check
  const deadline = check.deadline.limitedTo(RESOLVER_MS)
  const observe = async (checkingDisabled: boolean): Promise<ResolverObservation> => {
    const question = { name, type: 'TXT', recursionDesired: true, checkingDisabled } as const
    const reply = await trySendQuery(resolver, question, deadline, check.effects)
    const answer = toTxtObservation(reply, name, expected)
    const message = reply.kind === 'answer' ? reply.message : undefined
    // Without the RA and AA bits, the server offers neither recursion nor authority, so its response proves nothing: report it as
    // not checked.
    const knowsNothing = message?.ra === false && !message.aa
    return {
      ...answer,
      ...(knowsNothing ? { outcome: 'not_checked' } : {}),
      ...{ resolver, failsValidation: false, explanation: message?.explanation ?? null, cached: null },
    }
  }
  const queryCached = async (
    types: readonly ('NS' | 'DS' | 'DNSKEY')[],
    textsOf: (message: DnsReply) => readonly string[],
  ) => {
    const flags = { recursionDesired: true, checkingDisabled: true, dnssecOk: true }
    const asked = types.map((type) => queryDns(resolver, { name: zone ?? name, type, ...flags }, check))
    const messages = (await Promise.all(asked)).flatMap((message) => message ?? [])
    const ttls = messages.flatMap(({ answers }) => answers.map(({ ttl }) => ttl))
    return { texts: messages.flatMap(textsOf), ttl: Math.max(0, ...ttls) }
  }
  const first = await observe(false)
  if (zone === undefined) return first
  if (isConclusive(first.outcome) && first.outcome !== 'match')
    return { ...first, cached: await queryCached(['NS'], ({ answers }) => collectNsHosts(answers, zone)) }
  if (first.outcome !== 'servfail') return first
  const { outcome: unchecked } = await observe(true)
  if (!isConclusive(unchecked)) return first
  // The query with the CD bit succeeded, so DNSSEC validation probably failed. But a slow name server can cause SERVFAIL too:
  // report failed validation only if a second query without the CD bit also gets SERVFAIL.
  const again = await observe(false)
  if (again.outcome !== 'servfail') return again
  return { ...again, failsValidation: true, cached: await queryCached(['DS', 'DNSKEY'], toComparableKeyData) }
}
