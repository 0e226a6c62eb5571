import fc from 'fast-check'
import { expect, it } from 'vitest'
import {
  appendPath,
  isLoopback,
  normalizeUrl,
  parseBaseUrl,
  parseIpAndPort,
  parseResolver,
} from '../../src/settings/addresses.ts'
import { MAX_PORT, parseInteger } from '../../src/settings/parse-value.ts'

it.each([
  ['https://api.example.com', 'https://api.example.com'],
  ['https://api.example.com/', 'https://api.example.com'],
  ['https://api.example.com:443/v1//', 'https://api.example.com/v1'],
  ['http://127.0.0.1:8080', 'http://127.0.0.1:8080'],
  ['http://127.9.9.9', 'http://127.9.9.9'],
  ['http://[::1]:1', 'http://[::1]:1'],
  ['http://localhost', 'http://localhost'],
  [' https://bücher.example/v1\n', 'https://xn--bcher-kva.example/v1'],
  ['https://api.example.com/v1/?#', 'https://api.example.com/v1'],
])('the base URL %j is normalized to %s', (text, issuer) => {
  expect(normalizeUrl(parseBaseUrl(text, '--base-url'))).toBe(issuer)
})

it.each([
  '',
  'api.example.com',
  'ftp://x',
  'http://example.com',
  'http://127.0.0.1.example.com',
  'http://0.0.0.0',
  'http://[::ffff:10.0.0.1]',
  'http://service.localhost',
  'https://api.example\n.com',
  'https://api.example.com/a\tb',
  'https://api.example.com\u0001',
  'https://api.exam\u00adple.com',
  'https://%61pi.example.com',
  'https:\\\\api.example.com',
  'https:api.example.com',
  'https://“api.example.com”',
  'https://u:p@x',
  'https://x/?a=1',
])('parseBaseUrl rejects the base URL %j with exit 3', (text) => {
  expect(() => parseBaseUrl(text, '--base-url')).toThrow(
    expect.objectContaining({ exit: 3, code: 'base_url_unusable' }),
  )
})

it.each([
  'user:PASSWORD@api.example.com',
  'https:user:PASSWORD@api.example.com',
  'https:\\\\user:PASSWORD@api.example.com',
  'https://user:PASS/PASSWORD@api.example.com',
  'https://user:?PASSWORD@x:PASSWORD@api.example.com',
  'https://user:#PASSWORD@api.example.com',
  'https://user:PASS\nPASSWORD@api.example.com',
  'ftp://user:PASSWORD@api.example.com',
  'HTTPS://user:PASSWORD@api.example.com',
])('the error about the base URL %j contains no password', (text) => {
  expect(() => parseBaseUrl(text, '--base-url')).toThrow(
    expect.objectContaining({
      code: 'base_url_unusable',
      message: expect.stringMatching(/^(?!.*(user:|PASS)).*…@api\.example\.com/),
    }),
  )
})

it('appendPath adds a path to the path of the base URL', () => {
  expect(appendPath(parseBaseUrl('https://x.example/api/v1/', '--base-url'), '/oauth/token').href).toBe(
    'https://x.example/api/v1/oauth/token',
  )
})

it.each([
  ['9.9.9.9', '9.9.9.9', 53],
  ['9.9.9.9:5353', '9.9.9.9', 5353],
  ['::1', '::1', 53],
  ['[::1]', '::1', 53],
  ['[2620:fe::fe]:5353', '2620:fe::fe', 5353],
])('the DNS server address %s is parsed as the IP address %s and the port %s', (text, address, port) => {
  expect(parseIpAndPort(text, '--resolver')).toEqual({ address, port })
})

it.each([
  '',
  'dns.example',
  '9.9.9',
  '9.9.9.9:0',
  '9.9.9.9:65536',
  '9.9.9.9:99999999',
  '9.9.9.9:x',
  '[::1',
  '::1]:53',
  '[9.9.9.9',
])('the DNS server address %j is rejected with exit 2', (text) => {
  expect(() => parseIpAndPort(text, '--resolver')).toThrow(expect.objectContaining({ exit: 2 }))
})

it.each([
  ['https://dns.example/dns-query', 'https://dns.example/dns-query'],
  ['https://9.9.9.9:8443/dns-query', 'https://9.9.9.9:8443/dns-query'],
  ['HTTPS://dns.example', 'https://dns.example/'],
  ['http://127.0.0.1:8053/dns-query', 'http://127.0.0.1:8053/dns-query'],
])('the resolver %s is parsed as the DNS over HTTPS URL %s', (text, href) => {
  expect(parseResolver(text, '--resolver')).toEqual(new URL(href))
})

it.each([
  ['http://dns.example/dns-query', 'is not encrypted'],
  ['https://dns.example/dns-query{?dns}', 'contains a query or a fragment'],
  ['https://me:secret@dns.example/dns-query', '"https://…@dns.example/dns-query" contains a user name'],
  ['tls://dns.example', 'is not an https address'],
  ['dns.example/dns-query', 'is not a URL'],
])('the resolver %s is rejected with an error that contains: %s', (text, why) => {
  expect(() => parseResolver(text, '--resolver')).toThrow(
    expect.objectContaining({ exit: 2, message: expect.stringContaining(why) }),
  )
})

it('any IPv4 address with a port, and any IPv6 address with or without a port, is parsed as a DNS server address', () => {
  const port = fc.integer({ min: 1, max: 65535 })
  fc.assert(
    fc.property(fc.ipV4(), port, (address, at) => {
      expect(parseIpAndPort(`${address}:${at}`, 'x')).toEqual({ address, port: at })
    }),
  )
  fc.assert(
    fc.property(fc.ipV6(), port, (address, at) => {
      expect(parseIpAndPort(`[${address}]:${at}`, 'x')).toEqual({ address, port: at })
      expect(parseIpAndPort(address, 'x')).toEqual({ address, port: 53 })
    }),
  )
})

it.each(['1e3', '-1', '0', '65536', ' ', '80x', '0x50'])('parseInteger rejects the port %j', (text) => {
  expect(() => parseInteger(text, '--port', 1, MAX_PORT)).toThrow(expect.objectContaining({ exit: 2 }))
})

it.each([
  ['localhost', true],
  ['LOCALHOST', true],
  ['a.localhost', false],
  ['localhost.', false],
  ['127.0.0.1', true],
  ['[::1]', true],
  ['127.0.0.1.evil.example', false],
  ['localhost.evil.example', false],
  ['10.0.0.1', false],
])('isLoopback(%j) is %s', (host, expected) => {
  expect(isLoopback(host)).toBe(expected)
})
