import type { DnsAddress } from '../../context.ts'
import { type AskOptions, ask } from '../wire/exchange.ts'
import type { Message, ResourceRecord } from '../wire/message.ts'
import { isAskable } from '../wire/name.ts'
import { bestOf } from './race.ts'
import type { ResolutionContext } from './resolution-context.ts'

/** How long the servers of one zone may take before the walk goes on without them. */
export const LEVEL_MS = 1500

export interface HostAddresses {
  readonly addresses: readonly DnsAddress[]
  /** Whether somebody said so: no address is then a fact and no time-out. */
  readonly certain: boolean
}

/** Addresses of a name server host, v4 and v6, through the resolvers. */
export async function queryHostAddresses(
  host: string,
  context: Omit<ResolutionContext, 'resolveHost'>,
): Promise<HostAddresses> {
  if (!isAskable(host)) return { addresses: [], certain: true }
  const deadline = Math.min(context.deadline, context.effects.clock.monotonic() + 2500)
  const options: AskOptions = { recursionDesired: true, checkingDisabled: true, deadline }
  const families = await Promise.all(
    (['A', 'AAAA'] as const).map((type) =>
      bestOf(
        context.resolvers.map((resolver) => async () => {
          const reply = await ask(resolver, { name: host, type }, options, context.effects)
          if (reply.kind !== 'answer') return undefined
          const { rcode, ra } = reply.message
          const addresses =
            rcode === 'NOERROR' ? answeredAddresses(reply.message, host, context.authoritativePort) : []
          const certain = ra && (rcode === 'NOERROR' || rcode === 'NXDOMAIN')
          return addresses.length > 0 || certain ? addresses : undefined
        }),
        (addresses) => (addresses.length > 0 ? 0 : 1),
        context.effects,
      ),
    ),
  )
  return {
    addresses: unique(families.flatMap((addresses) => addresses ?? [])),
    certain: families.every((addresses) => addresses !== undefined),
  }
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
