import { domainToUnicode } from 'node:url'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { canonicalizeAddress, formatResolver } from '../../../src/dns/wire/address.ts'
import {
  canQueryName,
  collectNonRootAncestors,
  formatHostField,
  isWithin,
  parseDomainName,
} from '../../../src/dns/wire/name.ts'

test.each([
  ['example.com', 'example.com'],
  ['Example.COM.', 'example.com'],
  ['_dmarc.example.com', '_dmarc.example.com'],
  ['bücher.example', 'xn--bcher-kva.example'],
  ['例え。テスト', 'xn--r8jz45g.xn--zckzah'],
  [`${'a'.repeat(63)}.com`, `${'a'.repeat(63)}.com`],
  ['xn--bcher-kva.example', 'xn--bcher-kva.example'],
  ['XN--BCHER-KVA.пример', 'xn--bcher-kva.xn--e1afmkfd'],
  ['ΟΔΟΣ.example', 'xn--pxavbq.example'],
  ['ｅｘａｍｐｌｅ．ｃｏｍ', 'example.com'],
  ['col·lega.example', 'xn--collega-xma.example'],
  ['\u00a0example.com\r\n', 'example.com'],
])('the typed name %j is accepted as %s', (input, ascii) => {
  expect(parseDomainName(input)).toMatchObject({ ok: true, ascii })
})

test('parseDomainName returns the Unicode form of a name given in Punycode', () => {
  expect(parseDomainName('xn--bcher-kva.example')).toMatchObject({ unicode: 'bücher.example' })
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
])('the name %j is refused with a problem and a fix', (input, why) => {
  const problem = expect.stringContaining(why)
  expect(parseDomainName(input)).toMatchObject({ ok: false, problem, fix: expect.stringMatching(/./) })
})

test.each([
  ['zero-width space', 'a\u200bb.example'],
  ['right-to-left override', 'a\u202eb.example'],
  ['tag', 'a\u{e0041}b.example'],
])('a name with an invisible %s is refused, and the fix leaves the character out', (_what, input) => {
  const [problem, fix] = [`"${input}" has an invisible character`, expect.stringMatching(/ab\.example$/)]
  expect(parseDomainName(input)).toMatchObject({ ok: false, problem, fix })
})

test.each<[string, string, string]>([
  ['eta.com\ntheta.com', 'a line break', 'give one name at a time: eta.com'],
  ['eta.com\r\ntheta.com', 'a line break', 'give one name at a time: eta.com'],
  ['zeta.com\tACME', 'a tab', 'give one name at a time: zeta.com'],
  ['four .com', 'a space', 'give a domain name such as example.com'],
  ['four\u00a0.com', '"\u00a0" (U+00A0)', 'give a domain name such as example.com'],
  ['four\u2028.com', '"\u2028" (U+2028)', 'give a domain name such as example.com'],
  ['four\u0000.com', '"\u0000" (U+0000)', 'give a domain name such as example.com'],
  ...['"four.com"', '„four.com“', '‘four.com’', '«four.com»', '「four.com」', '`four.com´'].map(
    (text): [string, string, string] => [text, 'quotation marks', 'leave the quotation marks out: four.com'],
  ),
  ['"eta.com" "theta.com"', 'quotation marks', 'give one name at a time: eta.com'],
  ['(four.com)', '"(" (U+0028)', 'use the name alone: four.com'],
  ['my–shop.com', '"–" (U+2013)', 'use the name alone: my-shop.com'],
  ['fo%75r.com', '"%" (U+0025)', 'give a domain name such as example.com'],
  ['four™.com', '"™" (U+2122)', 'give a domain name such as example.com'],
  ['four².com', '"²" (U+00B2)', 'give a domain name such as example.com'],
  ['fo·ur.com', '"·" (U+00B7)', 'give a domain name such as example.com'],
  ['my shop.example.com', 'a space', 'give a domain name such as example.com'],
  ...['İSTANBUL.com.tr', 'i\u0307stanbul.com.tr', 'xn--istanbul-o0e.com.tr'].map(
    (text): [string, string, string] => [
      text,
      'a separate dot (U+0307)',
      'leave that dot out: istanbul.com.tr',
    ],
  ),
])('the name %j is refused because it has %s', (input, what, fix) => {
  const problem = `"${input}" is not a domain name: it has ${what}`
  expect(parseDomainName(input)).toEqual({ ok: false, problem, fix })
})

test('an accepted name differs from the typed text only in case, normalization, kinds of dots, a trailing dot and surrounding blanks', () => {
  const letter = fc.constantFrom(...'aZ0-_.', 'ü', 'ß', 'Σ', 'ﬁ', '中', 'م', 'ำ', '。', 'Ａ', '\u0308')
  const name = fc.array(fc.oneof(letter, fc.string({ unit: 'binary', maxLength: 1 })), { maxLength: 8 })
  const change = fc.constantFrom('', '%61', ..."\n\t\r \u00a0\u00ad“'\0\\™\u200b")
  const fold = (text: string) =>
    Array.from(text.normalize('NFKC').replaceAll('。', '.'), (one) => one.toLowerCase())
      .join('')
      .normalize()
      .replace(/\.$/, '')
  fc.assert(
    fc.property(name, change, name, (before, between, after) => {
      const text = `${before.join('')}${between}${after.join('')}.example`
      const checked = parseDomainName(text)
      if (!checked.ok) return
      expect([checked.ascii, domainToUnicode(checked.ascii)].map(fold)).toContain(fold(text.trim()))
    }),
    { numRuns: 5000 },
  )
})

test('a zero-width joiner is refused in a Latin name, and a zero-width non-joiner accepted in a Persian name', () => {
  expect(parseDomainName('a\u200db.example')).toMatchObject({ ok: false })
  expect(parseDomainName('نامه\u200cای.example')).toMatchObject({ ok: true })
})

test.each([
  'https://user@www.example.com:8443/x',
  'http://www.example.com',
  'www.example.com:53',
  'me@www.example.com',
  '*.www.example.com',
  '.www..example.com',
])('the name %s is refused, and the fix suggests www.example.com', (input) => {
  expect(parseDomainName(input)).toMatchObject({ ok: false, fix: 'use the name alone: www.example.com' })
})

test('the ancestors of a name are listed from the top-level domain down, without the root and the name itself', () => {
  expect(collectNonRootAncestors('a.b.example.com')).toEqual(['com', 'example.com', 'b.example.com'])
})

test('a name is within its own zone, its parent zone and the root, but badexample.com is not within example.com', () => {
  expect(isWithin('a.example.com', 'example.com')).toBe(true)
  expect(isWithin('example.com', 'example.com')).toBe(true)
  expect(isWithin('example.com', '.')).toBe(true)
  expect(isWithin('badexample.com', 'example.com')).toBe(false)
})

test('the relative name in a zone is the name without the zone, or @ at the apex', () => {
  expect(formatHostField('example.com', 'example.com')).toBe('@')
  expect(formatHostField('a.b.example.com', 'example.com')).toBe('a.b')
})

test('a name with a character outside of ASCII, an empty label or a label of 64 characters cannot be queried', () => {
  expect(canQueryName('ns1.example.com')).toBe(true)
  expect(canQueryName('ns\u00e9.example.com')).toBe(false)
  expect(canQueryName('a..b')).toBe(false)
  expect(canQueryName('x'.repeat(64))).toBe(false)
})

test('an IPv6 address is canonicalized, and a resolver’s address formatted with its port unless the port is 53', () => {
  expect(canonicalizeAddress('2001:DB8:0::1')).toBe('2001:db8::1')
  expect(canonicalizeAddress('192.0.2.1')).toBe('192.0.2.1')
  expect(formatResolver({ address: '192.0.2.1', port: 53 })).toBe('192.0.2.1')
  expect(formatResolver({ address: '2001:db8::1', port: 5353 })).toBe('[2001:db8::1]:5353')
})
