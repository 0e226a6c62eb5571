import { expect, test } from 'vitest'
import { isRegistryZone, registrableDomainOf } from '../../../src/dns/wire/registry.ts'

test.each(['.', 'com', 'test', 'co.uk', 'com.au', 'pvt.k12.ma.us', 'xn--55qx5d.cn'])(
  'isRegistryZone returns true for the zone %s',
  (zone) => expect(isRegistryZone(zone)).toBe(true),
)

// A domain below a registry, and domains of companies that look like registries or offer subdomains to anyone.
test.each(['id.me', 'web.de', 'go.io', 'example.co.uk', 'uk.com', 'github.io'])(
  'isRegistryZone returns false for the zone %s',
  (zone) => expect(isRegistryZone(zone)).toBe(false),
)

test.each([
  ['app.nobody.com', 'nobody.com'],
  ['app.nobody.co.jp', 'nobody.co.jp'],
  ['new.id.me', 'id.me'],
  ['app.nobody.pvt.k12.ma.us', 'nobody.pvt.k12.ma.us'],
  ['a.b.internal.test', 'internal.test'],
  ['co.uk', 'co.uk'],
])('the registrable domain of %s is %s', (name, domain) => {
  expect(registrableDomainOf(name)).toBe(domain)
})
