import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  quoteTxtStrings,
  quoteTxtValue,
  requireRecord,
  type TxtRecord,
  toZoneFileLine,
} from '../../src/claims/record.ts'
import { claimOf, createWorld } from './world.ts'

const record: TxtRecord = { name: 'app.example.com', value: 'prefix=token', ttl: undefined }

/** Parses the strings of a zone file, as a DNS server does (RFC 1035 section 5.1). */
function parseStrings(text: string): Buffer[] {
  return [...text.matchAll(/"((?:[^"\\]|\\.)*)"/gs)].map(([, inner = '']) => {
    const bytes: number[] = []
    for (let at = 0; at < inner.length; at += 1) {
      const digits = /^\\(\d{3})/.exec(inner.slice(at))?.[1]
      if (digits !== undefined) {
        bytes.push(Number(digits))
        at += 3
      } else {
        if (inner[at] === '\\') at += 1
        bytes.push(inner.charCodeAt(at))
      }
    }
    return Buffer.from(bytes)
  })
}

test('the strings that quoteTxtValue writes for an ASCII value have at most 255 bytes each, and parse back to that value', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary-ascii', minLength: 1, maxLength: 700 }), (value) => {
      const strings = parseStrings(quoteTxtValue(value))
      expect(Buffer.concat(strings).toString()).toBe(Buffer.from(value).toString())
      for (const piece of strings) expect(piece.length).toBeLessThanOrEqual(255)
    }),
    { numRuns: 1000 },
  )
})

test('a TXT value is quoted for a zone file with escaped quotation marks, backslashes and bytes outside of ASCII', () => {
  expect(quoteTxtValue('a"b\\c')).toBe('"a\\"b\\\\c"')
  expect(quoteTxtStrings([Buffer.from('é')])).toBe('"\\195\\169"')
})

describe('the record of a claim', () => {
  const claim = {
    name: 'example.com',
    record: { type: 'TXT', name: 'example.com.', value: 'a=b', ttl: 'Auto' },
  }

  test('the record of a claim has a name without the trailing dot, and a TTL unless the service sends Auto', () => {
    expect(requireRecord(claim)).toEqual({ name: 'example.com', value: 'a=b', ttl: undefined })
    expect(requireRecord({ ...claim, record: { ...claim.record, ttl: '600' } }).ttl).toBe(600)
  })

  test("a claim's record has no TTL if the service sends a TTL of 0 or above the maximum of DNS", () => {
    for (const ttl of ['9'.repeat(38), '2147483648', '0'])
      expect(requireRecord({ ...claim, record: { ...claim.record, ttl } }).ttl).toBeUndefined()
  })

  test("the record of a claim without a record name is at the claim's domain", () => {
    expect(requireRecord({ name: 'example.com', record: { value: 'a=b' } }).name).toBe('example.com')
  })

  test.each([
    {},
    { record: null },
    { ...claim, record: { ...claim.record, value: null } },
    { ...claim, record: { ...claim.record, type: 'CNAME' } },
  ])('requireRecord throws record_missing for a record that is absent, empty or not TXT: %j', (broken) => {
    expect(() => requireRecord(broken)).toThrow(expect.objectContaining({ code: 'record_missing', exit: 7 }))
  })
})

test('the zone file line of a record without a TTL has a TTL of 300 and the quoted value', () => {
  expect(toZoneFileLine(record)).toBe('app.example.com.\t300\tIN\tTXT\t"prefix=token"')
})

test('a record name with a line break, shell or option syntax, an empty label, an invisible letter or eight accents on a letter is rejected', () => {
  for (const name of [
    'example.com\nupdate delete example.com',
    'a;b.example',
    '\u001b[2Jx.example',
    '$(id).example',
    '--help',
    'app.-x.example',
    'a..example',
    'exam\u3164ple.com',
    'a\u0301\u0301\u0301\u0301\u0301\u0301\u0301\u0301.example',
  ]) {
    expect(() => requireRecord({ name: 'example.com', record: { type: 'TXT', name, value: 'p=t' } })).toThrow(
      /not a valid record name/,
    )
  }
})

describe('limits for the record of a claim', () => {
  const of = (domain: string | undefined, name: string, value = 'p=t') =>
    requireRecord({ ...(domain === undefined ? {} : { name: domain }), record: { type: 'TXT', name, value } })

  test.each([
    ['example.com', 'example.com'],
    ['example.com', 'Example.COM.'],
    ['Example.com.', '_prefix.example.com'],
    ['bücher.example', 'xn--bcher-kva.example'],
    ['xn--bcher-kva.example', '_prefix.BÜCHER.example'],
  ])('a claim of the domain %s may have its record at the name %s', (domain, name) => {
    expect(of(domain, name).value).toBe('p=t')
  })

  test.each([
    ['example.com', 'victim.org'],
    ['example.com', '_acme-challenge.victim.org'],
    ['example.com', 'com'],
    ['example.com', 'notexample.com'],
    ['app.example.com', 'example.com'],
    ['example.com', '_prefix'],
    ['bücher.example', 'bucher.example'],
    [undefined, 'example.com'],
  ])('a claim with the domain name %s is rejected if its record is at %s', (domain, name) => {
    expect(() => of(domain, name)).toThrow(
      expect.objectContaining({
        code: 'unexpected_answer',
        exit: 7,
        message: expect.stringContaining("isn't within"),
      }),
    )
  })

  test.each([
    '_acme-challenge.example.com',
    '_ACME-Challenge.app.example.com.',
    '_validation-contactemail.example.com',
    '_dmarc.example.com',
    's1._domainkey.example.com',
    '_smtp._tls.example.com',
    '_atproto.example.com',
    '_bimi.example.com',
  ])('a claim is rejected if the name of its record has a label that other services trust: %s', (name) => {
    expect(() => of('example.com', name)).toThrow(
      expect.objectContaining({ code: 'unexpected_answer', message: expect.stringContaining('reserved') }),
    )
  })

  test.each([
    'token',
    '=token',
    'v=spf1 include:evil.example -all',
    'V=DMARC1; p=none',
    'p=t\nupdate delete',
    'p=$(id)',
    ...Array.from('$();&|*?#!~{}%,@:^\'"`\\<> ', (character) => `p=a${character}b`),
    'p=t===',
    `p=${'t'.repeat(65_278)}`,
  ])('a claim is rejected if its TXT value is %j, not a prefix=token that fits into a record', (value) => {
    expect(() => of('example.com', 'example.com', value)).toThrow(
      expect.objectContaining({ code: 'unexpected_answer', exit: 7 }),
    )
  })
})

test.each([
  ['value', /^prefix=token-1\nprefix=token-2\n$/],
  ['zone', /^d1\.com\.\t300\tIN\tTXT\t"prefix=token-1"\nd2\.com\.\t300\tIN\tTXT\t"prefix=token-2"\n$/],
])('`claims record` for two claims prints one line per record with --format %s', async (format, expected) => {
  const world = createWorld({
    respond(request) {
      const domain_id = request.split('/')[2] ?? ''
      const record = { type: 'TXT', name: `${domain_id}.com`, value: `prefix=token-${domain_id.slice(1)}` }
      return claimOf({ domain_id, name: record.name, record: { ...record, ttl: 'Auto' } })
    },
  })
  for (const id of ['d1', 'd2']) await world.run('claims', 'get', id)
  const line = ['claims', 'record', 'd1.com', 'd2.com', '--jobs', '1', '--format', format]
  const { code, stdout } = await world.run(...line)
  expect(stdout).toMatch(expected)
  expect(code).toBe(0)
})
