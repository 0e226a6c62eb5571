import { describe, expect, test } from 'vitest'
import { canonicalAddress, formatDnsAddress } from '../../../src/dns/wire/address.ts'
import { ancestors, checkName, isAskable, isWithin, relativeName } from '../../../src/dns/wire/name.ts'

describe('a name that people type', () => {
  test.each([
    ['example.com', 'example.com'],
    ['Example.COM.', 'example.com'],
    ['_dmarc.example.com', '_dmarc.example.com'],
    ['bücher.example', 'xn--bcher-kva.example'],
    ['例え。テスト', 'xn--r8jz45g.xn--zckzah'],
    [`${'a'.repeat(63)}.com`, `${'a'.repeat(63)}.com`],
    ['xn--bcher-kva.example', 'xn--bcher-kva.example'],
  ])('%j is %s', (input, ascii) => {
    expect(checkName(input)).toMatchObject({ ok: true, ascii })
  })

  test('keeps its Unicode form', () => {
    expect(checkName('xn--bcher-kva.example')).toMatchObject({ unicode: 'bücher.example' })
  })

  test.each([
    ['', 'is not a domain name'],
    ['https://example.com/path', 'web address'],
    ['example.com:53', 'web address'],
    ['someone@example.com', 'e-mail address'],
    ['@', 'e-mail address'],
    ['192.0.2.1', 'is not a domain name'],
    ['2001:db8::1', 'is not a domain name'],
    ['example com', 'is not a domain name'],
    [`${'a'.repeat(64)}.com`, 'is not a domain name'],
    [`${'a.'.repeat(130)}com`, 'is not a domain name'],
    ['My!Shop。Example.com', 'is not a domain name'],
    ['localhost', 'not a whole domain name'],
    ['xn--a.example', ''],
  ])('%j is refused, and says why', (input, why) => {
    const name = checkName(input)
    expect(name.ok).toBe(false)
    if (!name.ok) {
      expect(name.problem).toContain(why)
      expect(name.fix).not.toBe('')
    }
  })

  test.each([
    ['zero-width space', 'a\u200bb.example'],
    ['right-to-left override', 'a\u202eb.example'],
    ['tag', 'a\u{e0041}b.example'],
  ])('a name with a hidden %s is refused, with the name that remains without it', (_what, input) => {
    const name = checkName(input)
    expect(name).toMatchObject({ ok: false, fix: expect.stringMatching(/ab\.example$/) })
    if (!name.ok) expect(name.problem).toBe(`"${input}" has an invisible character`)
  })

  test('a joiner is refused where the rules of IDNs do not allow it', () => {
    expect(checkName('a\u200db.example')).toMatchObject({ ok: false })
    expect(checkName('نامه\u200cای.example')).toMatchObject({ ok: true })
  })

  test.each([
    'https://user@www.example.com:8443/x',
    'http://www.example.com',
    'www.example.com:53',
    'me@www.example.com',
    '*.www.example.com',
    '.www..example.com',
  ])('%s is refused with the name that was probably meant', (input) => {
    expect(checkName(input)).toMatchObject({ ok: false, fix: 'use the name alone: www.example.com' })
  })
})

test('ancestors go from the top down, without the name itself', () => {
  expect(ancestors('a.b.example.com')).toEqual(['com', 'example.com', 'b.example.com'])
})

test('a name is within its own zone and those above', () => {
  expect(isWithin('a.example.com', 'example.com')).toBe(true)
  expect(isWithin('example.com', 'example.com')).toBe(true)
  expect(isWithin('example.com', '.')).toBe(true)
  expect(isWithin('badexample.com', 'example.com')).toBe(false)
})

test('the host field is the relative name', () => {
  expect(relativeName('example.com', 'example.com')).toBe('@')
  expect(relativeName('a.b.example.com', 'example.com')).toBe('a.b')
})

test('names from the wire that cannot be queried are recognized', () => {
  expect(isAskable('ns1.example.com')).toBe(true)
  expect(isAskable('ns\u00e9.example.com')).toBe(false)
  expect(isAskable('a..b')).toBe(false)
  expect(isAskable('x'.repeat(64))).toBe(false)
})

test('addresses have one spelling, and show their port if it is not the default', () => {
  expect(canonicalAddress('2001:DB8:0::1')).toBe('2001:db8::1')
  expect(canonicalAddress('192.0.2.1')).toBe('192.0.2.1')
  expect(formatDnsAddress({ address: '192.0.2.1', port: 53 })).toBe('192.0.2.1')
  expect(formatDnsAddress({ address: '2001:db8::1', port: 5353 })).toBe('[2001:db8::1]:5353')
})
