import { describe, expect, test } from 'vitest'
import type { DnsServer } from '../../../src/dns/wire/address.ts'
import { limitTotalQueries, trySendQuery } from '../../../src/dns/wire/ask.ts'
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
  readonly server?: DnsServer
  readonly timeoutMs?: number
  readonly max?: number
}

async function asking(
  respond: (asked: Asked) => FakeReply,
  { server = SERVER, timeoutMs = 5000, max = 100 }: Asking = {},
) {
  const clock = createVirtualClock()
  const dns = createFakeDns(respond, clock)
  const limited = limitTotalQueries(dns, max)
  const effects = { clock, dns: limited, random, signal: new AbortController().signal }
  const reply = await trySendQuery(server, question, createDeadline(timeoutMs, clock), effects)
  const tried = dns.asked.map(({ transport, edns }) =>
    edns === undefined ? transport : `${transport} ${edns}`,
  )
  return { reply, asked: dns.asked, tried, limited }
}

describe('trySendQuery', () => {
  test('a DNS query to a name server is sent over UDP with EDNS, and without recursion desired', async () => {
    const { reply, asked } = await asking(() => answer)
    expect(reply).toMatchObject({ kind: 'answer', message: { tc: false, answers: [{ type: 'TXT' }] } })
    expect(asked).toMatchObject([
      { transport: 'udp', server: '192.0.2.1', recursionDesired: false, checkingDisabled: false, edns: 1232 },
    ])
  })

  test.each<[string, (asked: Asked) => FakeReply, readonly string[]]>([
    [
      'over TCP if the response is truncated',
      ({ transport }) => (transport === 'udp' ? { flags: AA | TC } : answer),
      ['udp 1232', 'tcp 1232'],
    ],
    [
      'without EDNS after FORMERR',
      ({ edns }) => (edns === undefined ? answer : { flags: RCODE.FORMERR }),
      ['udp 1232', 'udp'],
    ],
    [
      'over TCP without EDNS after FORMERR and truncation',
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
      'over TCP if the UDP port is closed',
      ({ transport }) => (transport === 'udp' ? 'unreachable' : answer),
      ['udp 1232', 'tcp 1232'],
    ],
    [
      'over TCP if a local firewall blocks UDP',
      ({ transport }) => (transport === 'udp' ? 'not_checked' : answer),
      ['udp 1232', 'tcp 1232'],
    ],
  ])('a DNS query over UDP is repeated %s', async (_title, respond, expected) => {
    const { reply, tried } = await asking(respond)
    expect(reply).toMatchObject({ kind: 'answer', message: { tc: false, rcode: 'NOERROR' } })
    expect(tried).toEqual(expected)
  })

  test('a truncated UDP response is returned if TCP fails and a larger UDP buffer does not help', async () => {
    const { reply } = await asking(({ transport }) =>
      transport === 'udp' ? { flags: AA | TC } : 'unreachable',
    )
    expect(reply).toMatchObject({ kind: 'answer', message: { tc: true } })
  })

  test('a DNS query to a server that rejects EDNS and is silent without it has the result `timeout`', async () => {
    const { reply } = await asking(({ edns }) => (edns === undefined ? 'silent' : { flags: RCODE.FORMERR }))
    expect(reply.kind).toBe('timeout')
  })

  test.each([
    ['unreachable', 'unreachable'],
    ['not_checked', 'not_checked'],
    ['silent', 'timeout'],
  ] as const)('if UDP and TCP both fail as `%s`, a DNS query has the result `%s`', async (behavior, kind) => {
    expect((await asking(() => behavior)).reply.kind).toBe(kind)
  })

  test('a DNS query after the deadline or beyond the query limit is not sent', async () => {
    const late = await asking(() => answer, { timeoutMs: 0 })
    expect([late.reply.kind, late.asked]).toEqual(['not_checked', []])
    const beyond = await asking(() => answer, { max: 0 })
    expect([beyond.reply.kind, beyond.asked, beyond.limited.isReached()]).toEqual(['not_checked', [], true])
  })

  test('a DNS query that could not be sent does not count toward the query limit', async () => {
    const { limited } = await asking(() => 'not_checked', { max: 1 })
    expect(limited.isReached()).toBe(false)
  })

  const HTTPS = new URL('https://dns.example/dns-query')
  test.each<[string, DnsServer, (asked: Asked) => FakeReply, readonly string[]]>([
    ['over HTTPS, with id 0, to a URL', HTTPS, ({ id }) => (id === 0 ? answer : 'silent'), ['https 1232']],
    [
      'over HTTPS too if the resolver has an HTTPS URL and UDP brings no response',
      { ...SERVER, https: HTTPS },
      ({ transport, id }) => (transport === 'https' && id === 0 ? answer : 'silent'),
      ['udp 1232', 'https 1232'],
    ],
    ['over UDP alone if UDP brings a response', { ...SERVER, https: HTTPS }, () => answer, ['udp 1232']],
  ])('a DNS query to a resolver is sent %s', async (_title, server, respond, expected) => {
    const { reply, tried } = await asking(respond, { server })
    expect(reply.kind).toBe('answer')
    expect(tried).toEqual(expected)
  })

  test('a failed DNS query over HTTPS counts toward the query limit, and its result has a `reason`', async () => {
    const { reply, limited } = await asking(() => 'unreachable', { server: HTTPS, max: 1 })
    expect(reply).toMatchObject({ kind: 'unreachable', reason: 'unreachable' })
    await limited
      .https({ server: HTTPS, message: new Uint8Array(), timeoutMs: 1, accept: () => true })
      .catch(() => {})
    expect(limited.isReached()).toBe(true)
  })

  test('an aborted DNS query rejects with the reason of the abort signal', async () => {
    const clock = createVirtualClock()
    const controller = new AbortController()
    const dns = createFakeDns(() => {
      controller.abort(new Error('interrupted'))
      return 'silent'
    }, clock)
    const asked = trySendQuery(SERVER, question, createDeadline(5000, clock), {
      clock,
      dns,
      random,
      signal: controller.signal,
    })
    await expect(asked).rejects.toThrow('interrupted')
  })
})
