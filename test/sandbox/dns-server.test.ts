import { createSocket } from 'node:dgram'
import { connect } from 'node:net'
import { type DecodedPacket, decode, encode, type OptAnswer, type Packet, type RecordType } from 'dns-packet'
import { describe, expect, test } from 'vitest'
import type { Sandbox } from '../../src/sandbox/sandbox.ts'
import { sandboxForTest } from './start-sandbox.ts'
import { api, control } from './talk.ts'

type Transport = 'udp' | 'tcp'
const TRANSPORTS: readonly Transport[] = ['udp', 'tcp']

const portOf = ({ dns }: Sandbox) => Number(dns.split(':')[1])

/** Sends bytes and gives the bytes of the answer; undefined where none comes. */
function exchange(
  sandbox: Sandbox,
  transport: Transport,
  query: Buffer,
  address = '127.0.0.1',
): Promise<Buffer | undefined> {
  return new Promise((done, fail) => {
    if (transport === 'udp') {
      const socket = createSocket('udp4')
      const finish = (answer: Buffer | undefined) => {
        clearTimeout(timer)
        socket.close()
        done(answer)
      }
      const timer = setTimeout(() => finish(undefined), 300)
      socket.once('message', finish)
      socket.send(query, portOf(sandbox), address)
      return
    }
    const socket = connect(portOf(sandbox), address)
    const length = Buffer.alloc(2)
    length.writeUInt16BE(query.length)
    let received: Buffer = Buffer.alloc(0)
    socket.on('error', fail)
    socket.setTimeout(300, () => {
      socket.destroy()
      done(undefined)
    })
    socket.on('data', (piece) => {
      received = Buffer.concat([received, piece])
      if (received.length < 2 || received.length < 2 + received.readUInt16BE(0)) return
      socket.destroy()
      done(received.subarray(2))
    })
    // In single bytes: a server has to put messages together.
    for (const byte of Buffer.concat([length, query])) socket.write(Buffer.from([byte]))
  })
}

function opt(udpPayloadSize: number, ednsVersion = 0): OptAnswer {
  return {
    type: 'OPT',
    name: '.',
    udpPayloadSize,
    extendedRcode: 0,
    ednsVersion,
    flags: 0,
    flag_do: false,
    options: [],
  }
}

interface Ask {
  readonly transport?: Transport
  readonly edns?: OptAnswer
  readonly flags?: number
  readonly address?: string
}

async function ask(
  sandbox: Sandbox,
  name: string,
  type: string,
  { transport = 'udp', edns, flags = 0, address }: Ask = {},
): Promise<DecodedPacket> {
  const query: Packet = {
    type: 'query',
    id: 4711,
    flags,
    questions: [{ name, type: type as RecordType }],
    additionals: edns === undefined ? [] : [edns],
  }
  const answer = await exchange(sandbox, transport, encode(query), address)
  if (answer === undefined) throw new Error('no answer')
  return decode(answer)
}

const rcodeOf = (packet: DecodedPacket) => (packet.flags ?? 0) & 0xf
const textsOf = (packet: DecodedPacket) =>
  (packet.answers ?? []).flatMap((record) => (record.type === 'TXT' ? [String(record.data)] : []))
const typesOf = (records: DecodedPacket['answers']) =>
  (records ?? []).map(({ type, name }) => `${name} ${type}`)
const put = (sandbox: Sandbox, name: string, type: string, body: unknown) =>
  control(sandbox, 'PUT', `/dns/${name}/${type}`, body)

describe.each(TRANSPORTS)('the DNS server by %s', (transport) => {
  test('the server answers with authority for the records of a zone', async () => {
    const sandbox = await sandboxForTest()
    await put(sandbox, 'example.com', 'TXT', { values: ['one', 'two'], ttl: 17 })
    const answer = await ask(sandbox, 'eXample.com', 'TXT', { transport })
    expect([rcodeOf(answer), answer.flag_aa, answer.flag_tc, answer.id]).toEqual([0, true, false, 4711])
    expect(textsOf(answer)).toEqual(['one', 'two'])
    expect(answer.answers?.[0]).toMatchObject({ name: 'eXample.com', ttl: 17 })
    expect(answer.questions?.[0]).toMatchObject({ name: 'eXample.com', type: 'TXT' })
  })

  test('the server has SOA and NS for the zone, with loopback addresses', async () => {
    const sandbox = await sandboxForTest()
    const soa = await ask(sandbox, 'example.com', 'SOA', { transport })
    expect(soa.answers?.[0]).toMatchObject({
      type: 'SOA',
      data: { mname: 'ns1.sandbox-dns.test', minimum: 60 },
    })
    const ns = await ask(sandbox, 'example.com', 'NS', { transport })
    expect(ns.answers?.map((record) => record.type === 'NS' && record.data)).toEqual([
      'ns1.sandbox-dns.test',
      'ns2.sandbox-dns.test',
    ])
    expect(typesOf(ns.additionals)).toEqual(['ns1.sandbox-dns.test A', 'ns2.sandbox-dns.test A'])
    const address = await ask(sandbox, 'ns2.sandbox-dns.test', 'A', { transport })
    expect(address.answers?.[0]).toMatchObject({ data: '127.0.0.1' })
  })

  test.each([
    { what: 'a name that does not exist', name: 'nothing.example.com', rcode: 3 },
    { what: 'a type that does not exist', name: 'example.com', rcode: 0 },
    { what: 'a name that has only names below it', name: 'b.example.com', rcode: 0 },
  ])('the server denies $what with the SOA in the authority section', async ({ name, rcode }) => {
    const sandbox = await sandboxForTest()
    await put(sandbox, 'a.b.example.com', 'TXT', 'deep')
    const answer = await ask(sandbox, name, 'TXT', { transport })
    expect([rcodeOf(answer), answer.flag_aa]).toEqual([rcode, true])
    expect(answer.answers).toEqual([])
    expect(answer.authorities?.[0]).toMatchObject({ type: 'SOA', name: 'example.com', ttl: 60 })
  })

  test('the server refuses names under top-level domains that it does not serve', async () => {
    const sandbox = await sandboxForTest()
    const answer = await ask(sandbox, 'example.net', 'TXT', { transport })
    expect([rcodeOf(answer), answer.flag_aa]).toEqual([5, false])
    expect(rcodeOf(await ask(sandbox, 'net', 'DS', { transport }))).toBe(5)
    const held = await ask(sandbox, 'com', 'DS', { transport })
    expect([rcodeOf(held), typesOf(held.authorities)]).toEqual([0, ['. SOA']])
  })

  test.each(['AXFR', 'IXFR'])('the server refuses a zone transfer by %s', async (type) => {
    const sandbox = await sandboxForTest()
    const answer = await ask(sandbox, 'example.com', type, { transport })
    expect([rcodeOf(answer), answer.flag_aa, answer.authorities]).toEqual([5, false, []])
  })

  test('a resolution from the root finds each delegation, and unregistered domains are denied', async () => {
    const sandbox = await sandboxForTest()
    await api(sandbox, 'POST', '/domains/claim', { body: { name: 'mail.shop.co.uk' } })
    for (const [name, types] of [
      ['.', ['. SOA']],
      ['uk', ['uk SOA']],
      ['co.uk', []],
      ['shop.co.uk', ['shop.co.uk SOA']],
      ['mail.shop.co.uk', []],
    ] as const) {
      const answer = await ask(sandbox, name, 'SOA', { transport })
      expect([name, rcodeOf(answer) === 0 || name === 'mail.shop.co.uk', typesOf(answer.answers)]).toEqual([
        name,
        true,
        types,
      ])
    }
    const ns = await ask(sandbox, '.', 'NS', { transport })
    expect(typesOf(ns.answers)).toEqual(['. NS'])
    const unknown = await ask(sandbox, 'nobody.uk', 'TXT', { transport })
    expect(rcodeOf(unknown)).toBe(3)
    expect(unknown.authorities?.[0]).toMatchObject({ type: 'SOA', name: 'uk' })
  })

  test('the server follows a CNAME within its zones, and returns a dangling one and a loop unchanged', async () => {
    const sandbox = await sandboxForTest()
    await put(sandbox, 'there.example.com', 'TXT', 'found')
    await put(sandbox, 'a.example.com', 'CNAME', 'there.example.com')
    await put(sandbox, 'b.example.com', 'CNAME', 'gone.example.com')
    await put(sandbox, 'c.example.com', 'CNAME', 'd.example.com')
    await put(sandbox, 'd.example.com', 'CNAME', 'c.example.com')
    const found = await ask(sandbox, 'a.example.com', 'TXT', { transport })
    expect(typesOf(found.answers)).toEqual(['a.example.com CNAME', 'there.example.com TXT'])
    const dangling = await ask(sandbox, 'b.example.com', 'TXT', { transport })
    expect([rcodeOf(dangling), typesOf(dangling.answers)]).toEqual([3, ['b.example.com CNAME']])
    const loop = await ask(sandbox, 'c.example.com', 'TXT', { transport })
    expect(rcodeOf(loop)).toBe(0)
    expect(textsOf(loop)).toEqual([])
    const itself = await ask(sandbox, 'a.example.com', 'CNAME', { transport })
    expect(typesOf(itself.answers)).toEqual(['a.example.com CNAME'])
  })

  test('the server expands a wildcard unless the name exists', async () => {
    const sandbox = await sandboxForTest()
    await put(sandbox, '*.example.com', 'TXT', 'wild')
    await put(sandbox, 'a.b.example.com', 'A', '192.0.2.1')
    const covered = await ask(sandbox, 'x.y.example.com', 'TXT', { transport })
    expect(covered.answers?.[0]).toMatchObject({ name: 'x.y.example.com', type: 'TXT' })
    expect(textsOf(await ask(sandbox, 'a.b.example.com', 'TXT', { transport }))).toEqual([])
    expect(textsOf(await ask(sandbox, 'c.b.example.com', 'TXT', { transport }))).toEqual([])
  })

  test('the server refers to the name servers of a delegated zone', async () => {
    const sandbox = await sandboxForTest()
    await put(sandbox, 'sub.example.com', 'NS', 'ns.elsewhere.test')
    const answer = await ask(sandbox, 'a.sub.example.com', 'TXT', { transport })
    expect([rcodeOf(answer), answer.flag_aa, answer.answers]).toEqual([0, false, []])
    expect(typesOf(answer.authorities)).toEqual(['sub.example.com NS'])
  })

  test('the server answers malformed queries as the standard says', async () => {
    const sandbox = await sandboxForTest()
    const proper = encode({ type: 'query', id: 9, questions: [{ name: 'example.com', type: 'TXT' }] })
    const notify = Buffer.from(proper)
    notify.writeUInt8(4 << 3, 2)
    const two = encode({
      type: 'query',
      id: 9,
      questions: [
        { name: 'example.com', type: 'TXT' },
        { name: 'example.com', type: 'A' },
      ],
    })
    const chaos = Buffer.from(proper)
    chaos.writeUInt16BE(3, chaos.length - 2)
    for (const [query, rcode] of [
      [proper.subarray(0, proper.length - 3), 1],
      [notify, 4],
      [two, 1],
      [chaos, 5],
    ] as const) {
      const answer = await exchange(sandbox, transport, query)
      expect([answer?.readUInt16BE(0), (answer?.readUInt16BE(2) ?? 0) & 0xf]).toEqual([9, rcode])
    }
    const response = Buffer.from(proper)
    response.writeUInt8(0x80, 2)
    expect(await exchange(sandbox, transport, response)).toBeUndefined()
    expect(await exchange(sandbox, transport, Buffer.from([1, 2, 3]))).toBeUndefined()
    expect(rcodeOf(await ask(sandbox, 'example.com', 'SOA', { transport }))).toBe(0)
  })

  test.each([
    { trouble: 'servfail', rcode: 2 },
    { trouble: 'refused', rcode: 5 },
    { trouble: 'lame', rcode: 0 },
  ])('a zone can have the trouble $trouble', async ({ trouble, rcode }) => {
    const sandbox = await sandboxForTest()
    await control(sandbox, 'PUT', '/zones/example.com/trouble', { trouble })
    const answer = await ask(sandbox, 'example.com', 'SOA', { transport })
    expect([rcodeOf(answer), answer.flag_aa, answer.answers]).toEqual([rcode, false, []])
    await control(sandbox, 'PUT', '/zones/example.com/trouble', { trouble: null })
    expect((await ask(sandbox, 'example.com', 'SOA', { transport })).answers).toHaveLength(1)
  })

  test('as a resolver, the server still knows the name servers of a failing zone, and fails for the rest', async () => {
    const sandbox = await sandboxForTest()
    await control(sandbox, 'PUT', '/zones/example.com/trouble', { trouble: 'silent' })
    const asResolver = { transport, flags: 1 << 8 }
    expect((await ask(sandbox, 'example.com', 'NS', asResolver)).answers).toHaveLength(2)
    expect(rcodeOf(await ask(sandbox, 'example.com', 'TXT', asResolver))).toBe(2)
  })

  // Other systems give 127.0.0.2 to nobody.
  test.runIf(process.platform === 'linux')('the second name server of a zone can differ', async () => {
    const sandbox = await sandboxForTest()
    await api(sandbox, 'POST', '/domains/claim', { body: { name: 'example.com' } })
    const plant = (mistake: string) => control(sandbox, 'POST', '/claims/example.com/publish', { mistake })
    const serversOf = async () =>
      (await ask(sandbox, 'example.com', 'NS', { transport })).answers?.map(
        (record) => record.type === 'NS' && record.data,
      )
    const fromSecond = (type: string) =>
      ask(sandbox, 'example.com', type, { transport, address: '127.0.0.2' })
    const serial = (packet: DecodedPacket) => {
      const [record] = packet.answers ?? []
      return record?.type === 'SOA' ? (record.data.serial ?? 0) : 0
    }

    await plant('second_outdated')
    expect(await serversOf()).toEqual(['ns1.sandbox-dns.test', 'ns3.sandbox-dns.test'])
    expect(textsOf(await ask(sandbox, 'example.com', 'TXT', { transport }))).toHaveLength(1)
    expect(textsOf(await fromSecond('TXT'))).toEqual([])
    const first = await ask(sandbox, 'example.com', 'SOA', { transport })
    expect(serial(await fromSecond('SOA'))).toBeLessThan(serial(first))

    await plant('second_refused')
    expect(rcodeOf(await fromSecond('TXT'))).toBe(5)
    expect(textsOf(await ask(sandbox, 'example.com', 'TXT', { transport }))).toHaveLength(1)

    await plant('none')
    expect(await serversOf()).toEqual(['ns1.sandbox-dns.test', 'ns2.sandbox-dns.test'])
    expect(textsOf(await fromSecond('TXT'))).toHaveLength(1)
  })

  // Other systems give 127.0.0.3 to nobody.
  test.runIf(process.platform === 'linux')(
    'the registry has an address of its own, and refers to a zone whatever its name servers do',
    async () => {
      const sandbox = await sandboxForTest()
      await control(sandbox, 'PUT', '/zones/example.com/trouble', { trouble: 'silent' })
      const fromRegistry = (name: string, type: string) =>
        ask(sandbox, name, type, { transport, address: '127.0.0.3' })
      const ns = await ask(sandbox, 'com', 'NS', { transport })
      expect(ns.additionals?.map((record) => record.type === 'A' && record.data)).toEqual(['127.0.0.3'])
      const referral = await fromRegistry('mail.example.com', 'TXT')
      expect([rcodeOf(referral), referral.flag_aa, referral.answers]).toEqual([0, false, []])
      expect(typesOf(referral.authorities)).toEqual(['example.com NS', 'example.com NS'])
      expect(typesOf((await fromRegistry('example.com', 'DS')).authorities)).toEqual(['com SOA'])
      expect(typesOf((await fromRegistry('com', 'SOA')).answers)).toEqual(['com SOA'])
      expect(rcodeOf(await fromRegistry('nobody.com', 'SOA'))).toBe(3)
    },
  )

  test('a zone can be silent', async () => {
    const sandbox = await sandboxForTest()
    await control(sandbox, 'PUT', '/zones/example.com/trouble', { trouble: 'silent' })
    await expect(ask(sandbox, 'example.com', 'SOA', { transport })).rejects.toThrow('no answer')
  })
})

describe('the size of answers', () => {
  const long = Array.from({ length: 12 }, (_, n) => `${n}`.repeat(60))

  test.each([
    { what: 'without EDNS 512 bytes', ask: {}, truncated: true },
    { what: 'EDNS of 600 bytes', ask: { edns: opt(600) }, truncated: true },
    { what: 'EDNS of less than 512 bytes', ask: { edns: opt(100) }, truncated: true },
    { what: 'EDNS of 4096 bytes', ask: { edns: opt(4096) }, truncated: false },
    { what: 'TCP', ask: { transport: 'tcp' as const }, truncated: false },
  ])('the response $what has truncated: $truncated', async ({ ask: how, truncated }) => {
    const sandbox = await sandboxForTest()
    await put(sandbox, 'example.com', 'TXT', long)
    const answer = await ask(sandbox, 'example.com', 'TXT', how)
    expect(answer.flag_tc).toBe(truncated)
    expect(textsOf(answer)).toEqual(truncated ? [] : long)
  })

  test('EDNS is answered with EDNS, and not without', async () => {
    const sandbox = await sandboxForTest()
    expect(typesOf((await ask(sandbox, 'example.com', 'A', { edns: opt(1232) })).additionals)).toEqual([
      '. OPT',
    ])
    expect(typesOf((await ask(sandbox, 'example.com', 'A')).additionals)).toEqual([])
  })

  test('an unknown version of EDNS gives BADVERS', async () => {
    const sandbox = await sandboxForTest()
    const answer = await ask(sandbox, 'example.com', 'A', { edns: opt(1232, 1) })
    const edns = answer.additionals?.find((record): record is OptAnswer => record.type === 'OPT')
    expect([rcodeOf(answer), edns?.extendedRcode, edns?.ednsVersion]).toEqual([0, 1, 0])
  })

  test('recursion is available if desired', async () => {
    const sandbox = await sandboxForTest()
    const [without, withIt] = [
      await ask(sandbox, 'example.com', 'A'),
      await ask(sandbox, 'example.com', 'A', { flags: 1 << 8 }),
    ]
    expect([without.flag_rd, without.flag_ra, withIt.flag_rd, withIt.flag_ra]).toEqual([
      false,
      false,
      true,
      true,
    ])
  })
})

describe('the zone editor', () => {
  test('the zone editor accepts a string, a list, an object, and records of several strings, and the serial grows', async () => {
    const sandbox = await sandboxForTest()
    const serial = async () => {
      const [record] = (await ask(sandbox, 'example.com', 'SOA')).answers ?? []
      return record?.type === 'SOA' ? (record.data.serial ?? 0) : 0
    }
    let before = await serial()
    for (const [body, values] of [
      ['one', ['one']],
      [
        ['one', 'two'],
        ['one', 'two'],
      ],
      [{ value: 'one' }, ['one']],
      [{ values: ['two'], ttl: 5 }, ['two']],
      [{ records: [['first ', 'second'], 'other'] }, ['first second', 'other']],
      ['ü “quoted” \u00a0', ['ü “quoted” \u00a0']],
      ['x'.repeat(700), ['x'.repeat(700)]],
    ] as const) {
      expect((await put(sandbox, 'Example.com', 'txt', body)).body).toMatchObject({
        name: 'example.com',
        values,
      })
      expect((await control(sandbox, 'GET', '/dns/example.com/TXT')).body).toMatchObject({ values })
      const after = await serial()
      expect(after).toBeGreaterThan(before)
      before = after
    }
    const answer = await ask(sandbox, 'example.com', 'TXT', { transport: 'tcp' })
    const [record] = answer.answers ?? []
    const strings =
      record?.type === 'TXT' && Array.isArray(record.data) ? record.data.map(({ length }) => length) : []
    expect(strings).toEqual([255, 255, 190])
  })

  test('the zone editor removes records, and reports if there are none', async () => {
    const sandbox = await sandboxForTest()
    await put(sandbox, 'example.com', 'TXT', 'one')
    expect((await control(sandbox, 'DELETE', '/dns/example.com/TXT')).status).toBe(204)
    expect((await control(sandbox, 'DELETE', '/dns/example.com/TXT')).status).toBe(404)
    expect((await control(sandbox, 'GET', '/dns/example.com/TXT')).status).toBe(404)
    expect(textsOf(await ask(sandbox, 'example.com', 'TXT'))).toEqual([])
  })

  test('a zone whose records were all removed still answers', async () => {
    const sandbox = await sandboxForTest()
    for (const type of ['A', 'MX', 'NS']) await control(sandbox, 'DELETE', `/dns/example.com/${type}`)
    expect(rcodeOf(await ask(sandbox, 'example.com', 'TXT'))).toBe(0)
    expect(rcodeOf(await ask(sandbox, 'x.example.com', 'TXT'))).toBe(3)
  })

  test.each([
    ['com', 'TXT', 'one'],
    ['a..com', 'TXT', 'one'],
    [`${'a'.repeat(64)}.com`, 'TXT', 'one'],
    ['example.com', 'SRV', 'one'],
    ['example.com', 'TXT', 5],
    ['example.com', 'TXT', []],
    ['example.com', 'A', '300.1.1.1'],
    ['example.com', 'AAAA', 'nonsense'],
    ['example.com', 'CNAME', 'nowhere'],
    ['example.com', 'TXT', { value: 'one', ttl: -1 }],
  ])('the zone editor refuses %s %s %j', async (name, type, body) => {
    const sandbox = await sandboxForTest()
    expect((await put(sandbox, name, type, body)).status).toBe(422)
  })
})

test('both ports can be chosen; a port in use is an error and leaves nothing open', async () => {
  const first = await sandboxForTest()
  await expect(sandboxForTest({ dnsPort: portOf(first) })).rejects.toMatchObject({ code: 'EADDRINUSE' })
  const port = Number(new URL(first.baseUrl).port)
  await expect(sandboxForTest({ port })).rejects.toMatchObject({ code: 'EADDRINUSE' })
  await first.close()
  const again = await sandboxForTest({ port, dnsPort: portOf(first) })
  expect([again.baseUrl, again.dns]).toEqual([first.baseUrl, first.dns])
})
