import type { DnsAddress } from '../../context.ts'
import { MOST_HOSTS } from '../resolution/delegation.ts'
import type { Located } from '../resolution/delegation-walk.ts'
import { askForHost, type HostAddresses, unique } from '../resolution/host-addresses.ts'
import type { ResolutionContext } from '../resolution/resolution-context.ts'
import { isWithin } from '../wire/name.ts'
import type { Observation } from './observations.ts'
import { observeServer, type SurveyQuestion, withoutAddress } from './observe-server.ts'

/** Each is asked three questions and more; the rest of a zone with so many servers tells nothing new. */
const MOST_ADDRESSES = 24
/** So long the survey waits for more addresses of a host that has some. */
const MORE_ADDRESSES_MS = 2500

/** Every server of a zone, from both sides of the delegation, while the answers come in. */
export interface NameServerSurvey {
  /** What has been seen so far. */
  readonly seen: () => Observation[]
  /** The zone's own NS set, all servers' answers together; undefined where none gave one. */
  readonly childHosts: () => string[] | undefined
  readonly done: Promise<void>
}

/**
 * Observes every address of every name server: those the walk came to, those the resolvers know, and those the zone
 * itself names. Each address is asked once.
 */
export function surveyNameServers(
  located: Located,
  asked: Pick<SurveyQuestion, 'name' | 'expected' | 'serverMs'>,
  context: ResolutionContext,
): NameServerSurvey {
  const question = { ...asked, zone: located.delegation.zone, zoneFound: located.standIn !== true }
  const servers = unique([...located.delegation.hosts.values()].flat())
  const observations = new Map<string, Observation>()
  // Two hosts at one address: it is asked once, and both are shown.
  const alsoKnownAs = new Map<string, Set<string>>()
  const started = new Map<string, Promise<void>>()
  const hosts = new Map<string, Promise<void>>()
  const childHosts = new Set<string>()

  const pending: Promise<void>[] = []
  const track = (...tasks: Promise<void>[]) => {
    // They are awaited one after the other: a rejection must not count as unhandled before its turn.
    for (const task of tasks) task.catch(() => undefined)
    pending.push(...tasks)
  }

  // A resolver that fails says nothing where the whole network may fail; with a registry within reach, it does not. And
  // where the registry has no address for servers inside the zone, nobody can find one.
  const isAFact = ({ lack }: HostAddresses, host: string) =>
    lack === 'none' ||
    (located.parent !== undefined &&
      (lack === 'failed' || (servers.length === 0 && isWithin(host, question.zone))))

  const { clock, signal } = context.effects
  const withPatience = (looked: Promise<HostAddresses>): Promise<HostAddresses> =>
    Promise.race([
      looked,
      clock.sleep(MORE_ADDRESSES_MS, signal).then((): HostAddresses => ({ addresses: [], lack: 'silence' })),
    ])

  const observe = (host: string, server: DnsAddress): Promise<void> => {
    const key = `${server.address} ${server.port}`
    if (!started.has(key) && started.size >= MOST_ADDRESSES) {
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
    if (running !== undefined || hosts.size >= MOST_HOSTS) return running ?? Promise.resolve()
    // Two servers may name each other: nothing here waits for a host that waits for it.
    const task = (async () => {
      track(...known.map((server) => observe(host, server)))
      const found = await (known.length > 0
        ? withPatience(context.resolveHost(host))
        : context.resolveHost(host))
      const addresses = unique([
        ...known,
        ...found.addresses,
        ...(found.addresses.length + known.length > 0 ? [] : await askForHost(host, servers, context)),
      ])
      if (addresses.length === 0)
        observations.set(host, withoutAddress(host, isAFact(found, host) ? 'unreachable' : 'timeout'))
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
    done,
  }
}
