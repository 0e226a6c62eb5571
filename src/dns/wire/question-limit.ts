import { type DnsExchange, type DnsNetwork, DnsTransportError } from '../../context.ts'

/**
 * A network that sends only so many questions, retries and TCP included. A zone names servers and aliases as it likes, of
 * anybody: without a bound, one check could be made to ask thousands of strangers.
 */
export function limitQuestions(dns: DnsNetwork, most: number): DnsNetwork {
  let left = most
  const limited = (transport: 'udp' | 'tcp') => async (exchange: DnsExchange) => {
    if (left <= 0) throw new DnsTransportError('over-limit', `${most} questions have been asked`)
    left -= 1
    try {
      return await dns[transport](exchange)
    } catch (error) {
      // Nothing has left this machine: an address without a route costs nobody anything.
      if (error instanceof DnsTransportError && error.kind === 'no-route') left += 1
      throw error
    }
  }
  return { udp: limited('udp'), tcp: limited('tcp'), systemResolvers: () => dns.systemResolvers() }
}
