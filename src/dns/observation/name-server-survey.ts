import type { DnsAddress } from '../../context.ts'
import { MAX_HOSTS } from '../resolution/delegation.ts'
import type { Located } from '../resolution/delegation-walk.ts'
import { askServersForHost, uniqueAddresses } from '../resolution/host-addresses.ts'
import type { AddressClaim, HostAddresses, ResolutionContext } from '../resolution/resolution-context.ts'
import { isServerAddress } from '../wire/address.ts'
import { isWithin } from '../wire/name.ts'
import type { HostAlias, Observation } from './observations.ts'
import { observeServer, type SurveyQuestion, withoutAddress } from './observe-server.ts'

/** Each gets at least three queries; more servers of a zone tell nothing new. */
const MAX_ADDRESSES = 24
/** How long to wait for more addresses of a host that has some. */
const MORE_ADDRESSES_MS = 2500
/** How long a server that only a resolver knows may take to show the record before its address is doubted. */
const DOUBT_AFTER_MS = 1000

const NOTHING: HostAddresses = { addresses: [], failure: 'timeout', claims: [] }
const keyOf = ({ address, port }: DnsAddress) => `${address} ${port}`

/** The name servers of a zone, by the parent's and by its own NS records, while their answers come in. */
export interface NameServerSurvey {
  /** The answers so far. */
  readonly seen: () => Observation[]
  /** The zone's own NS set, merged from all servers; undefined if none gave one. */
  readonly childHosts: () => string[] | undefined
  /** The hosts that are aliases. */
  readonly hostAliases: ReadonlyMap<string, HostAlias>
  /** The addresses that resolvers give for a host, but its own zone and the registry don't. */
  readonly unconfirmed: readonly AddressClaim[]
  readonly done: Promise<void>
}

/**
 * Queries every address of every name server, each once: those found by the walk, and those in the zone itself. A
 * resolver may give others (split DNS, filters): what only a resolver knows counts if it shows the record, or if nobody
 * knows better.
 */
export function surveyNameServers(
  located: Located,
  asked: Pick<SurveyQuestion, 'name' | 'expected' | 'serverMs'>,
  context: ResolutionContext,
): NameServerSurvey {
  const question = { ...asked, zone: located.delegation.zone, zoneFound: located.standIn !== true }
  const servers = uniqueAddresses([...located.delegation.hosts.values()].flat())
  const observations = new Map<string, Observation>()
  // Two hosts may share an address: it is queried once, and both are shown.
  const alsoKnownAs = new Map<string, Set<string>>()
  const started = new Map<string, Promise<Observation>>()
  const hosts = new Map<string, Promise<void>>()
  const childHosts = new Set<string>()
  const hostAliases = new Map<string, HostAlias>()
  const unconfirmed: AddressClaim[] = []

  const pending: Promise<void>[] = []
  const track = (...tasks: Promise<void>[]) => {
    // They are awaited one after the other, and a rejection must not count as unhandled until then.
    for (const task of tasks) task.catch(() => undefined)
    pending.push(...tasks)
  }

  // A failed lookup may be the network's fault, unless the registry could be reached. And if the registry has no glue for
  // servers inside the zone, nobody can find their addresses.
  const isCertain = ({ failure }: HostAddresses, host: string) =>
    failure === 'no-address' ||
    (located.parent !== undefined &&
      (failure === 'lookup-failed' || (servers.length === 0 && isWithin(host, question.zone))))

  const { clock, signal } = context.effects
  const within = <T>(limitMs: number, looked: Promise<T>, otherwise: T): Promise<T> =>
    Promise.race([looked, clock.sleep(limitMs, signal).then(() => otherwise)])

  const query = (host: string, server: DnsAddress): Promise<Observation> => {
    const running = started.get(keyOf(server))
    if (running !== undefined) return running
    const task =
      started.size < MAX_ADDRESSES
        ? observeServer(host, server, question, context)
        : Promise.resolve({ ...withoutAddress(host, 'not_checked'), server })
    started.set(keyOf(server), task)
    return task
  }
  const observe = async (host: string, server: DnsAddress): Promise<void> => {
    const key = keyOf(server)
    alsoKnownAs.set(key, (alsoKnownAs.get(key) ?? new Set()).add(host))
    const observation = await query(host, server)
    if (observations.has(key)) return
    observations.set(key, observation)
    for (const child of observation.nsSet ?? []) childHosts.add(child)
    await Promise.all((observation.nsSet ?? []).map((child) => observeHost(child, [])))
  }
  const haveRecord = async (host: string, claimed: readonly DnsAddress[]): Promise<boolean> => {
    const answers = Promise.all(claimed.map((server) => query(host, server)))
    const early = await within(DOUBT_AFTER_MS, answers, [])
    return early.length > 0 && early.every(({ outcome }) => outcome === 'match')
  }
  /** Without an answer from the registry, the servers of other zones can't be found either. */
  const askOwnZone = (host: string): Promise<readonly DnsAddress[]> =>
    isWithin(host, question.zone) || located.parent === undefined
      ? askServersForHost(host, servers, context)
      : context.walkToHost(host)

  const observeHost = (host: string, known: readonly DnsAddress[]): Promise<void> => {
    const running = hosts.get(host)
    if (running !== undefined || hosts.size >= MAX_HOSTS) return running ?? Promise.resolve()
    // Two servers may name each other, so no host waits for another one.
    const task = (async () => {
      track(...known.map((server) => observe(host, server)))
      const looked = context.resolveHost(host)
      const found = await (known.length > 0 ? within(MORE_ADDRESSES_MS, looked, NOTHING) : looked)
      if (found.alias !== undefined) hostAliases.set(host, { target: found.alias, hasGlue: known.length > 0 })
      const claimed = found.addresses.filter((server) => !known.map(keyOf).includes(keyOf(server)))
      // Asking is cheap then. Otherwise only a server without the record is doubted, so healthy checks need no more queries.
      const isEasyToAsk = known.length > 0 || (servers.length > 0 && isWithin(host, question.zone))
      const isDoubtful =
        claimed.length > 0 ? isEasyToAsk || !(await haveRecord(host, claimed)) : known.length === 0
      const limitMs = claimed.length > 0 ? MORE_ADDRESSES_MS : context.deadline - clock.monotonic()
      const own = isDoubtful ? await within(limitMs, askOwnZone(host), []) : []
      const confirmed = uniqueAddresses([...known, ...own])
      const addresses = confirmed.length > 0 ? confirmed : claimed
      if (addresses.length === 0)
        observations.set(host, withoutAddress(host, isCertain(found, host) ? 'unreachable' : 'timeout'))
      const keys = addresses.map(keyOf)
      unconfirmed.push(
        ...found.claims.filter(
          ({ server }) => !keys.includes(keyOf(server)) && (own.length > 0 || !isServerAddress(server)),
        ),
      )
      track(...addresses.map((server) => observe(host, server)))
    })()
    hosts.set(host, task)
    track(task)
    return Promise.resolve()
  }
  for (const [host, addresses] of located.delegation.hosts) void observeHost(host, addresses)
  const done = (async () => {
    for (let index = 0; index < pending.length; index += 1) await pending[index]
  })()
  return {
    seen: () =>
      [...observations].flatMap(([key, observation]) =>
        [...(alsoKnownAs.get(key) ?? [observation.host])].map((host) => ({ ...observation, host })),
      ),
    childHosts: () => (childHosts.size > 0 ? [...childHosts] : undefined),
    hostAliases,
    unconfirmed,
    done,
  }
}
