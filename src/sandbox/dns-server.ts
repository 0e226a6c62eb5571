import { createSocket, type Socket as UdpSocket } from 'node:dgram'
import { createServer, type Server, type Socket } from 'node:net'
import { decode, encode, type OptAnswer, type Packet } from 'dns-packet'
import { answerQuestion, type DnsAnswer, Rcode, type ServerRole } from './dns-answers.ts'
import { NS_TTL, normalName, OTHER_SERVER, REGISTRY_SERVER, type Zones } from './zones.ts'

const LOOPBACK = '127.0.0.1'
const FLAG = {
  authoritative: 1 << 10,
  truncated: 1 << 9,
  recursionDesired: 1 << 8,
  recursionAvailable: 1 << 7,
}
const CHECKING_DISABLED = 1 << 4
/** What this server says it can take by UDP (RFC 6891, section 6.2.5; the size is that of the 2020 DNS flag day). */
const OWN_UDP_SIZE = 1232
const LARGEST_UDP_ANSWER = 4096
const TCP_IDLE_MS = 10_000

export interface DnsServer {
  readonly port: number
  /** Whether it also answers at 127.0.0.2, which not every system has. */
  readonly hasOther: boolean
  readonly counts: { udp: number; tcp: number; truncated: number; byRcode: Record<string, number> }
  close(): Promise<void>
}

/**
 * The sandbox's name servers and resolver on UDP and TCP, all on the same loopback port; 0 takes a free one. Each role has an
 * address of its own where the system has it.
 */
export async function startDnsServer(zones: Zones, wantedPort: number): Promise<DnsServer> {
  const counts: DnsServer['counts'] = { udp: 0, tcp: 0, truncated: 0, byRcode: {} }
  const respond = (query: Buffer, room: number | undefined, server: ServerRole): Buffer | undefined => {
    const answer = respondTo(zones, query, room, server)
    if (answer === undefined) return undefined
    counts[room === undefined ? 'tcp' : 'udp'] += 1
    if (answer.readUInt16BE(2) & FLAG.truncated) counts.truncated += 1
    const rcode = String(answer.readUInt16BE(2) & 0xf)
    counts.byRcode[rcode] = (counts.byRcode[rcode] ?? 0) + 1
    return answer
  }
  const connections = new Set<Socket>()
  const first = await bindBoth(LOOPBACK, wantedPort)
  const { port } = first
  const bindOptional = async (server: ServerRole, address: string) => {
    const sockets = await bindBoth(address, port).catch(() => undefined)
    return sockets === undefined ? [] : [{ server, ...sockets }]
  }
  const other = await bindOptional('second', OTHER_SERVER.address)
  const registry = await bindOptional('registry', REGISTRY_SERVER.address)
  if (registry.length > 0) {
    const data = [{ type: 'A', value: REGISTRY_SERVER.address }] as const
    zones.set(REGISTRY_SERVER.host, 'A', { ttl: NS_TTL, data })
  }
  const bound = [{ server: 'first' as const, ...first }, ...other, ...registry]

  for (const { server, udp, tcp } of bound) {
    udp.on('message', (query, from) => {
      const answer = respond(query, 512, server)
      if (answer !== undefined) udp.send(answer, from.port, from.address, () => {})
    })
    // An ICMP "port unreachable" from a client that is gone is not an error here.
    udp.on('error', () => {})
    tcp.on('connection', (socket) => {
      connections.add(socket)
      socket.on('close', () => connections.delete(socket))
      socket.on('error', () => socket.destroy())
      socket.setTimeout(TCP_IDLE_MS, () => socket.destroy())
      serveTcp(socket, (query) => respond(query, undefined, server))
    })
  }

  return {
    port,
    hasOther: other.length > 0,
    counts,
    async close() {
      for (const socket of connections) socket.destroy()
      await Promise.all(
        bound.flatMap(({ udp, tcp }) => [
          new Promise<void>((done) => tcp.close(() => done())),
          new Promise<void>((done) => udp.close(() => done())),
        ]),
      )
    },
  }
}

/** Messages on TCP have their length before them and may come in any pieces (RFC 1035, section 4.2.2). */
function serveTcp(socket: Socket, respond: (query: Buffer) => Buffer | undefined): void {
  let received: Buffer = Buffer.alloc(0)
  socket.on('data', (piece: Buffer) => {
    received = Buffer.concat([received, piece])
    while (received.length >= 2 && received.length >= 2 + received.readUInt16BE(0)) {
      const end = 2 + received.readUInt16BE(0)
      const answer = respond(received.subarray(2, end))
      received = received.subarray(end)
      if (answer === undefined) continue
      const length = Buffer.alloc(2)
      length.writeUInt16BE(answer.length)
      socket.write(Buffer.concat([length, answer]))
    }
  })
}

async function bindBoth(
  address: string,
  wanted: number,
): Promise<{ udp: UdpSocket; tcp: Server; port: number }> {
  for (let attempt = 1; ; attempt += 1) {
    const udp = createSocket('udp4')
    const tcp = createServer()
    try {
      await new Promise<void>((done, fail) => {
        udp.once('error', fail)
        udp.bind(wanted, address, () => done())
      })
      const { port } = udp.address()
      await new Promise<void>((done, fail) => {
        tcp.once('error', fail)
        tcp.listen(port, address, () => done())
      })
      udp.removeAllListeners('error')
      tcp.removeAllListeners('error')
      return { udp, tcp, port }
    } catch (error) {
      udp.close()
      tcp.close()
      // A port that is free on UDP can be taken on TCP: with port 0 there are others.
      if (wanted !== 0 || attempt >= 20) throw error
    }
  }
}

/** `room` is the size that UDP allows without EDNS; undefined on TCP, where everything fits. */
function respondTo(
  zones: Zones,
  query: Buffer,
  room: number | undefined,
  server: ServerRole,
): Buffer | undefined {
  if (query.length < 12 || query.readUInt8(2) & 0x80) return undefined
  let packet: ReturnType<typeof decode>
  try {
    packet = decode(query)
  } catch {
    const header = Buffer.alloc(12)
    query.copy(header, 0, 0, 2)
    header.writeUInt16BE(0x8000 | (query.readUInt16BE(2) & 0x7900) | Rcode.formErr, 2)
    return header
  }
  const opcode = (query.readUInt8(2) >> 3) & 0xf
  const opt = packet.additionals?.find((record): record is OptAnswer => record.type === 'OPT')
  const [question, ...more] = packet.questions ?? []
  let answer: DnsAnswer | undefined
  if (opcode !== 0) answer = bare(Rcode.notImp)
  else if (opt !== undefined && opt.ednsVersion > 0) answer = bare(Rcode.badVers)
  else if (question === undefined || more.length > 0) answer = bare(Rcode.formErr)
  else if (question.class !== undefined && question.class !== 'IN') answer = bare(Rcode.refused)
  else {
    const asked = question.name === '.' ? '' : question.name
    answer = answerQuestion(zones, normalName(asked), asked, question.type, {
      recursion: packet.flag_rd,
      server,
    })
  }
  if (answer === undefined) return undefined

  const asked = packet.flags ?? 0
  const recursion = asked & FLAG.recursionDesired ? FLAG.recursionDesired | FLAG.recursionAvailable : 0
  const flags =
    (answer.rcode & 0xf) |
    (answer.authoritative ? FLAG.authoritative : 0) |
    recursion |
    (asked & CHECKING_DISABLED) |
    (opcode << 11)
  const edns: OptAnswer[] =
    opt === undefined
      ? []
      : [
          {
            type: 'OPT',
            name: '.',
            udpPayloadSize: OWN_UDP_SIZE,
            extendedRcode: answer.rcode >> 4,
            ednsVersion: 0,
            flags: opt.flags & 0x8000,
            flag_do: opt.flag_do,
            options: [],
          },
        ]
  const message: Packet = {
    type: 'response',
    id: packet.id,
    flags,
    questions: packet.questions,
    answers: [...answer.answers],
    authorities: [...answer.authorities],
    additionals: [...answer.additionals, ...edns],
  }
  const whole = encode(message)
  if (room === undefined) return whole
  const limit = opt === undefined ? room : Math.min(Math.max(opt.udpPayloadSize, room), LARGEST_UDP_ANSWER)
  if (whole.length <= limit) return whole
  const lean = encode({ ...message, additionals: edns })
  if (lean.length <= limit) return lean
  return encode({
    ...message,
    flags: flags | FLAG.truncated,
    answers: [],
    authorities: [],
    additionals: edns,
  })
}

function bare(rcode: number): DnsAnswer {
  return { rcode, authoritative: false, answers: [], authorities: [], additionals: [] }
}
