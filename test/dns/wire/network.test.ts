import { createSocket, Socket } from 'node:dgram'
import { once } from 'node:events'
import { createServer } from 'node:net'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { afterEach, expect, test, vi } from 'vitest'
import { createDnsNetwork, parseResolversWithScopes } from '../../../src/dns/wire/network.ts'

const closing: (() => void)[] = []
afterEach(() => {
  vi.restoreAllMocks()
  for (const close of closing.splice(0)) close()
})

/** Starts a TCP server that sends these messages to each client: once, over and over, or once before it closes. */
async function serve(messages: readonly string[], endless: boolean | 'close'): Promise<number> {
  const frame = (text: string) => Buffer.concat([Buffer.from([0, text.length]), Buffer.from(text)])
  const bytes = Buffer.concat(messages.map(frame))
  const server = createServer((socket) => {
    socket.on('error', () => undefined)
    const send = () => {
      socket.write(bytes)
      if (endless === 'close') socket.end()
      else if (endless && !socket.destroyed) setImmediate(send)
    }
    send()
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  closing.push(() => server.close())
  return (server.address() as { port: number }).port
}

const ask = async (port: number, transport: 'udp' | 'tcp' = 'tcp') => {
  const accepted = await createDnsNetwork()[transport]({
    server: { address: '127.0.0.1', port },
    message: Buffer.from('query'),
    timeoutMs: 5000,
    accept: (wire) => Buffer.from(wire).toString() === 'right',
  })
  return Buffer.from(accepted).toString()
}

test('over TCP, a DNS server counts as unreachable unless its first message is the response', async () => {
  expect(await ask(await serve(['right'], false))).toBe('right')
  const start = performance.now()
  await expect(ask(await serve(['other', 'right'], true))).rejects.toMatchObject({ kind: 'unreachable' })
  expect(performance.now() - start).toBeLessThan(2000)
})

test('over UDP, empty and forged datagrams that arrive before the response are ignored', async () => {
  const server = createSocket('udp4').bind(0, '127.0.0.1')
  closing.push(() => server.close())
  await once(server, 'listening')
  server.on('message', (_query, from) => {
    for (const text of ['forged', '', 'right']) server.send(text, from.port, from.address)
  })
  expect(await ask(server.address().port, 'udp')).toBe('right')
})

test('a DNS server that closes the TCP connection without the response counts as unreachable', async () => {
  await expect(ask(await serve([], 'close'))).rejects.toMatchObject({ kind: 'unreachable' })
})

test.each(['EPERM', 'ENETUNREACH', 'EMFILE'])(
  'a DNS query that the system refuses to send with the error %s fails as `not_checked`',
  async (code) => {
    vi.spyOn(Socket.prototype, 'send').mockImplementation((...args: unknown[]) => {
      const done = args.at(-1) as (error: Error) => void
      done(Object.assign(new Error(code), { code }))
    })
    const exchange = createDnsNetwork().udp({
      server: { address: '127.0.0.1', port: 53 },
      message: Buffer.from('query'),
      timeoutMs: 5000,
      accept: () => true,
    })
    await expect(exchange).rejects.toMatchObject({ kind: 'not_checked' })
  },
)

test.each(['udp', 'tcp'] as const)(
  'a DNS query over %s without a response fails at its timeout, even after garbage collection, and when its signal aborts',
  async (transport) => {
    setFlagsFromString('--expose-gc')
    const collect = runInNewContext('gc') as () => void
    const silent = createSocket('udp4').bind(0, '127.0.0.1')
    closing.push(() => silent.close())
    await once(silent, 'listening')
    const port = transport === 'udp' ? silent.address().port : await serve([], false)
    const collecting = setInterval(collect, 20)
    closing.push(() => clearInterval(collecting))
    const controller = new AbortController()
    const exchange = (timeoutMs: number) =>
      createDnsNetwork()[transport]({
        server: { address: '127.0.0.1', port },
        message: Buffer.from('query'),
        timeoutMs,
        signal: controller.signal,
        accept: () => true,
      })
    await expect(exchange(300)).rejects.toMatchObject({ kind: 'timeout' })
    const canceled = exchange(60_000)
    controller.abort()
    await expect(canceled).rejects.toMatchObject({ kind: 'timeout' })
  },
  5000,
)

test('the link-local address of a system resolver gets its scope (`%eth0`) from resolv.conf, and an invalid address is left out', () => {
  const config = '# nameserver fe80::9%wlan0\nnameserver fe80::1%eth0\nnameserver 192.0.2.53\n'
  expect(parseResolversWithScopes(['fe80::1', '192.0.2.53', 'fe80::2', 'nonsense'], config)).toEqual([
    { address: 'fe80::1%eth0', port: 53 },
    { address: '192.0.2.53', port: 53 },
    { address: 'fe80::2', port: 53 },
  ])
})
