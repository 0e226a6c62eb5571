import type { DnsAddress } from '../../context.ts'
import { ask } from '../wire/exchange.ts'
import type { Message, ResourceRecord } from '../wire/message.ts'
import { isAskable } from '../wire/name.ts'
import { askResolver } from './ask-resolver.ts'
import { bestOf } from './race.ts'
import type { ResolutionContext } from './resolution-context.ts'

/** How long the servers of one zone may take before the walk goes on without them. */
export const LEVEL_MS = 1500

export interface HostAddresses {
  readonly addresses: readonly DnsAddress[]
  /**
   * Without an address: whether there is `none`, a resolver tried and `failed` (missing glue, name servers in a circle, a
   * zone that is down), or nobody answered in time.
   */
  readonly lack: 'none' | 'failed' | 'silence' | undefined
}

/** A resolver with a cold cache may need as long for a zone with slow servers. */
const LOOKUP_MS = 5500

/** Addresses of a name server host, v4 and v6, through the resolvers. */
export async function queryHostAddresses(
  host: string,
  context: Omit<ResolutionContext, 'resolveHost'>,
): Promise<HostAddresses> {
  if (!isAskable(host)) return { addresses: [], lack: 'none' }
  const deadline = Math.min(context.deadline, context.effects.clock.monotonic() + LOOKUP_MS)
  const families = await Promise.all(
    (['A', 'AAAA'] as const).map((type) =>
      bestOf(
        context.resolvers.map((resolver) => async () => {
          const reply = await askResolver(resolver, { name: host, type }, { ...context, deadline })
          if (reply.kind !== 'answer') return undefined
          const { rcode, ra } = reply.message
          const found =
            rcode === 'NOERROR' ? answeredAddresses(reply.message, host, context.authoritativePort) : []
          // Without recursion on offer, it does not know what is elsewhere.
          if (found.length > 0 || !ra) return found.length > 0 ? found : undefined
          return rcode === 'NOERROR' || rcode === 'NXDOMAIN' ? found : ('failed' as const)
        }),
        (addresses) => (addresses === 'failed' ? 2 : addresses.length > 0 ? 0 : 1),
        context.effects,
      ),
    ),
  )
  const addresses = unique(families.flatMap((found) => (found === 'failed' ? [] : (found ?? []))))
  if (addresses.length > 0) return { addresses, lack: undefined }
  if (families.includes(undefined)) return { addresses, lack: 'silence' }
  return { addresses, lack: families.includes('failed') ? 'failed' : 'none' }
}

/** Addresses of a host inside a zone, from the zone's own servers: where no resolver knows the zone, they still do. */
export async function askForHost(
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
  return unique(found.flat())
}

/** The addresses that a message carries for a host, glue included. */
export function addressesIn(message: Message, host: string, port: number): DnsAddress[] {
  return toAddresses(
    [...message.answers, ...message.additional].filter((record) => record.name === host),
    port,
  )
}

/**
 * The addresses that a message answers for a host. They may be under another name in the answer, behind an alias;
 * beside the answer, other names belong to other hosts: servers add their own addresses there, or glue of a referral.
 */
function answeredAddresses(message: Message, host: string, port: number): DnsAddress[] {
  return unique([...toAddresses(message.answers, port), ...addressesIn(message, host, port)])
}

function toAddresses(records: readonly ResourceRecord[], port: number): DnsAddress[] {
  return unique(
    records.flatMap((record) =>
      record.type === 'A' || record.type === 'AAAA' ? [{ address: record.address, port }] : [],
    ),
  )
}

export function unique(addresses: readonly DnsAddress[]): DnsAddress[] {
  return [...new Map(addresses.map((server) => [`${server.address} ${server.port}`, server])).values()]
}
