import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { Message, ResourceRecord } from '../../../src/dns/wire/message.ts'
import { MAX_NAME_LENGTH } from '../../../src/dns/wire/name.ts'
import { MAX_ALIASES, readTxt } from '../../../src/dns/wire/txt-answer.ts'

const message = (...answers: ResourceRecord[]): Message => ({
  rcode: 'NOERROR',
  aa: true,
  tc: false,
  ra: false,
  edns: true,
  answers,
  authority: [],
  additional: [],
})
const alias = (type: 'CNAME' | 'DNAME', name: string, target: string): ResourceRecord => ({
  type,
  name,
  target,
  ttl: 60,
})
const txt = (name: string, text: string): ResourceRecord => ({
  type: 'TXT',
  name,
  ttl: 300,
  strings: [Buffer.from(text)],
})

describe('the TXT set of an answer', () => {
  test('is found along a CNAME and a DNAME', () => {
    const answer = message(
      alias('CNAME', 'a.example', 'b.old.example'),
      alias('DNAME', 'old.example', 'new.example'),
      txt('b.new.example', 'here'),
    )
    expect(readTxt(answer, 'a.example')).toMatchObject({
      aliases: ['b.old.example', 'b.new.example'],
      loop: false,
      values: [{ bytes: Buffer.from('here'), strings: [Buffer.from('here')] }],
      ttl: 300,
    })
  })

  test('is found at the root if a DNAME leads there', () => {
    const answer = message(alias('DNAME', 'old.example', '.'), txt('a.b', 'here'))
    expect(readTxt(answer, 'a.b.old.example')).toMatchObject({ aliases: ['a.b'], values: [{}] })
  })

  test.each([
    ['old.example', 'old.example'],
    ['old.example', 'new.old.example'],
    ['.', 'example'],
  ])('ends at once if the DNAME at %s points to %s, below itself', (owner, target) => {
    const { loop, aliases } = readTxt(message(alias('DNAME', owner, target)), 'a.old.example')
    expect(loop).toBe(true)
    expect(aliases).toHaveLength(1)
  })

  test('is found after as many aliases as resolvers follow, and no more', () => {
    const chain = (length: number) => {
      const names = Array.from({ length: length + 1 }, (_, index) => `n${index}.example`)
      const links = names.slice(1).map((name, index) => alias('CNAME', names[index] ?? '', name))
      return readTxt(message(...links, txt(names.at(-1) ?? '', 'here')), 'n0.example')
    }
    expect(chain(MAX_ALIASES)).toMatchObject({ loop: false, values: [{}] })
    expect(chain(MAX_ALIASES + 1)).toMatchObject({ loop: true, values: [] })
  })

  test('is searched through any mix of aliases, up to the first name that is too long', () => {
    const name = fc
      .array(fc.constantFrom('a', 'b', 'c', 'x'.repeat(60)), { minLength: 1, maxLength: 4 })
      .map((labels) => labels.join('.'))
    const record = fc
      .tuple(fc.constantFrom('CNAME' as const, 'DNAME' as const), fc.oneof(name, fc.constant('.')), name)
      .map(([type, owner, target]) => alias(type, owner, target))
    fc.assert(
      fc.property(fc.array(record, { maxLength: 12 }), name, (records, start) => {
        const { aliases } = readTxt(message(...records), start)
        expect(aliases.length).toBeLessThanOrEqual(MAX_ALIASES + 1)
        for (const each of aliases.slice(0, -1)) expect(each.length).toBeLessThanOrEqual(MAX_NAME_LENGTH)
      }),
    )
  })
})
