import { createSocket } from 'node:dgram'
import { connect } from 'node:net'
import { type DecodedPacket, decode, encode, type RecordType } from 'dns-packet'
import { describe, expect, test } from 'vitest'
import type { Sandbox } from '../../src/sandbox/sandbox.ts'
import { sandboxForTest } from './start-sandbox.ts'
import { api, control } from './talk.ts'

type Transport = 'udp' | 'tcp'

const portOf = ({ dns }: Sandbox) => Number(dns.split(':')[1])

/** Sends a DNS message; resolves with the bytes of the response, or undefined if none arrives. */
function exchange(sandbox: Sandbox, transport: Transport, query: Buffer): Promise<Buffer | undefined> {
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
      socket.send(query, portOf(sandbox), '127.0.0.1')
      return
    }
    const socket = connect(portOf(sandbox), '127.0.0.1')
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
    // Send single bytes: TCP may split a message anywhere, and the server must reassemble it.
    for (const byte of Buffer.concat([length, query])) socket.write(Buffer.from([byte]))
  })
}

interface Ask {
  readonly transport?: Transport
  /** UDP payload size in the query's EDNS record; absent for a query without EDNS. */
  readonly edns?: number
  readonly recursion?: boolean
}

/** Queries the sandbox; returns the decoded response, with each record as "name type". @throws if no response arrives */
async function ask(sandbox: Sandbox, name: string, type: string, how: Ask = {}) {
  const { transport = 'udp', edns, recursion = false } = how
  const opt = {
    type: 'OPT',
    name: '.',
    udpPayloadSize: edns ?? 0,
    extendedRcode: 0,
    ednsVersion: 0,
    flags: 0,
  }
  const query = encode({
    type: 'query',
    id: 4711,
    flags: recursion ? 1 << 8 : 0,
    questions: [{ name, type: type as RecordType }],
    additionals: edns === undefined ? [] : [{ ...opt, flag_do: false, options: [] } as never],
  })
  const answer = await exchange(sandbox, transport, query)
  if (answer === undefined) throw new Error('no answer')
  const packet = decode(answer)
  const shown = (records: DecodedPacket['answers']) => (records ?? []).map((one) => `${one.name} ${one.type}`)
  return {
    packet,
    rcode: (packet.flags ?? 0) & 0xf,
    aa: packet.flag_aa,
    answers: shown(packet.answers),
    authorities: shown(packet.authorities),
    additionals: shown(packet.additionals),
    texts: (packet.answers ?? []).flatMap((one) => (one.type === 'TXT' ? [String(one.data)] : [])),
  }
}

const put = (sandbox: Sandbox, name: string, ...values: string[]) =>
  control(sandbox, 'PUT', `/dns/${name}/TXT`, { values })

async function planted(mistake: string): Promise<Sandbox> {
  const sandbox = await sandboxForTest()
  await api(sandbox, 'POST', '/domains/claim', { body: { name: 'mail.shop.co.uk' } })
  await control(sandbox, 'POST', '/claims/mail.shop.co.uk/publish', { mistake })
  return sandbox
}

describe.each<Transport>(['udp', 'tcp'])('the DNS server by %s', (transport) => {
  const how = { transport }

  test('the DNS server of the sandbox has SOA and NS records of each zone from the root down', async () => {
    const sandbox = await planted('none')
    for (const zone of ['.', 'uk', 'shop.co.uk']) {
      expect(await ask(sandbox, zone, 'SOA', how)).toMatchObject({
        rcode: 0,
        aa: true,
        answers: [`${zone} SOA`],
      })
      const { packet, additionals } = await ask(sandbox, zone, 'NS', how)
      const hosts = packet.answers?.map((record) => record.type === 'NS' && record.data)
      expect(additionals).toEqual(hosts?.map((host) => `${host} A`))
      for (const record of packet.additionals ?? []) expect(record).toMatchObject({ data: '127.0.0.1' })
    }
    for (const between of ['co.uk', 'mail.shop.co.uk'])
      expect(await ask(sandbox, between, 'SOA', how)).toMatchObject({ rcode: 0, aa: true, answers: [] })
    for (const [name, parent] of [
      ['uk', '.'],
      ['shop.co.uk', 'uk'],
    ] as const)
      expect(await ask(sandbox, name, 'DS', how)).toMatchObject({ rcode: 0, authorities: [`${parent} SOA`] })
    const denied = { rcode: 3, aa: true, authorities: ['uk SOA'] }
    expect(await ask(sandbox, 'nobody.uk', 'TXT', how)).toMatchObject(denied)
  })

  test('the DNS server of the sandbox repeats the letter case of the question in its answer', async () => {
    const sandbox = await planted('cname')
    await put(sandbox, 'shop.co.uk', 'one', 'two')
    const answer = await ask(sandbox, 'sHop.co.uk', 'TXT', how)
    expect(answer).toMatchObject({
      rcode: 0,
      aa: true,
      texts: ['one', 'two'],
      answers: Array(2).fill('sHop.co.uk TXT'),
    })
    expect(answer.packet).toMatchObject({ id: 4711, flag_tc: false, questions: [{ name: 'sHop.co.uk' }] })
    expect(await ask(sandbox, 'mail.shop.co.uk', 'TXT', how)).toMatchObject({
      rcode: 0,
      answers: ['mail.shop.co.uk CNAME'],
      authorities: ['sandbox-dns.test SOA'],
    })
    expect((await ask(sandbox, 'mail.shop.co.uk', 'A', how)).answers).toHaveLength(2)
  })

  test.each([
    ['a name that does not exist', 'nothing.example.com', 'TXT', 3],
    ['a type that does not exist', 'a.b.example.com', 'A', 0],
    ['a name with records only below it', 'b.example.com', 'TXT', 0],
  ])('the negative response for %s has the SOA record as authority', async (_what, name, type, rcode) => {
    const sandbox = await sandboxForTest()
    await put(sandbox, 'a.b.example.com', 'deep')
    const denied = await ask(sandbox, name, type, how)
    expect(denied).toMatchObject({ rcode, aa: true, answers: [], authorities: ['example.com SOA'] })
    expect(denied.packet.authorities?.[0]).toMatchObject({ ttl: 60, data: { minimum: 60 } })
  })

  test('the DNS server of the sandbox expands a wildcard, but neither for an empty non-terminal nor below it', async () => {
    const sandbox = await sandboxForTest()
    await put(sandbox, '*.example.com', 'wild')
    await put(sandbox, 'a.b.example.com', 'deep')
    expect(await ask(sandbox, 'x.y.example.com', 'TXT', how)).toMatchObject({ texts: ['wild'] })
    for (const name of ['b.example.com', 'c.b.example.com'])
      expect(await ask(sandbox, name, 'TXT', how)).toMatchObject({ texts: [] })
  })

  test('the DNS server of the sandbox answers REFUSED for an unknown top-level domain and names below it', async () => {
    const sandbox = await sandboxForTest()
    for (const [name, type] of [
      ['example.net', 'TXT'],
      ['net', 'NS'],
    ] as const)
      expect(await ask(sandbox, name, type, how)).toMatchObject({ rcode: 5, aa: false, answers: [] })
  })

  test('the DNS server of the sandbox does not respond to malformed queries, NOTIFY messages or responses', async () => {
    const sandbox = await sandboxForTest()
    const proper = encode({ type: 'query', id: 9, questions: [{ name: 'example.com', type: 'TXT' }] })
    const notify = Buffer.from(proper)
    notify.writeUInt8(4 << 3, 2)
    const response = Buffer.from(proper)
    response.writeUInt8(0x80, 2)
    for (const garbage of [notify, response, Buffer.from([1, 2, 3]), proper.subarray(0, proper.length - 3)])
      expect(await exchange(sandbox, transport, garbage)).toBeUndefined()
    expect((await ask(sandbox, 'example.com', 'SOA', how)).rcode).toBe(0)
  })

  test.each([
    ['refused', 5],
    ['lame', 0],
    ['silent', undefined],
  ])(
    'with the zone fault "%s", the sandbox gives a TXT query no record or no response, but an SOA query a referral',
    async (mistake, rcode) => {
      const sandbox = await planted(mistake)
      const asked = ask(sandbox, 'mail.shop.co.uk', 'TXT', how)
      if (rcode === undefined) await expect(asked).rejects.toThrow('no answer')
      else expect(await asked).toMatchObject({ rcode, aa: false, answers: [] })
      const referral = await ask(sandbox, 'mail.shop.co.uk', 'SOA', how)
      expect(referral).toMatchObject({
        rcode: 0,
        aa: false,
        answers: [],
        authorities: Array(2).fill('shop.co.uk NS'),
      })
      expect(referral.additionals).toEqual(['ns1.sandbox-dns.test A', 'ns2.sandbox-dns.test A'])
      const asResolver = { transport, recursion: true }
      expect((await ask(sandbox, 'shop.co.uk', 'NS', asResolver)).answers).toHaveLength(2)
      expect((await ask(sandbox, 'mail.shop.co.uk', 'TXT', asResolver)).rcode).toBe(2)
    },
  )
})

test('with the zone fault "cached", the resolver denies a record that the name servers have', async () => {
  const sandbox = await planted('cached')
  expect((await ask(sandbox, 'mail.shop.co.uk', 'TXT')).texts).toHaveLength(1)
  const old = await ask(sandbox, 'mail.shop.co.uk', 'TXT', { recursion: true })
  expect(old).toMatchObject({ rcode: 0, aa: false, texts: [], authorities: ['shop.co.uk SOA'] })
  expect([old.packet.flag_rd, old.packet.flag_ra]).toEqual([true, true])
  expect((await ask(sandbox, 'mail.shop.co.uk', 'A')).packet.flag_ra).toBe(false)
})

test.each([
  ['without EDNS', {}, true],
  ['with EDNS of 600 bytes', { edns: 600 }, true],
  ['with EDNS of less than 512 bytes', { edns: 100 }, true],
  ['with EDNS of 4096 bytes', { edns: 4096 }, false],
  ['over TCP', { transport: 'tcp' as const }, false],
])('the sandbox answers a TXT query %s for 1 kB with the TC bit %s', async (_what, how: Ask, truncated) => {
  const sandbox = await sandboxForTest()
  const long = Array.from({ length: 12 }, (_, n) => `${n}`.repeat(60))
  await put(sandbox, 'example.com', ...long)
  const { packet, texts, additionals } = await ask(sandbox, 'example.com', 'TXT', how)
  expect([packet.flag_tc, texts]).toEqual([truncated, truncated ? [] : long])
  expect(additionals).toEqual('edns' in how ? ['. OPT'] : [])
})

test('each replacement of TXT records by the control API of the sandbox increases the SOA serial', async () => {
  const sandbox = await sandboxForTest()
  let before = 0
  for (const values of [['one', 'ü “two” \u00a0'], ['x'.repeat(700)]]) {
    expect((await control(sandbox, 'PUT', '/dns/Example.com/TXT', { values })).status).toBe(204)
    const [record] = (await ask(sandbox, 'example.com', 'SOA')).packet.answers ?? []
    const serial = record?.type === 'SOA' ? (record.data.serial ?? 0) : 0
    expect(serial).toBeGreaterThan(before)
    before = serial
  }
  const [long] = (await ask(sandbox, 'example.com', 'TXT', { transport: 'tcp' })).packet.answers ?? []
  expect(long?.type === 'TXT' && Array.isArray(long.data) && long.data.map(({ length }) => length)).toEqual([
    255, 255, 190,
  ])
  expect((await control(sandbox, 'DELETE', '/dns/example.com/TXT')).status).toBe(204)
  expect((await control(sandbox, 'DELETE', '/dns/example.com/TXT')).status).toBe(404)
  expect((await ask(sandbox, 'example.com', 'TXT')).texts).toEqual([])
})

test.each([
  ['com', { values: ['one'] }],
  ['a..com', { values: ['one'] }],
  [`${'a'.repeat(64)}.com`, { values: ['one'] }],
  ['example.com', ['one']],
  ['example.com', { values: [] }],
  ['example.com', { values: 'one' }],
  ['example.com', { values: [['one']] }],
])('a control request to set the TXT records of %s to %j gets status 422', async (name, body) => {
  const sandbox = await sandboxForTest()
  expect((await control(sandbox, 'PUT', `/dns/${name}/TXT`, body)).status).toBe(422)
})

test('the sandbox listens on the chosen HTTP and DNS ports, or fails to start if one of them is in use', async () => {
  const first = await sandboxForTest()
  await expect(sandboxForTest({ dnsPort: portOf(first) })).rejects.toMatchObject({ code: 'EADDRINUSE' })
  const port = Number(new URL(first.baseUrl).port)
  await expect(sandboxForTest({ port })).rejects.toMatchObject({ code: 'EADDRINUSE' })
  await first.close()
  const again = await sandboxForTest({ port, dnsPort: portOf(first) })
  expect([again.baseUrl, again.dns]).toEqual([first.baseUrl, first.dns])
})
