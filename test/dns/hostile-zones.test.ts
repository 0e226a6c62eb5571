import type packet from 'dns-packet'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { AA, type Asked, type FakeReply, RCODE } from './fake-dns.ts'
import { fakeInternet, RESOLVER, txt } from './fake-internet.ts'
import { timedCheck } from './timed-check.ts'

const MAX_QUERIES = 120
const MAX_MS = 10_000

const ZONES = [
  { apex: 'com', servers: { 'a.nic.com': ['192.0.2.1'] } },
  {
    apex: 'evil.com',
    servers: { 'ns.evil.com': ['192.0.2.66'] },
    records: [txt('evil.com', 'prefix=token')],
  },
]

/** Checks a name, and asserts the limits; `evil` answers for all servers but the resolver and the registry. */
async function checkHostile(evil: (asked: Asked) => FakeReply | undefined, name = 'app.evil.com') {
  const isOurs = (server: string) => server === RESOLVER || server === '192.0.2.1'
  const checked = await timedCheck(
    fakeInternet(ZONES, (asked) => (isOurs(asked.server) ? lookedUp(asked) : evil(asked))),
    { name },
  )
  expect(checked.asked.length).toBeLessThanOrEqual(MAX_QUERIES)
  expect(checked.ms).toBeLessThanOrEqual(MAX_MS)
  return checked
}

/** Returns the resolver's answer for a host below `victim.test`: an address; undefined for other queries. */
function lookedUp({ server, name, type }: Asked): FakeReply | undefined {
  if (server !== RESOLVER || !name.endsWith('.victim.test') || type !== 'A') return undefined
  const number = Number.parseInt(name.slice(1), 10) || 0
  return {
    flags: 0x80,
    answers: [{ type: 'A', name, ttl: 60, data: `198.51.${100 + (number >> 8)}.${number & 255}` }],
  }
}

const many = (owner: string, count: number): packet.Answer[] =>
  Array.from({ length: count }, (_, index) => ({
    type: 'NS',
    name: owner,
    ttl: 60,
    data: `n${index}.victim.test`,
  }))

test('a check of a zone that delegates to 1,200 name servers at each level takes at most 120 queries and 10 seconds', async () => {
  let depth = 0
  await checkHostile(
    () => {
      depth += 1
      return { authorities: many(`${'app.'.repeat(Math.min(depth, 20))}evil.com`, 1200) }
    },
    `${'app.'.repeat(20)}evil.com`,
  )
})

test('a check of a zone with endless CNAME chains that differ by server takes at most 120 queries and 10 seconds', async () => {
  let count = 0
  await checkHostile(({ type, name, server }) => {
    if (type === 'NS') return { flags: AA, answers: many('evil.com', 20) }
    if (type === 'SOA') return undefined
    count += 1
    const data = `a${count}.x${server.replaceAll('.', '-')}.victim.test`
    return { flags: AA, answers: [{ type: 'CNAME', name, ttl: 60, data }] }
  })
})

test('a check of a zone with random responses takes at most 120 queries and 10 seconds', async () => {
  const names =
    '. com evil.com app.evil.com x.app.evil.com ns.evil.com n1.victim.test n2.victim.test deep.er.and.deep.er.evil.com'
  const name = fc.constantFrom(...names.split(' '))
  const ttl = fc.nat()
  const soa = fc.record({ mname: name, rname: name, serial: ttl, refresh: ttl, minimum: ttl })
  const record: fc.Arbitrary<packet.Answer> = fc.oneof(
    fc.record({
      type: fc.constantFrom('NS' as const, 'CNAME' as const, 'DNAME' as const),
      name,
      ttl,
      data: name,
    }),
    fc.record({ type: fc.constant('A' as const), name, ttl, data: fc.ipV4() }),
    fc.record({ type: fc.constant('TXT' as const), name, ttl, data: fc.string({ maxLength: 80 }) }),
    fc.record({ type: fc.constant('SOA' as const), name, ttl, data: soa }),
  )
  const section = fc.array(record, { maxLength: 5 })
  const reply: fc.Arbitrary<FakeReply> = fc.oneof(
    {
      weight: 8,
      arbitrary: fc.record({
        flags: fc
          .tuple(
            fc.constantFrom(0, AA, AA, 0x80),
            fc.constantFrom(0, 0, 0, RCODE.NXDOMAIN, RCODE.SERVFAIL, RCODE.REFUSED, RCODE.FORMERR),
            fc.constantFrom(0, 0, 0, 0x200),
          )
          .map(([a, b, c]) => a | b | c),
        answers: section,
        authorities: section,
        additionals: section,
      }),
    },
    { weight: 1, arbitrary: fc.constantFrom<FakeReply>('silent', 'unreachable') },
  )
  await fc.assert(
    fc.asyncProperty(fc.array(reply, { minLength: 1, maxLength: 12 }), async (replies) => {
      let turn = 0
      await checkHostile(() => replies[turn++ % replies.length])
    }),
    { numRuns: Number(process.env['HOSTILE_ZONES'] ?? 100) },
  )
}, 600_000)
