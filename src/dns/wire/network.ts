import { createSocket } from 'node:dgram'
import { getServers } from 'node:dns'
import { readFile } from 'node:fs/promises'
import { connect, isIPv6 } from 'node:net'
import { type DnsNetwork, type DnsRequest, type DnsServerAddress, DnsTransportError } from '../../context.ts'
import { createConcurrencyLimiter } from '../../limiter.ts'
import { parseIpAndPort } from '../../settings/addresses.ts'
import { canonicalizeAddress } from './address.ts'

/**
 * Maximum number of DNS sockets at once: some systems allow 256 open files, and a run over many domains needs some for files and
 * HTTP.
 */
const MAX_SOCKETS = 200

/**
 * Creates the DNS network that sends real packets. Each query has its own socket and so comes from a new port, which hampers
 * spoofing (RFC 5452).
 */
export function createDnsNetwork(): DnsNetwork {
  const limit = createConcurrencyLimiter(MAX_SOCKETS)
  return {
    udp: (exchange) => limit(() => exchangeUdp(exchange)),
    tcp: (exchange) => limit(() => exchangeTcp(exchange)),
    systemResolvers: async () =>
      parseResolversWithScopes(getServers(), await readFile('/etc/resolv.conf', 'utf8').catch(() => '')),
  }
}

/**
 * Parses the addresses of the system's resolvers, and drops unusable ones. The scope of a link-local address (`fe80::1%eth0`),
 * without which the address isn't reachable, is taken from `resolvConf`, because Node drops it.
 *
 * @param resolvConf text of `/etc/resolv.conf`; empty where it doesn't exist
 */
export function parseResolversWithScopes(servers: readonly string[], resolvConf: string): DnsServerAddress[] {
  const scoped = [...resolvConf.matchAll(/^\s*nameserver\s+((fe80:[^\s%]*)%\S+)/gim)]
  return servers.flatMap((text) => {
    try {
      const server = parseIpAndPort(text, 'system resolver')
      const address = scoped.find(([, , bare = '']) => canonicalizeAddress(bare) === server.address)?.[1]
      return [{ ...server, address: address ?? server.address }]
    } catch {
      return []
    }
  })
}

/** Codes of socket errors after which no packet has left this machine, as without a route or with a local firewall. */
const UNSENT = 'ENETUNREACH EADDRNOTAVAIL EAFNOSUPPORT ENOBUFS ENOMEM EMFILE ENFILE EPERM EACCES'.split(' ')

/** Converts a socket error to a `DnsTransportError`, of the kind `not_checked` if no packet has left this machine. */
function toDnsTransportError(error: NodeJS.ErrnoException, { address }: DnsServerAddress): DnsTransportError {
  const { code = '', message } = error
  // Some systems without an IPv6 gateway report EHOSTUNREACH instead of ENETUNREACH, so with IPv6 treat both as unsent.
  const isUnsent = UNSENT.includes(code) || (code === 'EHOSTUNREACH' && isIPv6(address))
  const kind = isUnsent ? 'not_checked' : code === 'ETIMEDOUT' ? 'timeout' : 'unreachable'
  return new DnsTransportError(kind, `${address}: ${message}`, error)
}

/**
 * Runs a DNS exchange (a query and its response) until it is settled or timed out, then closes it; an abort counts as a timeout.
 * Uses its own timer: Node 20 loses an `AbortSignal.timeout` at garbage collection if only `AbortSignal.any` references it, so the
 * exchange would never end.
 *
 * @param start starts the exchange, and returns the function that closes it
 */
export async function runDnsExchangeWithTimeout(
  { timeoutMs, signal }: Pick<DnsRequest, 'timeoutMs' | 'signal'>,
  start: (resolve: (answer: Uint8Array) => void, reject: (error: Error) => void) => () => void,
): Promise<Uint8Array> {
  let end = () => {}
  try {
    return await new Promise((resolve, reject) => {
      const late = () => reject(new DnsTransportError('timeout', 'no answer in time'))
      const timer = setTimeout(late, Math.ceil(Math.max(1, timeoutMs)))
      signal?.addEventListener('abort', late, { once: true })
      const close = start(resolve, reject)
      end = () => {
        clearTimeout(timer)
        signal?.removeEventListener('abort', late)
        close()
      }
      if (signal?.aborted) late()
    })
  } finally {
    end()
  }
}

/** Sends a query over UDP, and waits for a datagram that `accept` takes; others are ignored. */
const exchangeUdp = (exchange: DnsRequest): Promise<Uint8Array> =>
  runDnsExchangeWithTimeout(exchange, (resolve, reject) => {
    const { server, message, accept } = exchange
    const socket = createSocket(isIPv6(server.address) ? 'udp6' : 'udp4')
    const fail = (error: Error) => reject(toDnsTransportError(error, server))
    socket.on('error', fail)
    socket.on('message', (datagram) => {
      if (accept(datagram)) resolve(datagram)
    })
    socket.on('connect', () => socket.send(message, (error) => error && fail(error)))
    // Connect before sending: then the kernel drops datagrams from other sources, and reports a closed port as an error.
    socket.connect(server.port, server.address)
    return () => socket.close()
  })

/**
 * Sends a query over TCP, with the two-byte length prefix (RFC 1035 section 4.2.2). Rejects unless `accept` takes the first message
 * of the server, so that a hostile server can't keep the exchange busy.
 */
const exchangeTcp = (exchange: DnsRequest): Promise<Uint8Array> =>
  runDnsExchangeWithTimeout(exchange, (resolve, reject) => {
    const { server, message, accept } = exchange
    const socket = connect({ host: server.address, port: server.port, noDelay: true })
    const noAnswer = () => reject(new DnsTransportError('unreachable', 'no answer to this query'))
    let received: Buffer = Buffer.alloc(0)
    socket.on('connect', () => {
      const length = Buffer.alloc(2)
      length.writeUInt16BE(message.length)
      socket.write(Buffer.concat([length, message]))
    })
    socket.on('data', (piece) => {
      received = Buffer.concat([received, piece])
      const end = 2 + (received.length < 2 ? 0 : received.readUInt16BE(0))
      if (received.length < Math.max(3, end)) return
      const answer = received.subarray(2, end)
      if (accept(answer)) resolve(answer)
      else noAnswer()
    })
    socket.on('error', (error) => reject(toDnsTransportError(error, server)))
    socket.on('close', noAnswer)
    return () => socket.destroy()
  })
