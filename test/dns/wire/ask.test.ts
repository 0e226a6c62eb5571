import { describe, expect, test } from 'vitest'
import type { Resolver } from '../../../src/dns/wire/address.ts'
import { limitQueries, sendQuery } from '../../../src/dns/wire/ask.ts'
import { createDeadline } from '../../../src/timeout.ts'
import { AA, type Asked, createFakeDns, type FakeReply, RCODE, TC } from '../fake-dns.ts'
import { createVirtualClock } from '../virtual-clock.ts'

const SERVER = { address: '192.0.2.1', port: 53 }
const question = { name: 'example.com', type: 'TXT' } as const
const answer: FakeReply = {
  flags: AA,
  answers: [{ name: 'example.com', type: 'TXT', ttl: 60, data: 'value' }],
}
const random = { bytes: (length: number) => new Uint8Array(length).fill(3), fraction: () => 0 }

interface Asking {
  readonly server?: Resolver
  readonly timeoutMs?: number
  readonly max?: number
}

async function asking(
  respond: (asked: Asked) => FakeReply,
  { server = SERVER, timeoutMs = 5000, max = 100 }: Asking = {},
) {
  const clock = createVirtualClock()
  const dns = createFakeDns(respond, clock)
  const limited = limitQueries(dns, max)
  const effects = { clock, dns: limited, random, signal: new AbortController().signal }
  const reply = await sendQuery(server, question, createDeadline(timeoutMs, clock), effects)
  const tried = dns.asked.map(({ transport, edns }) =>
    edns === undefined ? transport : `${transport} ${edns}`,
  )
  return { reply, asked: dns.asked, tried, limited }
}

describe('one question to one server', () => {
  test('a query to a name server goes over UDP with EDNS and without recursion', async () => {
    const { reply, asked } = await asking(() => answer)
    expect(reply).toMatchObject({ kind: 'answer', message: { tc: false, answers: [{ type: 'TXT' }] } })
    expect(asked).toMatchObject([
      { transport: 'udp', server: '192.0.2.1', recursionDesired: false, checkingDisabled: false, edns: 1232 },
    ])
  })

  test.each<[string, (asked: Asked) => FakeReply, readonly string[]]>([
    [
      'over TCP if the answer is cut',
      ({ transport }) => (transport === 'udp' ? { flags: AA | TC } : answer),
      ['udp 1232', 'tcp 1232'],
    ],
    [
      'without EDNS after FORMERR',
      ({ edns }) => (edns === undefined ? answer : { flags: RCODE.FORMERR }),
      ['udp 1232', 'udp'],
    ],
    [
      'over TCP without EDNS after both',
      ({ transport, edns }) => {
        if (edns !== undefined) return { flags: RCODE.FORMERR }
        return transport === 'udp' ? { flags: AA | TC } : answer
      },
      ['udp 1232', 'udp', 'tcp'],
    ],
    [
      'over TCP without EDNS after FORMERR and silence',
      ({ transport, edns }) => {
        if (edns !== undefined) return { flags: RCODE.FORMERR }
        return transport === 'udp' ? 'pending' : answer
      },
      ['udp 1232', 'udp', 'tcp'],
    ],
    [
      'over TCP after silence',
      ({ transport }) => (transport === 'tcp' ? answer : 'pending'),
      ['udp 1232', 'tcp 1232'],
    ],
    [
      'over TCP if UDP is closed',
      ({ transport }) => (transport === 'udp' ? 'unreachable' : answer),
      ['udp 1232', 'tcp 1232'],
    ],
    [
      'over TCP if a firewall here blocks UDP',
      ({ transport }) => (transport === 'udp' ? 'not_checked' : answer),
      ['udp 1232', 'tcp 1232'],
    ],
  ])('a DNS query is sent %s', async (_title, respond, expected) => {
    const { reply, tried } = await asking(respond)
    expect(reply).toMatchObject({ kind: 'answer', message: { tc: false, rcode: 'NOERROR' } })
    expect(tried).toEqual(expected)
  })

  test('a truncated answer is returned if TCP fails', async () => {
    const { reply } = await asking(({ transport }) =>
      transport === 'udp' ? { flags: AA | TC } : 'unreachable',
    )
    expect(reply).toMatchObject({ kind: 'answer', message: { tc: true } })
  })

  test('silence after a rejection of EDNS is silence', async () => {
    const { reply } = await asking(({ edns }) => (edns === undefined ? 'silent' : { flags: RCODE.FORMERR }))
    expect(reply.kind).toBe('timeout')
  })

  test.each([
    ['unreachable', 'unreachable'],
    ['not_checked', 'not_checked'],
    ['silent', 'timeout'],
  ] as const)('a server that is %s over UDP and TCP gives the reply %s', async (behavior, kind) => {
    expect((await asking(() => behavior)).reply.kind).toBe(kind)
  })

  test('a query after the deadline or beyond the query limit is not sent', async () => {
    const late = await asking(() => answer, { timeoutMs: 0 })
    expect([late.reply.kind, late.asked]).toEqual(['not_checked', []])
    const beyond = await asking(() => answer, { max: 0 })
    expect([beyond.reply.kind, beyond.asked, beyond.limited.isReached()]).toEqual(['not_checked', [], true])
  })

  test('a query that could not be sent does not count toward the query limit', async () => {
    const { limited } = await asking(() => 'not_checked', { max: 1 })
    expect(limited.isReached()).toBe(false)
  })

  const HTTPS = new URL('https://dns.example/dns-query')
  test.each<[string, Resolver, (asked: Asked) => FakeReply, readonly string[]]>([
    ['over HTTPS alone, with 0 as its id', HTTPS, ({ id }) => (id === 0 ? answer : 'silent'), ['https 1232']],
    [
      'over HTTPS as well if the resolver has it and UDP brings no answer',
      { ...SERVER, https: HTTPS },
      ({ transport, id }) => (transport === 'https' && id === 0 ? answer : 'silent'),
      ['udp 1232', 'https 1232'],
    ],
    ['over UDP alone if that is enough', { ...SERVER, https: HTTPS }, () => answer, ['udp 1232']],
  ])('a query to a resolver is sent %s', async (_title, server, respond, expected) => {
    const { reply, tried } = await asking(respond, { server })
    expect(reply.kind).toBe('answer')
    expect(tried).toEqual(expected)
  })

  test('a query over HTTPS counts toward the query limit, and its failure has a reason', async () => {
    const { reply, limited } = await asking(() => 'unreachable', { server: HTTPS, max: 1 })
    expect(reply).toMatchObject({ kind: 'unreachable', reason: 'unreachable' })
    await limited
      .https({ server: HTTPS, message: new Uint8Array(), timeoutMs: 1, accept: () => true })
      .catch(() => {})
    expect(limited.isReached()).toBe(true)
  })

  test('an interrupt ends a DNS query with the reason of the abort signal', async () => {
    const clock = createVirtualClock()
    const controller = new AbortController()
    const dns = createFakeDns(() => {
      controller.abort(new Error('interrupted'))
      return 'silent'
    }, clock)
    const asked = sendQuery(SERVER, question, createDeadline(5000, clock), {
      clock,
      dns,
      random,
      signal: controller.signal,
    })
    await expect(asked).rejects.toThrow('interrupted')
  })
})
