import { type ChildProcess, spawn } from 'node:child_process'
import { createSocket } from 'node:dgram'
import { createServer } from 'node:net'
import { trySendQuery } from '../../../src/dns/wire/ask.ts'
import { createDeadline } from '../../../src/timeout.ts'
import { realEffects } from '../real-effects.ts'

/** A running server; its output is kept for error messages. */
export interface ServerProcess {
  readonly output: () => string
  stop(): Promise<void>
}

/** Environment whose PATH has the directories of servers, which Debian leaves out of a user's PATH. */
export const SYSTEM_ENVIRONMENT = {
  ...process.env,
  PATH: `${process.env['PATH'] ?? ''}:/usr/sbin:/usr/local/sbin:/sbin`,
}

export function startProcess(command: string, args: readonly string[], cwd?: string): ServerProcess {
  const child: ChildProcess = spawn(command, args, {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: SYSTEM_ENVIRONMENT,
    ...(cwd === undefined ? {} : { cwd }),
  })
  let text = ''
  for (const stream of [child.stdout, child.stderr])
    stream?.on('data', (piece: Buffer) => {
      text = (text + piece.toString()).slice(-20_000)
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
      child.kill('SIGTERM')
      const timer = setTimeout(() => child.kill('SIGKILL'), 3000)
      await ended
      clearTimeout(timer)
    },
  }
}

/** Waits until a server answers an SOA query for a name with NOERROR; after 20 seconds, throws with the server's output. */
export async function untilAnswering(
  address: string,
  port: number,
  name: string,
  server: ServerProcess,
): Promise<void> {
  const effects = realEffects()
  const end = effects.clock.monotonic() + 20_000
  while (effects.clock.monotonic() < end) {
    const reply = await trySendQuery(
      { address, port },
      { name, type: 'SOA', recursionDesired: true },
      createDeadline(500, effects.clock),
      effects,
    )
    if (reply.kind === 'answer' && reply.message.rcode === 'NOERROR') return
    await effects.clock.sleep(100)
  }
  throw new Error(`${address}:${port} does not answer for ${name}:\n${server.output()}`)
}

/** Finds a port that is free for UDP and TCP at all these addresses. */
export async function freePort(addresses: readonly string[]): Promise<number> {
  for (let attempt = 0; attempt < 50; attempt += 1) {
    const port = 20_000 + Math.floor(Math.random() * 30_000)
    const free = await Promise.all(addresses.map((address) => isFree(address, port)))
    if (free.every(Boolean)) return port
  }
  throw new Error('no free port')
}

async function isFree(address: string, port: number): Promise<boolean> {
  const udp = await new Promise<boolean>((resolve) => {
    const socket = createSocket('udp4')
    socket.once('error', () => resolve(false))
    socket.bind(port, address, () => socket.close(() => resolve(true)))
  })
  if (!udp) return false
  return await new Promise<boolean>((resolve) => {
    const server = createServer()
    server.once('error', () => resolve(false))
    server.listen(port, address, () => server.close(() => resolve(true)))
  })
}
