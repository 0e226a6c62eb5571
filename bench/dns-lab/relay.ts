import { createSocket } from 'node:dgram'
import { connect, createServer, type Socket } from 'node:net'
import packet from 'dns-packet'
import type { Reply } from './hostile-zone.ts'
import { sleep } from './processes.ts'

export interface Query {
  readonly raw: Buffer
  readonly packet: packet.DecodedPacket
  readonly name: string
  readonly type: string
  readonly edns: boolean
  readonly transport: 'udp' | 'tcp'
  /** How many queries this relay had before. */
  readonly count: number
}

/** How a relay in front of a real server misbehaves. */
export interface Behavior {
  /** The real server behind it; without one it doesn't answer. */
  readonly upstream?: string
  readonly delayMs?: number | ((query: Query) => number)
  /** The relay's own answer; `drop` sends none, undefined asks upstream. */
  readonly own?: (query: Query) => Buffer | 'drop' | undefined
  /** The relay's own answer, after a delay, and perhaps in small pieces; undefined as for `own`. */
  readonly reply?: (query: Query) => Reply | undefined
  /** Changes the query on its way. */
  readonly rewrite?: (query: Query) => Buffer
  /** Changes the answer on its way back. */
  readonly change?: (answer: Buffer, query: Query) => Buffer
  /** TCP: closed, or open without an answer. */
  readonly tcp?: 'closed' | 'hangs'
}

export interface Relay {
  readonly address: string
  behavior: Behavior
  count: number
}

const relays: Relay[] = []

/** A relay at its own address; it starts with the laboratory. */
export function relay(behavior: Behavior): Relay {
  const index = relays.length
  const made = { address: `198.18.${16 + Math.floor(index / 200)}.${1 + (index % 200)}`, behavior, count: 0 }
  relays.push(made)
  return made
}

export async function startRelays(): Promise<void> {
  await Promise.all(relays.map(startRelay))
}

async function startRelay(relay: Relay): Promise<void> {
  const front = createSocket('udp4')
  front.on('message', async (raw, from) => {
    const answer = await respond(relay, raw, 'udp')
    if (answer !== undefined) front.send(answer.message, from.port, from.address)
  })
  await new Promise<void>((resolve, reject) => {
    front.once('error', reject)
    front.bind(53, relay.address, resolve)
  })
  if (relay.behavior.tcp === 'closed') return
  const server = createServer((socket) => {
    socket.on('error', () => undefined)
    if (relay.behavior.tcp === 'hangs') return
    onFrames(socket, async (raw) => {
      const answer = await respond(relay, raw, 'tcp')
      if (answer === undefined) socket.destroy()
      else if (answer.drips) drip(socket, framed(answer.message))
      else if (socket.writable) socket.write(framed(answer.message))
    })
  })
  await new Promise<void>((resolve) => {
    server.listen(53, relay.address, resolve)
  })
}

/** Writes a few bytes at a time. */
function drip(socket: Socket, bytes: Buffer): void {
  socket.setNoDelay(true)
  let sent = 0
  const next = () => {
    if (!socket.writable || sent >= bytes.length) return
    socket.write(bytes.subarray(sent, sent + 7))
    sent += 7
    setImmediate(next)
  }
  next()
}

interface Answered {
  readonly message: Buffer
  readonly drips: boolean
}

async function respond(relay: Relay, raw: Buffer, transport: 'udp' | 'tcp'): Promise<Answered | undefined> {
  const query = read(raw, transport, relay.count)
  relay.count += 1
  if (query === undefined) return undefined
  const { behavior } = relay
  const reply = behavior.reply?.(query)
  if (reply !== undefined) {
    await sleep(reply.delayMs)
    return reply.message === 'drop' ? undefined : { message: reply.message, drips: reply.drips }
  }
  const whole = (message: Buffer | undefined) => message && { message, drips: false }
  const delay = typeof behavior.delayMs === 'function' ? behavior.delayMs(query) : (behavior.delayMs ?? 0)
  if (delay > 0) await sleep(delay)
  const own = behavior.own?.(query)
  if (own === 'drop') return undefined
  if (own !== undefined) return whole(own)
  if (behavior.upstream === undefined) return undefined
  const asked = behavior.rewrite?.(query) ?? raw
  const answer = await (transport === 'udp' ? askUdp : askTcp)(behavior.upstream, asked)
  return whole(answer && (behavior.change?.(answer, query) ?? answer))
}

function read(raw: Buffer, transport: 'udp' | 'tcp', count: number): Query | undefined {
  try {
    const decoded = packet.decode(raw)
    const [asked] = decoded.questions ?? []
    if (asked === undefined) return undefined
    const edns = raw.readUInt16BE(10) > 0
    return { raw, packet: decoded, name: asked.name.toLowerCase(), type: asked.type, edns, transport, count }
  } catch {
    return undefined
  }
}

function askUdp(upstream: string, raw: Buffer): Promise<Buffer | undefined> {
  return new Promise((resolve) => {
    const socket = createSocket('udp4')
    const end = (answer?: Buffer) => {
      clearTimeout(timer)
      socket.close()
      resolve(answer)
    }
    const timer = setTimeout(end, 3000)
    socket.on('error', () => end())
    socket.on('message', (answer) => end(answer))
    socket.connect(53, upstream, () => socket.send(raw))
  })
}

function askTcp(upstream: string, raw: Buffer): Promise<Buffer | undefined> {
  return new Promise((resolve) => {
    const socket = connect(53, upstream, () => socket.write(framed(raw)))
    socket.setTimeout(3000, () => socket.destroy())
    onFrames(socket, (answer) => {
      resolve(answer)
      socket.destroy()
    })
    socket.on('error', () => undefined)
    socket.on('close', () => resolve(undefined))
  })
}

export function framed(message: Buffer): Buffer {
  const length = Buffer.alloc(2)
  length.writeUInt16BE(message.length)
  return Buffer.concat([length, message])
}

/** Calls back for each DNS message of a TCP connection (RFC 1035 section 4.2.2). */
export function onFrames(socket: Socket, each: (message: Buffer) => unknown): void {
  let received = Buffer.alloc(0)
  socket.on('data', (piece) => {
    received = Buffer.concat([received, piece])
    while (received.length >= 2 && received.length >= 2 + received.readUInt16BE(0)) {
      const end = 2 + received.readUInt16BE(0)
      each(received.subarray(2, end))
      received = received.subarray(end)
    }
  })
}

export const RCODES = { NOERROR: 0, FORMERR: 1, SERVFAIL: 2, NXDOMAIN: 3, NOTIMP: 4, REFUSED: 5 }

/** An empty answer with this code, without EDNS. */
export function rcode(
  query: Query,
  code: keyof typeof RCODES,
  more: { aa?: boolean; ra?: boolean } = {},
): Buffer {
  const flags = RCODES[code] | (more.aa ? 0x0400 : 0) | (more.ra ? 0x0080 : 0)
  return packet.encode({
    type: 'response',
    id: query.packet.id ?? 0,
    flags: flags | ((query.packet.flag_rd ?? false) ? 0x0100 : 0),
    questions: query.packet.questions ?? [],
  })
}

/** The answer without the records that a filter removes. */
export function without(answer: Buffer, filter: (record: packet.Answer) => boolean): Buffer {
  const decoded = packet.decode(answer)
  return packet.encode({
    type: 'response',
    id: decoded.id ?? 0,
    flags: answer.readUInt16BE(2) & 0x7fff,
    questions: decoded.questions ?? [],
    answers: (decoded.answers ?? []).filter((record) => !filter(record)),
    authorities: (decoded.authorities ?? []).filter((record) => !filter(record)),
    additionals: (decoded.additionals ?? []).filter((record) => !filter(record)),
  })
}

/** Only the header, with TC set: "ask over TCP". */
export function cut(query: Query): Buffer {
  const answer = rcode(query, 'NOERROR', { aa: true })
  answer.writeUInt16BE(answer.readUInt16BE(2) | 0x0200, 2)
  return answer
}

/** The query without its OPT record, as a server without EDNS sees it. */
export function withoutEdns(query: Query): Buffer {
  return packet.encode({
    type: 'query',
    id: query.packet.id ?? 0,
    flags: query.raw.readUInt16BE(2),
    questions: query.packet.questions ?? [],
  })
}
