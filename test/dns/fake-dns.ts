import packet from 'dns-packet'
import { type Clock, type DnsRequest, DnsTransportError } from '../../src/context.ts'
import { type DnsServer, formatResolver } from '../../src/dns/wire/address.ts'
import type { DnsNetworkWithHttps } from '../../src/dns/wire/ask.ts'

/**
 * Reaction of a server to a query: a response; silence until the timeout (`silent`) or until the query is aborted (`pending`); or
 * a network failure.
 */
export type FakeReply = Partial<packet.Packet> | 'silent' | 'pending' | DnsTransportError['kind']

/** A query as the fake network receives it; `edns`: buffer size in bytes, undefined without EDNS. */
export interface Asked {
  readonly transport: 'udp' | 'tcp' | 'https'
  readonly server: string
  readonly id: number | undefined
  readonly name: string
  readonly type: string
  readonly recursionDesired: boolean
  readonly checkingDisabled: boolean
  readonly edns: number | undefined
  readonly dnssecOk: boolean
}

export interface FakeDns extends DnsNetworkWithHttps {
  readonly asked: Asked[]
}

/** Creates a network in memory. The reply `silent` lasts until the query's timeout on the given clock. */
export function createFakeDns(
  respond: (asked: Asked) => FakeReply,
  clock: Clock,
  resolvers: readonly { address: string; port: number }[] = [],
): FakeDns {
  const asked: Asked[] = []
  const exchange =
    (transport: Asked['transport']) =>
    async ({ server, message, accept, timeoutMs, signal }: DnsRequest<DnsServer>): Promise<Uint8Array> => {
      const query = packet.decode(Buffer.from(message))
      const [question] = query.questions ?? []
      const opt = query.additionals?.find((record): record is packet.OptAnswer => record.type === 'OPT')
      const one: Asked = {
        transport,
        server: server instanceof URL ? formatResolver(server) : server.address,
        id: query.id,
        name: question?.name ?? '',
        type: question?.type ?? '',
        recursionDesired: query.flag_rd,
        checkingDisabled: query.flag_cd,
        edns: opt?.udpPayloadSize,
        dnssecOk: opt?.flag_do ?? false,
      }
      asked.push(one)
      const reply = respond(one)
      if (reply === 'silent') {
        await clock.sleep(timeoutMs, signal)
        throw new DnsTransportError('timeout', 'silent')
      }
      if (reply === 'pending')
        return await new Promise((_, reject) => {
          signal?.addEventListener('abort', () => reject(new DnsTransportError('timeout', 'canceled')))
        })
      if (typeof reply === 'string') throw new DnsTransportError(reply, reply)
      const wire = packet.encode({
        type: 'response',
        ...(query.id === undefined ? {} : { id: query.id }),
        ...(query.questions === undefined ? {} : { questions: query.questions }),
        ...reply,
      })
      if (accept(wire)) return wire
      throw new DnsTransportError('timeout', 'no accepted answer')
    }
  const [udp, tcp, https] = [exchange('udp'), exchange('tcp'), exchange('https')]
  return { asked, udp, tcp, https, systemResolvers: async () => resolvers }
}

/** OPT record of a response with the DO bit. */
export const EDNS = {
  type: 'OPT',
  name: '.',
  udpPayloadSize: 1232,
  extendedRcode: 0,
  ednsVersion: 0,
  flags: 0,
  flag_do: true,
  options: [],
} as const satisfies packet.Answer

/** Header flags for dns-packet, combined by `|` with each other and with an `RCODE`. */
export const AA = packet.AUTHORITATIVE_ANSWER
export const TC = packet.TRUNCATED_RESPONSE
export const RA = packet.RECURSION_AVAILABLE
export const RCODE = { FORMERR: 1, SERVFAIL: 2, NXDOMAIN: 3, REFUSED: 5 } as const
