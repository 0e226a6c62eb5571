import { createSocket, type Socket } from 'node:dgram'
import { createServer, type Server } from 'node:net'
import packet from 'dns-packet'
import { EDNS } from '../fake-dns.ts'

/** A relay between the check and a real server that closes TCP, delays, rejects EDNS, sends junk, or stays silent. */
export interface RelayOptions {
  readonly address: string
  readonly port: number
  /** The real server behind it, at the same port; without one the relay is silent. */
  readonly upstream?: string
  readonly delayMs?: number
  /** The relay's own answer: `drop` sends none, undefined passes the query on. */
  readonly reply?: (query: Buffer) => Buffer | 'drop' | undefined
  /** What is sent before the real answer. */
  readonly noise?: (query: Buffer, answer: Buffer) => Buffer[]
  /** Changes the query on its way. */
  readonly rewrite?: (query: Buffer) => Buffer
  /** Changes the answer on its way back. */
  readonly answer?: (answer: Buffer) => Buffer
  /** Accepts TCP but never answers. Otherwise TCP is closed. */
  readonly silentTcp?: true
}

export interface Relay {
  close(): Promise<void>
}

/** Starts a UDP relay on a loopback address. */
export async function startRelay(options: RelayOptions): Promise<Relay> {
  const { address, port, upstream } = options
  const front = createSocket('udp4')
  const open = new Set<Socket>()
  const timers = new Set<NodeJS.Timeout>()
  front.on('message', (query, from) => {
    if (from.port === 0) return
    const respond = (answer: Buffer) => front.send(answer, from.port, from.address)
    const reply = options.reply?.(query)
    if (reply === 'drop') return
    if (reply !== undefined) return respond(reply)
    if (upstream === undefined) return
    const back = createSocket('udp4')
    open.add(back)
    back.on('error', () => undefined)
    back.on('message', (raw) => {
      const answer = options.answer?.(raw) ?? raw
      const timer = setTimeout(() => {
        for (const piece of options.noise?.(query, answer) ?? []) respond(piece)
        respond(answer)
      }, options.delayMs ?? 0)
      timers.add(timer)
      open.delete(back)
      back.close()
    })
    back.send(options.rewrite?.(query) ?? query, port, upstream)
  })
  await new Promise<void>((resolve, reject) => {
    front.once('error', reject)
    front.bind(port, address, resolve)
  })
  const tcp = options.silentTcp ? await silentTcp(address, port) : undefined
  return {
    close: async () => {
      for (const timer of timers) clearTimeout(timer)
      for (const socket of open) socket.close()
      front.close()
      tcp?.close()
    },
  }
}

function silentTcp(address: string, port: number): Promise<Server> {
  return new Promise((resolve, reject) => {
    const server = createServer((socket) => {
      socket.on('error', () => undefined)
      socket.unref()
    })
    server.once('error', reject)
    server.listen(port, address, () => resolve(server.unref()))
  })
}

/** FORMERR to every query with EDNS, as from servers older than RFC 2671. */
export function refuseEdns(query: Buffer): Buffer | undefined {
  if (query.readUInt16BE(10) === 0) return undefined
  const reply = Buffer.from(query.subarray(0, 12))
  reply.writeUInt16BE(0x8001, 2)
  reply.fill(0, 4)
  return reply
}

/** An error to every query with EDNS, as from some load balancers. */
export function failEdns(rcode: 'SERVFAIL' | 'BADVERS'): (query: Buffer) => Buffer | undefined {
  return (query) => {
    if (query.readUInt16BE(10) === 0) return undefined
    const { id = 0, questions = [] } = packet.decode(query)
    if (rcode === 'SERVFAIL') return packet.encode({ type: 'response', id, flags: 2, questions })
    // RFC 6891 section 6.1.3: the upper bits of the rcode are in the OPT record.
    return packet.encode({ type: 'response', id, questions, additionals: [{ ...EDNS, extendedRcode: 1 }] })
  }
}

/** Clears the AA bit, as caches and some proxies do. */
export function clearAuthority(answer: Buffer): Buffer {
  const copy = Buffer.from(answer)
  copy.writeUInt16BE(copy.readUInt16BE(2) & ~0x0400, 2)
  return copy
}

/** No answer to queries with EDNS, as with some firewalls. */
export function dropEdns(query: Buffer): 'drop' | undefined {
  return query.readUInt16BE(10) === 0 ? undefined : 'drop'
}

/** No answer to queries for signatures (the DO bit). */
export function dropDo(query: Buffer): 'drop' | undefined {
  const opt = packet.decode(query).additionals?.find((record) => record.type === 'OPT')
  return opt?.type === 'OPT' && opt.flag_do ? 'drop' : undefined
}

/** Puts a CNAME to `web` of the zone in front of answers to queries of these types about `app`. */
export function addCname(types: readonly string[]): (answer: Buffer) => Buffer {
  return (answer) => {
    const { id = 0, questions = [], answers = [], authorities = [] } = packet.decode(answer)
    const [question] = questions
    const [label, ...zone] = (question?.name ?? '').split('.')
    if (question === undefined || label !== 'app' || !types.includes(question.type)) return answer
    const data = ['web', ...zone].join('.')
    return packet.encode({
      type: 'response',
      id,
      flags: answer.readUInt16BE(2) & 0x7fff,
      questions,
      answers: [{ type: 'CNAME', name: question.name, ttl: 300, data }, ...answers],
      authorities,
    })
  }
}

/** REFUSED to TXT queries. */
export function refuseTxt(query: Buffer): Buffer | undefined {
  const { id = 0, questions = [] } = packet.decode(query)
  if (questions[0]?.type !== 'TXT') return undefined
  return packet.encode({ type: 'response', id, flags: 5, questions })
}

/** Removes TXT and SOA records from an answer. */
export function stripTxt(answer: Buffer): Buffer {
  const { id = 0, questions = [], answers = [], authorities = [] } = packet.decode(answer)
  const kept = (records: packet.Answer[]) => records.filter(({ type }) => type !== 'TXT' && type !== 'SOA')
  const flags = answer.readUInt16BE(2) & 0x7fff
  return packet.encode({
    type: 'response',
    id,
    flags,
    questions,
    answers: kept(answers),
    authorities: kept(authorities),
  })
}

/** Invalid answers: another id, another question, a query, a compression loop, an empty message, random bytes. */
export function noiseOf(_query: Buffer, answer: Buffer): Buffer[] {
  const otherId = Buffer.from(answer)
  otherId.writeUInt16BE(answer.readUInt16BE(0) ^ 0x5555, 0)
  const isQuery = Buffer.from(answer)
  isQuery.writeUInt16BE(isQuery.readUInt16BE(2) & 0x7fff, 2)
  const loop = Buffer.concat([answer.subarray(0, 12), Buffer.from([0xc0, 0x0c, 0, 16, 0, 1])])
  const otherQuestion = packet.encode({
    type: 'response',
    id: answer.readUInt16BE(0),
    flags: packet.AUTHORITATIVE_ANSWER,
    questions: [{ type: 'TXT', name: 'another.test' }],
    answers: [{ type: 'TXT', name: 'another.test', data: 'forged' }],
  })
  return [
    otherId,
    isQuery,
    loop,
    otherQuestion,
    Buffer.alloc(0),
    Buffer.from('not dns at all'),
    answer.subarray(0, 20),
  ]
}
