import { createSocket, type Socket as UdpSocket } from 'node:dgram'
import { Resolver } from 'node:dns/promises'
import { once } from 'node:events'
import { createServer, type Server, type Socket } from 'node:net'
import {
  AUTHORITATIVE_ANSWER,
  decode,
  encode,
  type OptAnswer,
  type Packet,
  RECURSION_AVAILABLE,
  RECURSION_DESIRED,
  TRUNCATED_RESPONSE,
} from 'dns-packet'
import { answerQuestion, type ZoneStore } from './zones.ts'

export const LOOPBACK = '127.0.0.1'
/** Maximum bytes of a UDP response to a query without EDNS (RFC 1035, section 4.2.1). */
const PLAIN_UDP_SIZE = 512
/** UDP payload size that the server advertises with EDNS: the recommendation of DNS flag day 2020. */
const OWN_UDP_SIZE = 1232
const PORT_ATTEMPTS = 20

/**
 * Starts the sandbox's DNS server on one loopback port, over UDP and TCP. It answers queries with RD set as a recursive resolver,
 * other queries as the name server of each zone, from the root down.
 * @param wantedPort 0 for any free port
 */
export async function startDnsServer(zones: ZoneStore, wantedPort: number) {
  const { udp, tcp, port } = await bind(wantedPort)
  const connections = new Set<Socket>()
  udp.on('message', (query, from) => {
    const answer = createResponse(zones, query, PLAIN_UDP_SIZE)
    if (answer !== undefined) udp.send(answer, from.port, from.address, () => {})
  })
  // Ignore errors, such as Windows' ECONNRESET after a response to a client that has closed its socket: an error event without a
  // listener would end the process.
  udp.on('error', () => {})
  tcp.on('connection', (socket) => {
    connections.add(socket)
    socket.on('close', () => connections.delete(socket))
    socket.on('error', () => socket.destroy())
    serveTcp(socket, (query) => createResponse(zones, query, undefined))
  })
  return {
    port,
    async close(): Promise<void> {
      for (const socket of connections) socket.destroy()
      await Promise.all([udp, tcp].map((server) => new Promise<void>((done) => server.close(() => done()))))
    },
  }
}

/** Binds UDP and TCP to the same loopback port; retries with other ports if `wanted` is 0. @throws the system's error */
async function bind(wanted: number): Promise<{ udp: UdpSocket; tcp: Server; port: number }> {
  for (let attempt = 1; ; attempt += 1) {
    const udp = createSocket('udp4')
    const tcp = createServer()
    try {
      await once(udp.bind(wanted, LOOPBACK), 'listening')
      const { port } = udp.address()
      await once(tcp.listen(port, LOOPBACK), 'listening')
      return { udp, tcp, port }
    } catch (error) {
      udp.close()
      tcp.close()
      if (wanted !== 0 || attempt >= PORT_ATTEMPTS) throw error
    }
  }
}

/** Answers the queries of a TCP connection, where two bytes of length precede each message (RFC 1035, section 4.2.2). */
function serveTcp(socket: Socket, answerTo: (query: Buffer) => Buffer | undefined): void {
  let received: Buffer = Buffer.alloc(0)
  socket.on('data', (piece: Buffer) => {
    received = Buffer.concat([received, piece])
    while (received.length >= 2 && received.length >= 2 + received.readUInt16BE(0)) {
      const end = 2 + received.readUInt16BE(0)
      const answer = answerTo(received.subarray(2, end))
      received = received.subarray(end)
      if (answer === undefined) continue
      const length = Buffer.alloc(2)
      length.writeUInt16BE(answer.length)
      socket.write(Buffer.concat([length, answer]))
    }
  })
}

/**
 * Returns the encoded response to a query; undefined to send none.
 * @param udpLimit maximum bytes of a UDP response to a query without EDNS; undefined over TCP, where responses aren't truncated
 */
function createResponse(zones: ZoneStore, query: Buffer, udpLimit: number | undefined): Buffer | undefined {
  // Ignore messages shorter than a header, responses (QR bit set), and opcodes other than QUERY (RFC 1035, section 4.1.1).
  if (query.length < 12 || (query.readUInt8(2) & 0xf8) !== 0) return undefined
  let packet: Packet
  try {
    packet = decode(query)
  } catch {
    return undefined
  }
  const [question] = packet.questions ?? []
  if (question === undefined) return undefined
  const queryFlags = packet.flags ?? 0
  const name = question.name === '.' ? '' : question.name
  const answer = answerQuestion(zones, name, question.type, (queryFlags & RECURSION_DESIRED) !== 0)
  if (answer === 'silence') return undefined

  const opt = packet.additionals?.find((record): record is OptAnswer => record.type === 'OPT')
  const edns: Packet['additionals'] =
    opt === undefined ? [] : [{ ...opt, udpPayloadSize: OWN_UDP_SIZE, options: [] }]
  const message: Packet = {
    ...packet,
    type: 'response',
    flags:
      answer.rcode |
      (answer.authoritative === true ? AUTHORITATIVE_ANSWER : 0) |
      (queryFlags & RECURSION_DESIRED ? RECURSION_DESIRED | RECURSION_AVAILABLE : 0),
    answers: [...(answer.answers ?? [])],
    authorities: [...(answer.authorities ?? [])],
    additionals: [...(answer.additionals ?? []), ...edns],
  }
  const whole = encode(message)
  const limit = Math.min(Math.max(opt?.udpPayloadSize ?? 0, udpLimit ?? 0), 4096)
  if (udpLimit === undefined || whole.length <= limit) return whole
  const flags = (message.flags ?? 0) | TRUNCATED_RESPONSE
  return encode({ ...message, flags, answers: [], authorities: [], additionals: edns })
}

/** Queries the sandbox's own DNS for the TXT values of a name, to verify claims; empty if there are none or the query fails. */
export async function queryTxtValues(port: number, name: string): Promise<string[]> {
  const resolver = new Resolver({ timeout: 1000, tries: 2 })
  resolver.setServers([`${LOOPBACK}:${port}`])
  try {
    return (await resolver.resolveTxt(name)).map((strings) => strings.join(''))
  } catch {
    return []
  }
}
