import { createSocket, type Socket } from 'node:dgram'
import { createServer } from 'node:net'

/** A relay between the check and a real server at the same port. TCP is closed, unless it is silent. */
export interface RelayOptions {
  readonly address: string
  readonly port: number
  /** The real server behind it; without one it accepts UDP and TCP but never answers. */
  readonly upstream?: string
  /** What is sent before the real answer. */
  readonly noise?: (answer: Buffer) => Buffer[]
}

export interface Relay {
  close(): Promise<void>
}

/** Starts a relay on a loopback address. */
export async function startRelay({ address, port, upstream, noise }: RelayOptions): Promise<Relay> {
  const front = createSocket('udp4')
  const open = new Set<Socket>()
  front.on('message', (query, from) => {
    if (upstream === undefined) return
    const back = createSocket('udp4')
    open.add(back)
    back.on('error', () => undefined)
    back.on('message', (answer) => {
      for (const piece of [...(noise?.(answer) ?? []), answer]) front.send(piece, from.port, from.address)
      open.delete(back)
      back.close()
    })
    back.send(query, port, upstream)
  })
  await new Promise<void>((resolve, reject) => {
    front.once('error', reject)
    front.bind(port, address, resolve)
  })
  const tcp = createServer((socket) => socket.on('error', () => undefined).unref())
  if (upstream === undefined) await new Promise<void>((resolve) => tcp.listen(port, address, resolve))
  tcp.unref()
  return {
    close: async () => {
      for (const socket of open) socket.close()
      front.close()
      tcp.close()
    },
  }
}

/** Invalid answers: with another id, a query, a compression loop, no message at all. */
export function noiseOf(answer: Buffer): Buffer[] {
  const otherId = Buffer.from(answer)
  otherId.writeUInt16BE(answer.readUInt16BE(0) ^ 0x5555, 0)
  const isQuery = Buffer.from(answer)
  isQuery.writeUInt16BE(isQuery.readUInt16BE(2) & 0x7fff, 2)
  const loop = Buffer.concat([answer.subarray(0, 12), Buffer.from([0xc0, 0x0c, 0, 16, 0, 1])])
  return [otherId, isQuery, loop, Buffer.alloc(0), Buffer.from('not dns at all')]
}
