import { describe, expect, test } from 'vitest'
import { isPrivateRegistry, isRegistry, registeredDomain } from '../../../src/dns/resolution/registry.ts'

describe('a registry', () => {
  test.each(['com', 'test', 'co.uk', 'com.au', 'pvt.k12.ma.us', 'xn--55qx5d.cn'])('is %s', (zone) => {
    expect(isRegistry(zone)).toBe(true)
  })

  test.each([
    ['a company whose name looks like one', 'id.me'],
    ['another', 'web.de'],
    ['another', 'go.io'],
    ['a domain below one', 'example.co.uk'],
    ['a company that lets others have names', 'uk.com'],
    ['the root', '.'],
  ])('is not %s (%s)', (_what, zone) => {
    expect(isRegistry(zone)).toBe(false)
  })

  test('is not a company that gives names to anyone, which is recognized as such', () => {
    expect(['uk.com', 'github.io'].every(isPrivateRegistry)).toBe(true)
    expect(['co.uk', 'com', 'id.me'].some(isPrivateRegistry)).toBe(false)
  })
})

test.each([
  ['app.nobody.com', 'com', 'nobody.com'],
  ['nobody.com', '.', 'nobody.com'],
  ['app.nobody.co.jp', 'jp', 'nobody.co.jp'],
  ['new.id.me', 'me', 'id.me'],
  ['app.nobody.pvt.k12.ma.us', 'us', 'nobody.pvt.k12.ma.us'],
  ['a.b.internal.test', 'test', 'internal.test'],
])('the domain to register for %s below %s is %s', (name, zone, domain) => {
  expect(registeredDomain(name, zone)).toBe(domain)
})
