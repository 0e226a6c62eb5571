import type { DnsAddress } from '../context.ts'
import { findZone, firstGood, isFromZone, isSuspect, MAX_HOSTS, resolveHost, type Search } from './locate.ts'
import type { AliasPath, Answer, Observations, Outcome, ServerObservation, Zone } from './observations.ts'
import { DNS_PORT } from './wire/address.ts'
import { ask, query, type Reply } from './wire/ask.ts'
import { type Message, nsHosts, soaOf } from './wire/message.ts'
import { isAskable, isWithin } from './wire/name.ts'
import { listedRegistry } from './wire/registry.ts'
import { hasText, MAX_ALIASES, readTxt, type TxtAnswer, type TxtValue } from './wire/txt-answer.ts'

/** For one server, in milliseconds. */
const SERVER_MS = 4000
/** Each costs three queries; more servers of a zone tell nothing new. */
const MAX_ADDRESSES = 24

/**
 * Asks every address of every name server for the TXT set, each once: those that the parent zone names, and those that the zone
 * itself names. Aliases are followed at the authoritative servers of their targets, which may not exist yet either.
 */
export async function askNameServers(
  location: Zone,
  search: Search,
): Promise<Pick<Observations, 'servers' | 'alias'>> {
  const { expected } = search
  const { zone } = location
  const hosts = new Set<string>()
  const asked = new Map<string, Promise<ServerReply>>()

  const askAddress = async (server: DnsAddress): Promise<ServerReply> => {
    const known = asked.get(server.address)
    if (known === undefined && asked.size >= MAX_ADDRESSES) return NOT_ASKED
    const answer = known ?? askServer(server, location, search)
    asked.set(server.address, answer)
    return await answer
  }
  const askHost = async (host: string): Promise<ServerReply[]> => {
    if (hosts.has(host) || hosts.size >= MAX_HOSTS) return []
    hosts.add(host)
    const addresses = await addressesOf(host, location, search)
    if (addresses === undefined || addresses.length === 0)
      return [{ ...NOT_ASKED, host, outcome: addresses === undefined ? 'timeout' : 'unreachable' }]
    const seen = await Promise.all(
      addresses.map(async (server) => {
        const one = await askAddress(server)
        const others = await Promise.all(one.nsSet.map(askHost))
        return [{ ...one, host, address: server.address }, ...others.flat()]
      }),
    )
    return seen.flat()
  }

  const found = await Promise.all([...location.hosts.keys()].map(askHost))
  // Copies of one zone have the same alias.
  const ends = new Map<string, Promise<AliasEnd>>()
  let alias: AliasPath | null = null
  const servers = await Promise.all(
    found.flat().map(async ({ txt, ...server }) => {
      if (txt?.aliases.length === 0 && txt.alias)
        alias ??= { targets: [txt.alias], isKnown: true, isBeside: true }
      if (txt === undefined || txt.aliases.length === 0) return server
      const key = txt.aliases.join(' ')
      const end = ends.get(key) ?? endOfAlias(zone, txt, server, search)
      ends.set(key, end)
      const { targets, isKnown, values, ttl } = await end
      alias ??= { targets, isKnown }
      if (hasText(values, expected)) return { ...server, outcome: 'match' as const, values, ttl }
      const outcome: Outcome = isKnown || expected === null ? 'alias' : 'timeout'
      return { ...server, outcome, values }
    }),
  )
  return { servers: servers.toSorted(byHost), alias }
}

/** The addresses of a name server, by the parent's glue or the resolvers; undefined if nobody knows. */
async function addressesOf(host: string, { zone, hosts, parent }: Zone, search: Search) {
  const glue = hosts.get(host) ?? []
  const addresses = glue.length > 0 ? glue : await resolveHost(host, search)
  // Without any glue in the parent zone, nobody can find servers inside the zone.
  const isUnfindable = parent !== null && [...hosts.values()].every((known) => known.length === 0)
  return addresses ?? (isUnfindable && isWithin(host, zone) ? [] : undefined)
}

/** One server's answer, with the aliases in it. */
interface ServerReply extends ServerObservation {
  readonly txt: TxtAnswer | undefined
}

const NO_ANSWER: Answer = {
  ...{ outcome: 'not_checked', values: [], ttl: null, negativeTtl: null, alias: null },
  ...{ authoritative: false, ms: null },
}

const NOT_ASKED: ServerReply = {
  ...NO_ANSWER,
  ...{ host: '', address: null, isSuspect: null, isResolver: false },
  ...{ soa: null, nsSet: [], txt: undefined },
}

/**
 * Asks one server for the name's TXT set and, if it answers, for the zone's SOA and NS set. An NS set without a host of the
 * delegation is that of an earlier provider's copy, or of an interceptor's own zone: before the absence of a record in it counts,
 * the server is asked about the registry, which only an interceptor answers.
 */
async function askServer(server: DnsAddress, { zone, hosts }: Zone, search: Search): Promise<ServerReply> {
  const { name, expected, cache, effects } = search
  if (cache.isSilent(server)) return NOT_ASKED
  const reply = await ask(server, { name, type: 'TXT' }, search.deadline.limitedTo(SERVER_MS), effects)
  if (reply.kind !== 'not_checked') cache.recordReply(server, reply.kind !== 'timeout')
  const answer = readAnswer(reply, name, expected)
  if (reply.kind !== 'answer') return { ...NOT_ASKED, ...answer }
  const { message } = reply
  const [soaAnswer, nsAnswer] = await Promise.all(
    (['SOA', 'NS'] as const).map((type) => query(server, { name: zone, type }, search, SERVER_MS)),
  )
  const soa = soaAnswer?.aa === true ? soaOf(soaAnswer) : undefined
  const isLame = !['REFUSED', 'SERVFAIL'].includes(message.rcode) && !isFromZone(message, zone)
  const nsSet = nsAnswer?.aa === true ? nsHosts(nsAnswer.answers, zone) : []
  const isAbsent = !isLame && ['mismatch', 'absent', 'nxdomain'].includes(answer.outcome)
  const isDoubtful = isAbsent && !nsSet.some((host) => hosts.has(host))
  const isInterceptor = isDoubtful && (await answersForRegistry(server, zone, search))
  return {
    ...NOT_ASKED,
    ...answer,
    ...(isLame ? { outcome: 'lame' as const } : {}),
    isSuspect: isInterceptor || isSuspect(message),
    isResolver: isInterceptor || (message.ra && !message.aa),
    ...{ soa: soa?.zone === zone ? soa : null, nsSet: isInterceptor ? [] : nsSet },
    txt: isLame ? undefined : readTxt(message, name),
  }
}

/**
 * Whether a server of the zone answers for the registry above it as well, recursion desired: other authoritative servers refuse or
 * refer (RFC 1034 section 4.3.2). Networks intercept port 53 only.
 */
async function answersForRegistry(server: DnsAddress, zone: string, search: Search): Promise<boolean> {
  if (server.port !== DNS_PORT) return false
  const name = listedRegistry(zone) ?? zone.slice(zone.lastIndexOf('.') + 1)
  const question = { name, type: 'SOA', recursionDesired: true } as const
  const message = await query(server, question, search)
  return message !== undefined && message.answers.length > 0 && (message.ra || !message.aa)
}

/** What a reply to a TXT query means, whoever gave it. Silence, refusals and incomplete answers are never absence. */
export function readAnswer(reply: Reply, name: string, expected: string | null): Answer {
  if (reply.kind !== 'answer')
    return { ...NO_ANSWER, outcome: reply.kind, ms: reply.kind === 'not_checked' ? null : reply.ms }
  const { message, ms } = reply
  const { values, ttl, aliases } = readTxt(message, name)
  const outcome = outcomeOf(message.rcode, values, expected)
  return {
    // Truncated, because TCP didn't bring the rest.
    outcome: message.tc && (outcome === 'mismatch' || outcome === 'absent') ? 'timeout' : outcome,
    ...{ values, ttl, alias: aliases[0] ?? null, authoritative: message.aa, ms },
    negativeTtl: values.length > 0 ? null : (soaOf(message)?.negativeTtl ?? null),
  }
}

function outcomeOf(rcode: string, values: readonly TxtValue[], expected: string | null): Outcome {
  if (rcode === 'NXDOMAIN') return 'nxdomain'
  if (rcode === 'REFUSED') return 'refused'
  if (rcode !== 'NOERROR') return rcode === 'SERVFAIL' ? 'servfail' : 'lame'
  if (values.length === 0) return 'absent'
  return hasText(values, expected) ? 'match' : 'mismatch'
}

/** Where an alias leads, and what is there. */
type AliasEnd = AliasPath & Pick<TxtAnswer, 'values' | 'ttl'>

/** The end of the alias: as the server itself says if all is in its zone, or else as those of the targets' zones say. */
async function endOfAlias(zone: string, txt: TxtAnswer, answer: Answer, search: Search): Promise<AliasEnd> {
  const { aliases, values, ttl } = txt
  const { outcome, negativeTtl } = answer
  const isInZone = aliases.every((target) => isWithin(target, zone))
  // The rcode is about the end of the chain, if the server knows it (RFC 6604 section 3).
  if (isInZone && (values.length > 0 || outcome === 'nxdomain' || negativeTtl !== null))
    return { targets: aliases, isKnown: true, values, ttl }
  return await followAlias([search.name, ...aliases], search)
}

async function followAlias(visited: readonly string[], search: Search): Promise<AliasEnd> {
  const targets = visited.slice(1)
  const target = targets.at(-1) ?? ''
  const nothing = (isKnown: boolean): AliasEnd => ({ targets, isKnown, values: [], ttl: null })
  // Nobody has a name of one label: it is the value, of a record that became a CNAME instead of a TXT record.
  if (targets.length > MAX_ALIASES || !isAskable(target) || !target.includes('.')) return nothing(true)
  const location = await findZone(target, search)
  if (location.kind !== 'found') return nothing(location.kind === 'no_domain')
  const hosts = [...location.hosts.keys()].slice(0, 4)
  const known = await Promise.all(hosts.map((host) => addressesOf(host, location, search)))
  const servers = known.flatMap((addresses) => addresses ?? []).slice(0, 4)
  const isGood = (one: Message) =>
    ['NOERROR', 'NXDOMAIN', 'YXDOMAIN'].includes(one.rcode) && isFromZone(one, location.zone)
  const answers = servers.map((server) => query(server, { name: target, type: 'TXT' }, search, SERVER_MS))
  const message = await firstGood(answers, isGood)
  // Where nobody can be asked, or all that answer refuse, nobody finds a value either.
  if (message === undefined) return nothing(known.every((addresses) => addresses?.length === 0))
  if (!isGood(message)) return nothing(!message.ra)
  const { aliases, values, ttl } = readTxt(message, target)
  const isOver = values.length > 0 || aliases.length === 0
  if (isOver || aliases.some((one) => visited.includes(one)))
    return { targets: [...targets, ...aliases], isKnown: true, values, ttl }
  return await followAlias([...visited, ...aliases], search)
}

/** By host, IPv4 first. */
function byHost(one: ServerObservation, other: ServerObservation): number {
  const key = ({ host, address }: ServerObservation) => `${host} ${address?.includes(':') ? 1 : 0} ${address}`
  return key(one) < key(other) ? -1 : 1
}
