import { createHash } from 'node:crypto'
import type packet from 'dns-packet'
import { describe, expect, test } from 'vitest'
import { observeDnssec } from '../../../src/dns/observation/observe-dnssec.ts'
import type { DelegationSigner } from '../../../src/dns/wire/message.ts'
import { AA, type Asked, EDNS, type FakeReply } from '../fake-dns.ts'
import { fakeInternet, txt } from '../fake-internet.ts'
import { timedCheck, timedContext } from '../timed-check.ts'

/** The example of RFC 4034 section 5.4. */
const ZONE = 'dskey.example.com'
const KEY =
  'AQOeiiR0GOMYkDshWoSKz9XzfwJr1AYtsmx3TGkJaNXVbfi/2pHm822aJ5iI9BMzNXxeYCmZDRD99WYwYqUSdjMmmAphXdvxegXd/M5+X7OrzKBaMbCVdFLUUh6DhweJBjEVv5f2wwjM9XzcnOf+EPbtG9DMBmADjFDc2w/rljwvFw=='
const SIGNER: DelegationSigner = {
  type: 'DS',
  keyTag: 60485,
  algorithm: 5,
  digestType: 1,
  digest: Buffer.from('2BB183AF5F22588179A53B0A98631FAD1A292118', 'hex'),
}
const DAY = 86_400

const soa: packet.Answer = {
  type: 'SOA',
  name: ZONE,
  ttl: 60,
  data: {
    mname: 'ns.example.com',
    rname: 'h.example.com',
    serial: 1,
    refresh: 1,
    retry: 1,
    expire: 1,
    minimum: 1,
  },
}

/** Virtual time starts in 1970, so dates are seconds from the start. */
const dated = (
  typeCovered: 'SOA' | 'DS' | 'TXT',
  inception: number,
  expiration: number,
  keyTag = 60485,
): packet.Answer => ({
  type: 'RRSIG',
  name: ZONE,
  ttl: 60,
  data: {
    typeCovered,
    algorithm: 5,
    labels: 3,
    originalTTL: 60,
    expiration: expiration >>> 0,
    inception: inception >>> 0,
    keyTag,
    signersName: ZONE,
    signature: Buffer.alloc(8),
  },
})

const signature = (inception: number, expiration: number) => dated('SOA', inception, expiration)

function server(signatures: packet.Answer[], keys = true): (asked: Asked) => FakeReply {
  return ({ type }) => ({
    flags: AA,
    additionals: [EDNS],
    answers:
      type === 'SOA'
        ? [soa, ...signatures]
        : keys
          ? [
              {
                type: 'DNSKEY',
                name: ZONE,
                ttl: 60,
                data: { flags: 256, algorithm: 5, key: Buffer.from(KEY, 'base64') },
              },
            ]
          : [],
  })
}

const dnskey = (key: string): packet.Answer => ({
  type: 'DNSKEY',
  name: ZONE,
  ttl: 60,
  data: { flags: 256, algorithm: 5, key: Buffer.from(key, 'base64') },
})

/** A server with these keys, whose SOA and TXT records are signed with the key of this tag. */
const keyed =
  (keys: readonly string[], keyTag: number, txtSignatures = [dated('TXT', -DAY, DAY, keyTag)]) =>
  ({ type }: Asked): FakeReply => ({
    flags: AA,
    additionals: [EDNS],
    answers:
      {
        SOA: [soa, dated('SOA', -DAY, DAY, keyTag)],
        DNSKEY: keys.map(dnskey),
        TXT: [txt(ZONE, 'prefix=token'), ...txtSignatures],
      }[type] ?? [],
  })

const dataOf = (key: string) => Buffer.concat([Buffer.from([1, 0, 3, 5]), Buffer.from(key, 'base64')])

/** RFC 4034 appendix B. */
function tagOf(key: string): number {
  const sum = dataOf(key).reduce((total, byte, index) => total + (index % 2 === 0 ? byte << 8 : byte), 0)
  return (sum + (sum >>> 16)) & 0xffff
}

/** The DS record for a key of `dskey.example.com`. */
function signerOf(key: string): DelegationSigner {
  const digest = createHash('sha1').update('\x05dskey\x07example\x03com\0').update(dataOf(key)).digest()
  return { ...SIGNER, keyTag: tagOf(key), digest }
}

async function observe(
  respond: (asked: Asked) => FakeReply,
  signers = [SIGNER],
  hosts: readonly [string, ...string[]] = ['192.0.2.2'],
) {
  const [first, ...others] = hosts
  const at = (address: string) => ({ address, port: 53 })
  const addresses = [at(first), ...others.map(at)] as const
  const { context } = timedContext(respond)
  return await observeDnssec({ name: ZONE, zone: ZONE }, signers, addresses, context)
}

describe('DNSSEC observed from DS records, keys and dates:', () => {
  test('a DS record that matches the key, and a valid signature', async () => {
    expect(await observe(server([signature(-DAY, DAY)]))).toMatchObject({ state: 'ok', keyTags: [60485] })
  })

  test('one valid signature is enough', async () => {
    expect(await observe(server([signature(-2 * DAY, -DAY), signature(-DAY, DAY)]))).toMatchObject({
      state: 'ok',
    })
  })

  test('no DS record, nothing to check', async () => {
    expect(await observe(() => 'silent', [])).toMatchObject({ state: 'unsigned' })
  })

  test('expired signatures', async () => {
    const seen = await observe(server([signature(-3 * DAY, -2 * DAY), signature(-3 * DAY, -DAY)]))
    expect(seen).toMatchObject({ state: 'expired', date: -DAY })
  })

  test('signatures that become valid tomorrow', async () => {
    expect(await observe(server([signature(DAY, 3 * DAY)]))).toMatchObject({
      state: 'not-yet-valid',
      date: DAY,
    })
  })

  test('a DS record for another key', async () => {
    const other = { ...SIGNER, digest: Buffer.alloc(20, 1) }
    expect(await observe(server([signature(-DAY, DAY)]), [other])).toMatchObject({ state: 'wrong-ds' })
  })

  test('a DS record for the next key next to the current one', async () => {
    const next = { ...SIGNER, keyTag: 1, digest: Buffer.alloc(20, 1) }
    expect(await observe(server([signature(-DAY, DAY)]), [next, SIGNER])).toMatchObject({ state: 'ok' })
  })

  test.each([
    ['a kind of digest', { digestType: 99 }],
    ['an algorithm', { algorithm: 200 }],
  ])('a DS record with %s that nobody supports leaves the zone unsigned', async (_what, odd) => {
    const unknown = { ...SIGNER, ...odd, digest: Buffer.alloc(20, 1) }
    expect(await observe(server([signature(-DAY, DAY)]), [unknown])).toMatchObject({ state: 'unsigned' })
    expect(await observe(server([signature(-DAY, DAY)]), [unknown, SIGNER])).toMatchObject({ state: 'ok' })
  })

  test.each([
    ['first', ['192.0.2.9', '192.0.2.2']],
    ['second', ['192.0.2.2', '192.0.2.9']],
  ] as const)('expired signatures at only the %s server are reported as its own', async (_which, hosts) => {
    const fresh = server([signature(-DAY, DAY)])
    const old = server([signature(-3 * DAY, -2 * DAY)])
    const seen = await observe(
      (asked) => (asked.server === '192.0.2.9' ? old : fresh)(asked),
      [SIGNER],
      [...hosts],
    )
    expect(seen).toMatchObject({
      state: 'ok',
      invalid: [{ server: { address: '192.0.2.9' }, state: 'expired', date: -2 * DAY }],
    })
  })

  test.each([
    ['first', ['192.0.2.9', '192.0.2.2']],
    ['second', ['192.0.2.2', '192.0.2.9']],
  ] as const)('a %s server that alone is not signed does not speak for the zone', async (_which, hosts) => {
    const seen = await observe(
      (asked) => (asked.server === '192.0.2.9' ? server([], false) : server([signature(-DAY, DAY)]))(asked),
      [SIGNER],
      [...hosts],
    )
    expect(seen).toMatchObject({
      state: 'ok',
      invalid: [{ server: { address: '192.0.2.9' }, state: 'no-signature' }],
    })
  })

  describe('two servers with different keys', () => {
    const OTHER = Buffer.alloc(64, 7).toString('base64')
    const own = keyed([KEY], 60485)
    const pair = async (atNine: (asked: Asked) => FakeReply, atTwo = own, first: 2 | 9 = 2) =>
      await observe(
        (asked) => (asked.server === '192.0.2.9' ? atNine : atTwo)(asked),
        [SIGNER],
        first === 2 ? ['192.0.2.2', '192.0.2.9'] : ['192.0.2.9', '192.0.2.2'],
      )

    test.each([2, 9] as const)(
      'of which the DS record covers only one, whichever is asked first (192.0.2.%d)',
      async (first) => {
        expect(await pair(keyed([OTHER], 12345), own, first)).toMatchObject({
          state: 'ok',
          invalid: [{ server: { address: '192.0.2.9' }, state: 'other-keys' }],
        })
      },
    )

    test('that each publish the other’s keys are right', async () => {
      const both = [KEY, OTHER]
      const seen = await pair(keyed(both, 12345), keyed(both, 60485))
      expect(seen).toEqual({ state: 'ok', keyTags: [60485], date: undefined })
    })

    test('are right if one is ahead in a key rollover: the key that the DS record covers is there', async () => {
      expect(await pair(keyed([KEY, OTHER], 12345))).toEqual({
        state: 'ok',
        keyTags: [60485],
        date: undefined,
      })
    })

    describe('with a DS record for each', () => {
      const bothSigners = [SIGNER, signerOf(OTHER)]
      const observeBoth = async (
        atNine: (asked: Asked) => FakeReply,
        atTwo: (asked: Asked) => FakeReply,
        first: 2 | 9,
      ) =>
        await observe(
          (asked) => (asked.server === '192.0.2.9' ? atNine : atTwo)(asked),
          bothSigners,
          first === 2 ? ['192.0.2.2', '192.0.2.9'] : ['192.0.2.9', '192.0.2.2'],
        )
      const ofNine = {
        server: { address: '192.0.2.9' },
        state: 'unshared-keys',
        missing: { keyTag: tagOf(OTHER), at: { address: '192.0.2.2' } },
      }
      const ofTwo = {
        server: { address: '192.0.2.2' },
        state: 'unshared-keys',
        missing: { keyTag: 60485, at: { address: '192.0.2.9' } },
      }

      test.each([2, 9] as const)('that publish only their own keys (192.0.2.%d first)', async (first) => {
        const seen = await observeBoth(keyed([OTHER], tagOf(OTHER)), own, first)
        expect(seen).toMatchObject({ state: 'ok' })
        expect(seen?.invalid).toHaveLength(2)
        expect(seen?.invalid).toMatchObject(first === 2 ? [ofNine, ofTwo] : [ofTwo, ofNine])
      })

      describe('and signing keys of their own', () => {
        const [twoSigns, nineSigns] = [1, 2].map((byte) => Buffer.alloc(64, byte).toString('base64')) as [
          string,
          string,
        ]
        const shared = [twoSigns, nineSigns]
        const nine = keyed([OTHER, ...shared], tagOf(nineSigns))

        test.each([2, 9] as const)('that only one of them publishes (192.0.2.%d first)', async (first) => {
          const seen = await observeBoth(nine, keyed([KEY, twoSigns], tagOf(twoSigns)), first)
          const missing = { keyTag: tagOf(nineSigns), at: { address: '192.0.2.2' } }
          expect(seen?.invalid).toHaveLength(1)
          expect(seen?.invalid).toMatchObject([{ ...ofNine, missing }])
        })

        test.each([2, 9] as const)('that both publish are right (192.0.2.%d first)', async (first) => {
          const seen = await observeBoth(nine, keyed([KEY, ...shared], tagOf(twoSigns)), first)
          expect(seen).toMatchObject({ state: 'ok' })
          expect(seen).not.toHaveProperty('invalid')
        })
      })
    })

    test('are no finding if the keys of the second one cannot be read', async () => {
      const respond = (asked: Asked): FakeReply =>
        asked.type === 'DNSKEY' ? 'silent' : keyed([OTHER], 12345)(asked)
      expect(await pair(respond)).not.toHaveProperty('invalid')
    })
  })

  describe('the signature of the TXT records', () => {
    test('is missing', async () => {
      expect(await observe(keyed([KEY], 60485, []))).toMatchObject({ state: 'ok', unsignedTxt: true })
    })

    test('is there', async () => {
      expect(await observe(keyed([KEY], 60485))).not.toHaveProperty('unsignedTxt')
    })

    test('is not expected in an answer without EDNS', async () => {
      const seen = await observe((asked) => {
        const reply = keyed([KEY], 60485, [])(asked)
        return asked.type === 'TXT' && typeof reply === 'object' ? { ...reply, additionals: [] } : reply
      })
      expect(seen).not.toHaveProperty('unsignedTxt')
    })
  })

  test('a DS record left behind', async () => {
    expect(await observe(server([], false))).toMatchObject({ state: 'no-key' })
  })

  test('keys, and records without signatures', async () => {
    expect(await observe(server([]))).toMatchObject({ state: 'no-signature' })
  })

  test('silence is not an observation', async () => {
    expect(await observe(() => 'silent')).toBeUndefined()
  })
})

describe('expired signatures of a zone', () => {
  /** @param expiration of the signature of the DS record, in the parent zone. */
  const check = async (expiration: number) => {
    const at = (apex: string, address: string) => ({ apex, servers: { [`ns.${apex}`]: [address] } })
    const zones = [
      at('com', '192.0.2.1'),
      at('example.com', '192.0.2.3'),
      { ...at(ZONE, '192.0.2.4'), records: [txt(ZONE, 'prefix=token')] },
    ]
    const signed = server([signature(-3 * DAY, -2 * DAY)])
    const { type: _, ...ds } = SIGNER
    const delegation: packet.Answer[] = [
      { type: 'DS', name: ZONE, ttl: 60, data: { ...ds, digest: Buffer.from(SIGNER.digest) } },
      dated('DS', -3 * DAY, expiration),
    ]
    const respond = fakeInternet(zones, (asked) => {
      if (asked.server === '192.0.2.3' && asked.type === 'DS')
        return { flags: AA, additionals: [EDNS], answers: delegation }
      return asked.server === '192.0.2.4' && asked.dnssecOk ? signed(asked) : undefined
    })
    return (await timedCheck(respond, { name: ZONE })).report
  }

  test('are an error if those of the parent zone are valid', async () => {
    expect(await check(DAY)).toMatchObject({
      verdict: 'fix',
      findings: [{ code: 'dnssec_bogus', details: { reason: 'signature_expired' } }],
    })
  })

  test('are blamed on the clock of this machine if those of the parent zone look expired too', async () => {
    expect(await check(-DAY)).toMatchObject({
      verdict: 'ready_with_warning',
      findings: [{ code: 'dnssec_bogus', details: { reason: 'local_clock' } }],
    })
  })
})
