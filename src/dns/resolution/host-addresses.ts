import type { DnsAddress } from '../../context.ts'
import { isServerAddress } from '../wire/address.ts'
import { ask } from '../wire/exchange.ts'
import type { Message, ResourceRecord } from '../wire/message.ts'
import { isAskable } from '../wire/name.ts'
import { askResolver } from './ask-resolver.ts'
import { bestOf } from './race.ts'
import type { AddressClaim, HostAddresses, ResolutionContext } from './resolution-context.ts'

/** The time limit for the servers of one zone. */
export const LEVEL_MS = 1500

/** A resolver with a cold cache may need this long for a zone with slow servers. */
const LOOKUP_MS = 5500

/** The IPv4 and IPv6 addresses of a name server host, from the resolvers. */
export async function queryHostAddresses(host: string, context: ResolutionContext): Promise<HostAddresses> {
  if (!isAskable(host)) return { addresses: [], failure: 'no-address', claims: [] }
  const deadline = Math.min(context.deadline, context.effects.clock.monotonic() + LOOKUP_MS)
  let alias: string | undefined
  const claims: AddressClaim[] = []
  const families = await Promise.all(
    (['A', 'AAAA'] as const).map((type) =>
      bestOf(
        context.resolvers.map((resolver) => async () => {
          const reply = await askResolver(resolver, { name: host, type }, { ...context, deadline })
          if (reply.kind !== 'answer') return undefined
          const { rcode, ra } = reply.message
          const found =
            rcode === 'NOERROR' ? answeredAddresses(reply.message, host, context.authoritativePort) : []
          for (const record of reply.message.answers)
            if (record.type === 'CNAME' && record.name === host) alias = record.target
          claims.push(...found.map((server) => ({ host, server, resolver })))
          const usable = found.filter(isServerAddress)
          if (usable.length > 0) return usable
          // Without recursion, it knows only its own zones.
          if (!ra) return undefined
          return rcode === 'NOERROR' || rcode === 'NXDOMAIN' ? usable : ('failed' as const)
        }),
        (addresses) => (addresses === 'failed' ? 2 : addresses.length > 0 ? 0 : 1),
        context.effects,
      ),
    ),
  )
  const addresses = uniqueAddresses(families.flatMap((found) => (found === 'failed' ? [] : (found ?? []))))
  if (addresses.length > 0) return { addresses, failure: undefined, alias, claims }
  if (claims.length > 0) return { addresses, failure: 'filtered', claims }
  if (families.includes(undefined)) return { addresses, failure: 'timeout', claims }
  return { addresses, failure: families.includes('failed') ? 'lookup-failed' : 'no-address', claims }
}

/** The addresses of a host inside a zone, from the zone's own servers, which know them even if no resolver does. */
export async function askServersForHost(
  host: string,
  servers: readonly DnsAddress[],
  context: ResolutionContext,
): Promise<DnsAddress[]> {
  if (!isAskable(host)) return []
  const deadline = Math.min(context.deadline, context.effects.clock.monotonic() + LEVEL_MS)
  const found = await Promise.all(
    servers.slice(0, 3).flatMap((server) =>
      (['A', 'AAAA'] as const).map(async (type) => {
        const reply = await ask(server, { name: host, type }, { deadline }, context.effects)
        return reply.kind === 'answer' && reply.message.aa
          ? addressesIn(reply.message, host, context.authoritativePort)
          : []
      }),
    ),
  )
  return uniqueAddresses(found.flat())
}

/** The addresses of a host in a message, glue included. */
export function addressesIn(message: Message, host: string, port: number): DnsAddress[] {
  return toAddresses(
    [...message.answers, ...message.additional].filter((record) => record.name === host),
    port,
  )
}

/**
 * The addresses that a message gives for a host. In the answer section, an alias may put them under another name; in the
 * additional section, other names are other hosts.
 */
function answeredAddresses(message: Message, host: string, port: number): DnsAddress[] {
  return uniqueAddresses([...toAddresses(message.answers, port), ...addressesIn(message, host, port)])
}

function toAddresses(records: readonly ResourceRecord[], port: number): DnsAddress[] {
  return uniqueAddresses(
    records.flatMap((record) =>
      record.type === 'A' || record.type === 'AAAA' ? [{ address: record.address, port }] : [],
    ),
  )
}

export function uniqueAddresses(addresses: readonly DnsAddress[]): DnsAddress[] {
  return [...new Map(addresses.map((server) => [`${server.address} ${server.port}`, server])).values()]
}
