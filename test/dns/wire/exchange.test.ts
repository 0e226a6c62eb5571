import { describe, expect, test } from 'vitest'
import type { Clock } from '../../../src/context.ts'
import { answers, ask } from '../../../src/dns/wire/exchange.ts'
import { createFakeClock } from '../../fake-context.ts'
import { AA, type Asked, createFakeDns, type FakeReply, RCODE, TC } from '../fake-dns.ts'
import { createVirtualClock } from '../virtual-clock.ts'

const question = { name: 'example.com', type: 'TXT' } as const
const answer: FakeReply = {
  flags: AA,
  answers: [{ name: 'example.com', type: 'TXT', ttl: 60, data: 'value' }],
}

async function asking(
  respond: (asked: Asked) => FakeReply,
  deadline = 5000,
  server = { address: '192.0.2.1', port: 53 },
  clock: Clock = createFakeClock(),
) {
  const dns = createFakeDns(respond, clock)
  const signal = new AbortController().signal
  const random = { bytes: (length: number) => new Uint8Array(length).fill(3), fraction: () => 0 }
  const reply = await ask(server, question, { deadline }, { clock, dns, random, signal })
  return { reply, asked: dns.asked, clock }
}

describe('one question to one server', () => {
  test('goes over UDP with EDNS and without recursion', async () => {
    const { reply, asked } = await asking(() => answer)
    expect(reply).toMatchObject({ kind: 'answer', message: { aa: true, answers: [{ type: 'TXT' }] } })
    expect(asked).toEqual([
      {
        transport: 'udp',
        server: '192.0.2.1',
        name: 'example.com',
        type: 'TXT',
        recursionDesired: false,
        checkingDisabled: false,
        edns: 1232,
        dnssecOk: false,
      },
    ])
  })

  test('goes over TCP if the answer is truncated', async () => {
    const { reply, asked } = await asking(({ transport }) =>
      transport === 'udp' ? { flags: AA | TC } : answer,
    )
    expect(reply).toMatchObject({ kind: 'answer', tcpFailure: undefined, message: { tc: false } })
    expect(asked.map((one) => one.transport)).toEqual(['udp', 'tcp'])
  })

  test('is retried with a larger datagram if TCP is closed, which is reported', async () => {
    const { reply, asked } = await asking(({ transport, edns }) =>
      transport === 'tcp' ? 'refused' : edns === 4096 ? answer : { flags: AA | TC },
    )
    expect(reply).toMatchObject({ kind: 'answer', tcpFailure: 'refused', message: { tc: false } })
    expect(asked.map((one) => [one.transport, one.edns])).toEqual([
      ['udp', 1232],
      ['tcp', 1232],
      ['udp', 4096],
    ])
  })

  test.each([
    ['FORMERR', RCODE.FORMERR],
    ['SERVFAIL', RCODE.SERVFAIL],
    ['REFUSED', RCODE.REFUSED],
  ])('goes without EDNS after %s', async (ednsRejection, rcode) => {
    const { reply } = await asking(({ edns }) => (edns === undefined ? answer : { flags: rcode }))
    expect(reply).toMatchObject({
      kind: 'answer',
      message: { rcode: 'NOERROR' },
      ednsRejection,
    })
  })

  test('is not said to fail because of EDNS if it fails without as well', async () => {
    const { reply } = await asking(() => ({ flags: RCODE.SERVFAIL }))
    expect(reply).not.toHaveProperty('ednsRejection')
  })

  test('goes without EDNS over TCP as well if the server rejects it', async () => {
    const { reply } = await asking(({ transport, edns }) => {
      if (edns !== undefined) return { flags: RCODE.FORMERR }
      return transport === 'udp' ? { flags: AA | TC } : answer
    })
    expect(reply).toMatchObject({ kind: 'answer', message: { rcode: 'NOERROR', tc: false } })
  })

  test('is retried after two seconds without EDNS, and at the same time over TCP', async () => {
    const { reply, asked } = await asking(({ transport, edns }) =>
      transport === 'udp' && edns === undefined ? answer : 'pending',
    )
    expect(reply).toMatchObject({ kind: 'answer' })
    expect(asked.map((one) => [one.transport, one.edns])).toEqual([
      ['udp', 1232],
      ['udp', undefined],
      ['tcp', 1232],
    ])
  })

  test.each(['refused', 'blocked'] as const)('goes over TCP if UDP is %s', async (behavior) => {
    for (const address of ['192.0.2.1', '2001:db8::1']) {
      const { reply } = await asking(({ transport }) => (transport === 'udp' ? behavior : answer), 5000, {
        address,
        port: 53,
      })
      expect(reply).toMatchObject({ kind: 'answer', secondTry: 'tcp' })
    }
  })

  test('says nothing about the server if a firewall here blocks UDP and TCP gets no answer', async () => {
    const { reply } = await asking(({ transport }) => (transport === 'udp' ? 'blocked' : 'silent'))
    expect(reply.kind).toBe('blocked')
  })

  test.each([
    ['refused', 'unreachable'],
    ['unreachable', 'unreachable'],
    ['no-route', 'no-route'],
    ['blocked', 'blocked'],
    ['silent', 'silent'],
  ] as const)('%s everywhere ends as %s', async (behavior, kind) => {
    const { reply } = await asking(() => behavior)
    expect(reply.kind).toBe(kind)
  })

  test('is sent again if this machine could not send it at first', async () => {
    let failures = 0
    const flaky = () => {
      failures += 1
      return failures === 1 ? 'no-route' : answer
    }
    const { reply, asked } = await asking(flaky, 5000, undefined, createVirtualClock())
    expect(reply).toMatchObject({ kind: 'answer', secondTry: undefined })
    expect(asked.map((one) => one.transport)).toEqual(['udp', 'udp'])
  })

  test('is silent if the deadline has passed', async () => {
    const { reply, asked } = await asking(() => answer, 0)
    expect(reply.kind).toBe('silent')
    expect(asked).toEqual([])
  })

  test('ends with the reason of the interrupt', async () => {
    const clock = createFakeClock()
    const controller = new AbortController()
    const dns = createFakeDns(() => {
      controller.abort(new Error('interrupted'))
      return 'silent'
    }, clock)
    const random = { bytes: (length: number) => new Uint8Array(length), fraction: () => 0 }
    const server = { address: '192.0.2.1', port: 53 }
    const asked = ask(server, question, { deadline: 5000 }, { clock, dns, random, signal: controller.signal })
    await expect(asked).rejects.toThrow('interrupted')
  })
})

test.each([
  ['no-route', undefined],
  ['blocked', undefined],
  ['silent', false],
] as const)(
  'a server does not count as silent if datagrams could not be sent (%s)',
  async (behavior, expected) => {
    const clock = createFakeClock()
    const effects = {
      clock,
      dns: createFakeDns(() => behavior, clock),
      random: { bytes: (length: number) => new Uint8Array(length), fraction: () => 0 },
      signal: new AbortController().signal,
    }
    const server = { address: '192.0.2.1', port: 53 }
    expect(await answers('udp', server, question, { edns: 'plain', deadline: 1000 }, effects)).toBe(expected)
  },
)
