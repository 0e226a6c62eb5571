import { spawn } from 'node:child_process'
import { createSocket } from 'node:dgram'
import packet from 'dns-packet'
import { SYSTEM_ENV } from './network.ts'

export interface Running {
  readonly output: () => string
  stop(): Promise<void>
}

/** Starts a server in the foreground; what it writes is kept for error messages. */
export function start(command: string, args: readonly string[], cwd?: string): Running {
  const child = spawn(command, [...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: SYSTEM_ENV,
    ...(cwd === undefined ? {} : { cwd }),
  })
  let text = ''
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (piece: Buffer) => {
      text = (text + piece.toString()).slice(-10_000)
    })
  const ended = new Promise<void>((resolve) => {
    child.on('exit', () => resolve())
    child.on('error', (error) => {
      text += error.message
      resolve()
    })
  })
  return {
    output: () => text,
    stop: async () => {
      child.kill('SIGKILL')
      await ended
    },
  }
}

/** Asks once over UDP with recursion desired; undefined where no answer comes in time. */
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
    // Connected: a closed port is reported at once.
    socket.connect(53, address, () => socket.send(message))
  })
}

export const sleep = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms))

/** Waits until a server answers anything at all. */
export async function untilAnswering(address: string, server: Running, name = '.'): Promise<void> {
  const end = performance.now() + 20_000
  while (performance.now() < end) {
    if ((await question(address, name, 'SOA')) !== undefined) return
    await sleep(20)
  }
  throw new Error(`${address} does not answer:\n${server.output()}`)
}
