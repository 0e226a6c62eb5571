import { createServer } from 'node:net'
import { afterEach, expect, test } from 'vitest'
import { createDnsNetwork } from '../../../src/dns/wire/network.ts'

const closing: (() => void)[] = []
afterEach(() => {
  for (const close of closing.splice(0)) close()
})

/** A server on loopback that sends these messages, over and over if `endless`, to whoever connects. */
async function serve(messages: readonly string[], endless: boolean): Promise<number> {
  const frame = (text: string) => Buffer.concat([Buffer.from([0, text.length]), Buffer.from(text)])
  const bytes = Buffer.concat(messages.map(frame))
  const server = createServer((socket) => {
    socket.on('error', () => undefined)
    const send = () => {
      socket.write(bytes)
      if (endless && !socket.destroyed) setImmediate(send)
    }
    send()
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  closing.push(() => server.close())
  return (server.address() as { port: number }).port
}

const ask = async (port: number) => {
  const accepted = await createDnsNetwork().tcp({
    server: { address: '127.0.0.1', port },
    message: Buffer.from('query'),
    timeoutMs: 5000,
    accept: (wire) => Buffer.from(wire).toString() === 'right',
  })
  return Buffer.from(accepted).toString()
}

test('over TCP, an answer after those to other queries is found', async () => {
  expect(await ask(await serve(['other', 'another', 'right'], false))).toBe('right')
})

test('over TCP, a server that sends only answers to other queries is not read until the timeout', async () => {
  const start = performance.now()
  await expect(ask(await serve(['other'], true))).rejects.toMatchObject({ kind: 'closed' })
  expect(performance.now() - start).toBeLessThan(2000)
})
