import type packet from 'dns-packet'
import { expect, test } from 'vitest'
import { AA, type Asked, EDNS, type FakeReply, RA, RCODE, TC } from './fake-dns.ts'
import { fakeInternet, RESOLVER, txt } from './fake-internet.ts'
import { timedObserve } from './timed-check.ts'

/** Zone of the example in RFC 4034 section 5.4, whose key and digest follow. */
const ZONE = 'dskey.example.com'
const KEY =
  'AQOeiiR0GOMYkDshWoSKz9XzfwJr1AYtsmx3TGkJaNXVbfi/2pHm822aJ5iI9BMzNXxeYCmZDRD99WYwYqUSdjMmmAphXdvxegXd/M5+X7OrzKBaMbCVdFLUUh6DhweJBjEVv5f2wwjM9XzcnOf+EPbtG9DMBmADjFDc2w/rljwvFw=='
const DIGEST = '2BB183AF5F22588179A53B0A98631FAD1A292118'
const DAY = 86_400

const ds = (digest = DIGEST, algorithm = 5, digestType = 1): packet.Answer => ({
  type: 'DS',
  name: ZONE,
  ttl: 60,
  data: { keyTag: 60485, algorithm, digestType, digest: Buffer.from(digest, 'hex') },
})
const dnskey: packet.Answer = {
  type: 'DNSKEY',
  name: ZONE,
  ttl: 60,
  data: { flags: 256, algorithm: 5, key: Buffer.from(KEY, 'base64') },
}
/** Creates an RRSIG record over the SOA record. Virtual time starts in 1970, so dates are seconds from the start of the test. */
const signature = (expiration: number): packet.Answer => ({
  type: 'RRSIG',
  name: ZONE,
  ttl: 60,
  data: {
    typeCovered: 'SOA',
    algorithm: 5,
    labels: 3,
    originalTTL: 60,
    expiration: expiration >>> 0,
    inception: (-2 * DAY) >>> 0,
    keyTag: 60485,
    signersName: ZONE,
    signature: Buffer.alloc(8),
  },
})

/** Observes a zone with these records through a resolver whose answers `resolver` can replace. */
async function observeZone(
  { signers = [ds()], keys = [dnskey], signatures = [signature(DAY)], dsFlags = AA },
  resolver: (asked: Asked) => FakeReply | undefined = () => undefined,
) {
  const world = fakeInternet([
    { apex: 'com', servers: { 'a.nic.com': ['192.0.2.1'] } },
    { apex: 'example.com', servers: { 'ns.example.com': ['192.0.2.2'] } },
    { apex: ZONE, servers: { [`ns.${ZONE}`]: ['192.0.2.3'] }, records: [txt(ZONE, 'prefix=token')] },
  ])
  const { seen } = await timedObserve(
    (asked) => {
      const special = asked.server === RESOLVER ? resolver(asked) : undefined
      if (special !== undefined) return special
      const reply = world(asked)
      if (typeof reply === 'string' || !asked.dnssecOk || asked.name !== ZONE) return reply
      const soa = [...(reply.answers ?? []), ...signatures]
      const records = { DS: signers, DNSKEY: keys, SOA: soa }[asked.type]
      const flags = asked.type === 'DS' ? dsFlags : reply.flags
      return records === undefined ? reply : { ...reply, flags, answers: records, additionals: [EDNS] }
    },
    { name: ZONE },
  )
  return seen
}

test.each([
  ['ok', 'the DS record matches, and no signature has expired', {}],
  ['ok', 'one of two signatures has not expired', { signatures: [signature(-DAY), signature(DAY)] }],
  ['ok', 'one of two DS records matches', { signers: [ds('00'.repeat(20)), ds()] }],
  ['unsigned', 'the zone has no DS record', { signers: [] }],
  ['unsigned', 'its parent denies the zone', { signers: [], dsFlags: AA | RCODE.NXDOMAIN }],
  ['unsigned', 'validators do not support the algorithm of its only DS record', { signers: [ds(DIGEST, 3)] }],
  ['unsigned', 'validators do not support the digest of its only DS record', { signers: [ds(DIGEST, 5, 3)] }],
  ['no_key', 'the zone has a DS record, but no key', { keys: [] }],
  ['wrong_ds', 'the only DS record is of another key', { signers: [ds('00'.repeat(20))] }],
  ['expired', 'the only signature has expired', { signatures: [signature(-DAY)] }],
  [undefined, 'the DS response has the TC bit over TCP too', { signers: [], dsFlags: AA | TC }],
  [undefined, 'the DS response has the code SERVFAIL', { signers: [], dsFlags: AA | RCODE.SERVFAIL }],
])('observeDnssec returns the state %s if %s', async (state, _title, records) => {
  expect((await observeZone(records)).dnssec?.state).toBe(state)
})

test('the state `no_key` comes with the tags of the keys that the DS records name', async () => {
  expect((await observeZone({ keys: [] })).dnssec).toMatchObject({ state: 'no_key', keyTags: [60485] })
})

test('the observation of a resolver that fails validation has the remaining TTL of its cached DNSSEC keys', async () => {
  const seen = await observeZone({}, ({ name, type, checkingDisabled }) => {
    if (name !== ZONE) return undefined
    if (type === 'DNSKEY') return { flags: RA, answers: [{ ...dnskey, ttl: 555 }] }
    return checkingDisabled ? undefined : { flags: RA | RCODE.SERVFAIL }
  })
  expect(seen.dnssec).toMatchObject({ state: 'ok', keyTags: [60485] })
  expect(seen.resolvers).toMatchObject([{ outcome: 'servfail', failsValidation: true, cached: { ttl: 555 } }])
})
