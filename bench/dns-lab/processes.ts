import { createSocket } from 'node:dgram'
import packet from 'dns-packet'
import type { ServerProcess } from '../../test/dns/servers/processes.ts'

/** Sends one query over UDP with recursion desired; undefined if no answer comes in time. */
export function question(
  address: string,
  name: string,
  type: 'SOA' | 'TXT' | 'NS' | 'A',
  timeoutMs = 400,
): Promise<packet.DecodedPacket | undefined> {
  return new Promise((resolve) => {
    const socket = createSocket('udp4')
    const end = (answer?: packet.DecodedPacket) => {
      clearTimeout(timer)
      socket.close()
      resolve(answer)
    }
    const timer = setTimeout(end, timeoutMs)
    socket.on('error', () => end())
    socket.on('message', (answer) => end(packet.decode(answer)))
    const message = packet.encode({
      type: 'query',
      id: 1 + Math.floor(Math.random() * 65_000),
      flags: packet.RECURSION_DESIRED,
      questions: [{ name, type }],
    })
    // On a connected socket, a closed port is reported at once.
    socket.connect(53, address, () => socket.send(message))
  })
}

export const sleep = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms))

/** Waits until a server gives any answer. */
export async function untilAnswering(address: string, server: ServerProcess, name = '.'): Promise<void> {
  const end = performance.now() + 20_000
  while (performance.now() < end) {
    if ((await question(address, name, 'SOA')) !== undefined) return
    await sleep(20)
  }
  throw new Error(`${address} does not answer:\n${server.output()}`)
}
