import type { DnsAddress } from '../../context.ts'
import { askResolver } from '../resolution/ask-resolver.ts'
import type { ResolutionContext } from '../resolution/resolution-context.ts'
import { isPrivateAddress } from '../wire/address.ts'
import { ask, type Reply } from '../wire/exchange.ts'
import { type Soa, soaOf } from '../wire/message.ts'
import { isDnsData, type Observation, type ResolverObservation, type ZoneView } from './observations.ts'
import { classifyResolver } from './observe-server.ts'

const RESOLVER_MS = 3000
/** With less time than this, silence doesn't count as a timeout. */
const MIN_RESOLVER_MS = 1500
/** A TTL in a cache is smaller after this. */
const COUNTDOWN_MS = 1100
/** Enough: the resolver has most likely cached the zone's SOA and NS records. */
const ZONE_MS = 2000

/** What a resolver is asked about. */
export interface ResolverQuestion {
  readonly name: string
  readonly zone: string
  /** The whole TXT value. */
  readonly expected: string
  /** The time limit for a resolver that has answered before, in milliseconds. */
  readonly responsiveMs: number | undefined
}

/**
 * Asks a resolver for the record. If it answers SERVFAIL, asks again with checking disabled; if it lacks the record, asks
 * how it sees the zone. A resolver that has answered in this check may take all the time that is left: with a cold cache,
 * it has to resolve everything from the root.
 */
export async function observeResolver(
  resolver: DnsAddress,
  { name, zone, expected, responsiveMs = RESOLVER_MS }: ResolverQuestion,
  context: ResolutionContext,
): Promise<ResolverObservation> {
  const { clock } = context.effects
  const start = clock.monotonic()
  const allowed = context.responsive.has(resolver) ? responsiveMs : RESOLVER_MS
  const deadline = Math.min(context.deadline, start + allowed)
  let authenticated = false
  const observe = async (checkingDisabled: boolean): Promise<Observation> => {
    const options = { recursionDesired: true, checkingDisabled, deadline }
    const reply = await ask(resolver, { name, type: 'TXT' }, options, context.effects)
    authenticated = reply.kind === 'answer' && reply.message.ad
    return classifyResolver(resolver, reply, name, expected)
  }
  const seen = (observation: Observation, more: Partial<ResolverObservation> = {}): ResolverObservation => ({
    ...observation,
    resolver,
    authenticated,
    withCheckingDisabled: undefined,
    zoneView: undefined,
    ...more,
  })
  const first = await observe(false)
  if (first.outcome === 'timeout' && deadline - start < MIN_RESOLVER_MS)
    return seen({ ...first, outcome: 'not_checked' })
  if (first.outcome === 'servfail') {
    const withCheckingDisabled = await observe(true)
    // It may also have failed because a server was slow: then it has the answer by now, and no signature is bad.
    const last = isDnsData(withCheckingDisabled.outcome) ? await observe(false) : first
    return isDnsData(last.outcome) ? seen(last) : seen(first, { withCheckingDisabled })
  }
  if (!isDnsData(first.outcome) || first.outcome === 'match' || first.authoritative) return seen(first)
  const zoneView = await viewZone(zone, resolver, context)
  const isSteady = async () => {
    // Without a TTL, it isn't cached.
    if (ttlOf(first) === undefined) return false
    if (clock.monotonic() + COUNTDOWN_MS + 200 > context.deadline) return false
    await clock.sleep(COUNTDOWN_MS, context.effects.signal)
    const again = await observe(false)
    return ttlOf(again) === ttlOf(first)
  }
  return seen(first, { zoneView: { ...zoneView, steadyTtl: await isSteady() } })
}

const ttlOf = ({ values, ttl, negativeTtl }: Observation) =>
  (values.length > 0 ? (ttl ?? undefined) : negativeTtl) || undefined

/** Both records exist, so asking for them doesn't poison the cache with a negative answer. */
async function viewZone(
  zone: string,
  resolver: DnsAddress,
  context: ResolutionContext,
): Promise<Omit<ZoneView, 'steadyTtl'>> {
  const deadline = Math.min(context.deadline, context.effects.clock.monotonic() + ZONE_MS)
  const [soa, ns] = await Promise.all(
    (['SOA', 'NS'] as const).map((type) =>
      askResolver(resolver, { name: zone, type }, { ...context, deadline }),
    ),
  )
  const nsSet = nsSetOf(ns, zone)
  if (nsSet === undefined) return { soa: zoneSoa(soa, zone), nsSet }
  const found = await Promise.all(nsSet.hosts.slice(0, 2).map(context.resolveHost))
  const addresses = found.flatMap((host) => host.addresses.map(({ address }) => address))
  return { soa: zoneSoa(soa, zone), nsSet: { ...nsSet, isPrivate: addresses.some(isPrivateAddress) } }
}

function zoneSoa(reply: Reply | undefined, zone: string): Soa | undefined {
  const soa = reply?.kind === 'answer' ? soaOf(reply.message) : undefined
  return soa?.zone === zone ? soa : undefined
}

function nsSetOf(
  reply: Reply | undefined,
  zone: string,
): { hosts: readonly string[]; ttl: number } | undefined {
  if (reply?.kind !== 'answer') return undefined
  const records = reply.message.answers.filter((record) => record.type === 'NS' && record.name === zone)
  const hosts = records.flatMap((record) => (record.type === 'NS' ? [record.target] : []))
  const [first] = records
  return first === undefined ? undefined : { hosts, ttl: first.ttl }
}
