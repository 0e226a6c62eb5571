import { type DnsExchange, type DnsNetwork, DnsTransportError } from '../../context.ts'

/** Whether nothing could leave this machine, which says nothing about the server. */
export function isUnsent(kind: DnsTransportError['kind']): kind is 'no-route' | 'blocked' {
  return kind === 'no-route' || kind === 'blocked'
}

/**
 * A network that sends at most this many queries, retries and TCP included. A zone may name any servers and aliases:
 * without a limit, a hostile zone could make one check query thousands of strangers.
 */
export function limitQueries(dns: DnsNetwork, max: number): DnsNetwork {
  let left = max
  const limited = (transport: 'udp' | 'tcp') => async (exchange: DnsExchange) => {
    if (left <= 0) throw new DnsTransportError('over-limit', `the limit of ${max} queries is reached`)
    left -= 1
    try {
      return await dns[transport](exchange)
    } catch (error) {
      // Nothing has left this machine.
      if (error instanceof DnsTransportError && isUnsent(error.kind)) left += 1
      throw error
    }
  }
  return { udp: limited('udp'), tcp: limited('tcp'), systemResolvers: () => dns.systemResolvers() }
}
