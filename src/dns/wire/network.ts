import { createSocket } from 'node:dgram'
import { getServers } from 'node:dns'
import { readFile } from 'node:fs/promises'
import { connect, isIPv6 } from 'node:net'
import { type DnsAddress, type DnsExchange, type DnsNetwork, DnsTransportError } from '../../context.ts'
import { parseDnsAddress } from '../../settings/addresses.ts'
import { createTurns } from '../../turns.ts'
import { canonicalAddress } from './address.ts'

/** Sockets at once: systems with a low limit of open files allow 256, and a run of many has other things open as well. */
const MAX_SOCKETS = 200

/** The real network. Each exchange has its own socket, so every query comes from a different port. */
export function createDnsNetwork(): DnsNetwork {
  const inTurn = createTurns(MAX_SOCKETS)
  return {
    udp: (exchange) => inTurn(() => exchangeUdp(exchange)),
    tcp: (exchange) => inTurn(() => exchangeTcp(exchange)),
    systemResolvers: async () =>
      withScopes(getServers(), await readFile(RESOLV_CONF, 'utf8').catch(() => '')),
  }
}

const RESOLV_CONF = '/etc/resolv.conf'

/**
 * The resolvers of the system, of which those that can't be used are left out. Node drops the scope of a link-local address
 * (`fe80::1%eth0`), without which nothing can be sent to it.
 *
 * @param config the text of `resolv.conf`, where the scope is
 */
export function withScopes(servers: readonly string[], config: string): DnsAddress[] {
  const scoped = [...config.matchAll(/^\s*nameserver\s+((fe80:[^\s%]*)%\S+)/gim)]
  return servers.flatMap((text) => {
    try {
      const server = parseDnsAddress(text, 'system resolver')
      const address = scoped.find(([, , bare = '']) => canonicalAddress(bare) === server.address)?.[1]
      return [{ ...server, address: address ?? server.address }]
    } catch {
      return []
    }
  })
}

/** Node's error codes if nothing has left this machine: no route, a firewall, no buffers or files left. */
const UNSENT = 'ENETUNREACH EADDRNOTAVAIL EAFNOSUPPORT ENOBUFS ENOMEM EMFILE ENFILE EPERM EACCES'.split(' ')

function toTransportError(error: NodeJS.ErrnoException, { address }: DnsAddress): DnsTransportError {
  const { code = '', message } = error
  // Without an IPv6 gateway some systems answer this instead of "network unreachable".
  const isUnsent = UNSENT.includes(code) || (code === 'EHOSTUNREACH' && isIPv6(address))
  const kind = isUnsent ? 'not_checked' : code === 'ETIMEDOUT' ? 'timeout' : 'unreachable'
  return new DnsTransportError(kind, `${address}: ${message}`, error)
}

/**
 * Runs an exchange until it is settled, canceled, or its time is over, and then ends it. With a timer of its own: Node 20 loses
 * one of `AbortSignal.timeout` that only `AbortSignal.any` holds when it collects garbage, and the exchange would never end.
 *
 * @param start begins it, and returns what ends it
 */
export async function runExchange(
  { timeoutMs, signal }: Pick<DnsExchange, 'timeoutMs' | 'signal'>,
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

const exchangeUdp = (exchange: DnsExchange): Promise<Uint8Array> =>
  runExchange(exchange, (resolve, reject) => {
    const { server, message, accept } = exchange
    const socket = createSocket(isIPv6(server.address) ? 'udp6' : 'udp4')
    const fail = (error: Error) => reject(toTransportError(error, server))
    socket.on('error', fail)
    socket.on('message', (datagram) => {
      if (accept(datagram)) resolve(datagram)
    })
    socket.on('connect', () => socket.send(message, (error) => error && fail(error)))
    // With a connected socket, the kernel drops datagrams from any other source and reports a closed port.
    socket.connect(server.port, server.address)
    return () => socket.close()
  })

const exchangeTcp = (exchange: DnsExchange): Promise<Uint8Array> =>
  runExchange(exchange, (resolve, reject) => {
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
    socket.on('error', (error) => reject(toTransportError(error, server)))
    socket.on('close', noAnswer)
    return () => socket.destroy()
  })
