import packet from 'dns-packet'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { type DnsQuery, decodeResponse, encodeQuery } from '../../../src/dns/wire/message.ts'
import { EDNS } from '../fake-dns.ts'

const question: DnsQuery = { name: 'example.com', type: 'TXT' }

function answerWith(change: Partial<packet.Packet> = {}): Buffer {
  return packet.encode({
    type: 'response',
    id: 7,
    flags: packet.AUTHORITATIVE_ANSWER,
    questions: [{ name: 'Example.COM', type: 'TXT' }],
    answers: [{ name: 'example.com', type: 'TXT', ttl: 60, data: ['one', Buffer.from([0xff, 0])] }],
    ...change,
  })
}

test('a DNS response that repeats the question in another letter case is decoded, with character-strings as bytes', () => {
  const message = decodeResponse(answerWith(), 7, question)
  expect(message).toMatchObject({ rcode: 'NOERROR', aa: true, tc: false, ra: false })
  expect(message?.answers).toEqual([
    {
      type: 'TXT',
      name: 'example.com',
      ttl: 60,
      strings: [Buffer.from('one'), Buffer.from([0xff, 0])],
    },
  ])
})

test('the extended DNS error (RFC 8914) of a response is decoded to its name and text', () => {
  const option = { code: 15, data: Buffer.from('\0\x08not before 2027') } as unknown as packet.PacketOpt
  const answer = answerWith({ additionals: [{ ...EDNS, flag_do: false, options: [option] }] })
  expect(decodeResponse(answer, 7, question)?.explanation).toBe('signature not yet valid: not before 2027')
  expect(decodeResponse(answerWith(), 7, question)?.explanation).toBeNull()
})

test('the negative TTL is the smaller of the TTL and the MINIMUM field of the SOA record', () => {
  const soa = {
    mname: 'ns.example.com',
    rname: 'h.example.com',
    serial: 5,
    refresh: 1,
    retry: 1,
    expire: 1,
  }
  const negative = (ttl: number, minimum: number) =>
    decodeResponse(
      answerWith({
        answers: [],
        authorities: [{ name: 'example.com', type: 'SOA', ttl, data: { ...soa, minimum } }],
      }),
      7,
      question,
    )?.authority[0]
  expect(negative(30, 600)).toMatchObject({ soa: { negativeTtl: 30, serial: 5 } })
  expect(negative(3600, 600)).toMatchObject({ soa: { negativeTtl: 600 } })
})

test('a DNS response with the TC bit is decoded even if it is cut off in the middle of a record', () => {
  const cut = Buffer.from(answerWith({ flags: packet.TRUNCATED_RESPONSE }).subarray(0, -4))
  expect(decodeResponse(cut, 7, question)).toMatchObject({ tc: true })
})

test('all 4,500 records of a large DNS response are decoded', () => {
  const record: packet.Answer = { name: 'a', type: 'TXT', ttl: 60, data: 'x' }
  const wire = answerWith({ answers: Array.from({ length: 4500 }, () => record) })
  expect(decodeResponse(wire, 7, question)?.answers).toHaveLength(4500)
})

test.each([
  ['FORMERR', [0x80, 1]],
  ['REFUSED', [0x81, 5]],
])('a DNS response with the rcode %s is decoded even without a question section', (rcode, flags) => {
  const bare = Buffer.from([0, 7, ...flags, 0, 0, 0, 0, 0, 0, 0, 0])
  expect(decodeResponse(bare, 7, question)).toMatchObject({ rcode, answers: [] })
})

test.each<[string, Buffer]>([
  ['another id', answerWith({ id: 8 })],
  ['the QR bit of a query', answerWith({ type: 'query' })],
  ['another question name', answerWith({ questions: [{ name: 'example.org', type: 'TXT' }] })],
  ['another question type', answerWith({ questions: [{ name: 'example.com', type: 'A' }] })],
  ['another question class', answerWith({ questions: [{ name: 'example.com', type: 'TXT', class: 'CH' }] })],
  ['two questions', answerWith({ questions: [question, question] })],
  ['no question', answerWith({ questions: [] })],
  ['the last byte missing', Buffer.from(answerWith().subarray(0, -1))],
  ['no bytes', Buffer.alloc(0)],
  [
    'a name that points at itself',
    Buffer.from([0, 7, 0x84, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0xc0, 12, 0, 16, 0, 1]),
  ],
])('a DNS message with %s is not decoded as the response', (_title, wire) => {
  expect(decodeResponse(wire, 7, question)).toBeUndefined()
})

test('decoding a DNS response with random byte changes never throws and never hangs', () => {
  const whole = answerWith({
    authorities: [{ name: 'example.com', type: 'NS', data: 'ns.example.com' }],
    additionals: [{ name: 'ns.example.com', type: 'A', data: '192.0.2.1' }],
  })
  const changes = fc.array(fc.tuple(fc.nat(whole.length - 1), fc.nat(255)), { minLength: 1, maxLength: 12 })
  fc.assert(
    fc.property(changes, (places) => {
      const wire = Buffer.from(whole)
      for (const [at, byte] of places) wire[at] = byte
      decodeResponse(wire, 7, question)
    }),
    { numRuns: 3000 },
  )
})

test('an encoded DNS query has the question and flags, and an EDNS record only if requested', () => {
  const flags = { recursionDesired: true, checkingDisabled: true }
  const query = packet.decode(Buffer.from(encodeQuery(513, { ...question, ...flags }, 1232)))
  expect(query).toMatchObject({
    id: 513,
    flag_rd: true,
    flag_cd: true,
    questions: [{ name: 'example.com', type: 'TXT' }],
    additionals: [{ type: 'OPT', udpPayloadSize: 1232 }],
  })
  const plain = packet.decode(Buffer.from(encodeQuery(1, question, undefined)))
  expect(plain).toMatchObject({ flag_rd: false, flag_cd: false, additionals: [] })
})
