import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { DnsReply, ResourceRecord } from '../../../src/dns/wire/message.ts'
import { MAX_CNAMES, readTxtAnswer } from '../../../src/dns/wire/txt-answer.ts'

const message = (...answers: ResourceRecord[]): DnsReply => ({
  rcode: 'NOERROR',
  aa: true,
  tc: false,
  ra: false,
  explanation: null,
  answers,
  authority: [],
  additional: [],
})
const alias = (name: string, target: string): ResourceRecord => ({ type: 'CNAME', name, target, ttl: 60 })
const txt = (name: string, text: string): ResourceRecord => ({
  type: 'TXT',
  name,
  ttl: 300,
  strings: [Buffer.from(text)],
})

test('a TXT set is read at the end of a CNAME chain, with the targets of the chain', () => {
  const answer = message(alias('a.example', 'b.example'), alias('b.example', 'c.net'), txt('c.net', 'here'))
  expect(readTxtAnswer(answer, 'a.example')).toMatchObject({
    aliases: ['b.example', 'c.net'],
    values: [{ bytes: Buffer.from('here'), strings: [Buffer.from('here')] }],
    ttl: 300,
  })
})

test('a TXT set is read behind MAX_CNAMES CNAME records, but not behind one more', () => {
  const chain = (length: number) => {
    const names = Array.from({ length: length + 1 }, (_, index) => `n${index}.example`)
    const links = names.slice(1).map((name, index) => alias(names[index] ?? '', name))
    return readTxtAnswer(message(...links, txt(names.at(-1) ?? '', 'here')), 'n0.example')
  }
  expect(chain(MAX_CNAMES)).toMatchObject({ values: [{}] })
  expect(chain(MAX_CNAMES + 1)).toMatchObject({ values: [] })
})

test('reading a TXT set terminates for random graphs of CNAME records, including loops', () => {
  const name = fc.constantFrom('a', 'b', 'c', 'd')
  const records = fc.array(fc.tuple(name, name), { maxLength: 12 })
  fc.assert(
    fc.property(records, name, (pairs, start) => {
      const { aliases, values } = readTxtAnswer(message(...pairs.map((pair) => alias(...pair))), start)
      expect([aliases.length <= 5, values]).toEqual([true, []])
    }),
  )
})
