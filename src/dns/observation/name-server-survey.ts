import type { DnsAddress } from '../../context.ts'
import { MAX_HOSTS } from '../resolution/delegation.ts'
import type { Located } from '../resolution/delegation-walk.ts'
import { askServersForHost, uniqueAddresses } from '../resolution/host-addresses.ts'
import type { HostAddresses, ResolutionContext } from '../resolution/resolution-context.ts'
import { isWithin } from '../wire/name.ts'
import type { Observation } from './observations.ts'
import { observeServer, type SurveyQuestion, withoutAddress } from './observe-server.ts'

/** Each gets at least three queries; more servers of a zone tell nothing new. */
const MAX_ADDRESSES = 24
/** How long to wait for more addresses of a host that has some. */
const MORE_ADDRESSES_MS = 2500

/** The name servers of a zone, by the parent's and by its own NS records, while their answers come in. */
export interface NameServerSurvey {
  /** The answers so far. */
  readonly seen: () => Observation[]
  /** The zone's own NS set, merged from all servers; undefined if none gave one. */
  readonly childHosts: () => string[] | undefined
  /** The hosts whose addresses were only found at the target of an alias, with that target. */
  readonly hostAliases: ReadonlyMap<string, string>
  readonly done: Promise<void>
}

/**
 * Queries every address of every name server, each once: those found by the walk, those the resolvers know, and those in
 * the zone itself.
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
  const started = new Map<string, Promise<void>>()
  const hosts = new Map<string, Promise<void>>()
  const childHosts = new Set<string>()
  const hostAliases = new Map<string, string>()

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
  const withTimeLimit = (looked: Promise<HostAddresses>): Promise<HostAddresses> =>
    Promise.race([
      looked,
      clock
        .sleep(MORE_ADDRESSES_MS, signal)
        .then((): HostAddresses => ({ addresses: [], failure: 'timeout' })),
    ])

  const observe = (host: string, server: DnsAddress): Promise<void> => {
    const key = `${server.address} ${server.port}`
    if (!started.has(key) && started.size >= MAX_ADDRESSES) {
      observations.set(key, { ...withoutAddress(host, 'not_checked'), server })
      return Promise.resolve()
    }
    alsoKnownAs.set(key, (alsoKnownAs.get(key) ?? new Set()).add(host))
    const running = started.get(key)
    if (running !== undefined) return running
    const task = observeServer(host, server, question, context).then(async (observation) => {
      observations.set(key, observation)
      for (const child of observation.nsSet ?? []) childHosts.add(child)
      await Promise.all((observation.nsSet ?? []).map((child) => observeHost(child, [])))
    })
    started.set(key, task)
    return task
  }
  const observeHost = (host: string, known: readonly DnsAddress[]): Promise<void> => {
    const running = hosts.get(host)
    if (running !== undefined || hosts.size >= MAX_HOSTS) return running ?? Promise.resolve()
    // Two servers may name each other, so no host waits for another one.
    const task = (async () => {
      track(...known.map((server) => observe(host, server)))
      const found = await (known.length > 0
        ? withTimeLimit(context.resolveHost(host))
        : context.resolveHost(host))
      if (known.length === 0 && found.alias !== undefined) hostAliases.set(host, found.alias)
      const addresses = uniqueAddresses([
        ...known,
        ...found.addresses,
        ...(found.addresses.length + known.length > 0 ? [] : await askServersForHost(host, servers, context)),
      ])
      if (addresses.length === 0)
        observations.set(host, withoutAddress(host, isCertain(found, host) ? 'unreachable' : 'timeout'))
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
    done,
  }
}
