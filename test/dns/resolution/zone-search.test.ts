import { describe, expect, test } from 'vitest'
import { locateZone } from '../../../src/dns/resolution/zone-search.ts'
import { type Asked, type FakeReply, RA, RCODE } from '../fake-dns.ts'
import { type FakeZone, fakeInternet, RESOLVER } from '../fake-internet.ts'
import { timedContext } from '../timed-check.ts'

const ZONES: readonly FakeZone[] = [
  { apex: 'de', servers: { 'a.nic.de': ['192.0.2.1'] } },
  { apex: 'web.de', servers: { 'ns.web.de': ['192.0.2.11'] } },
]

async function locate(name: string, odd?: (asked: Asked) => FakeReply | undefined) {
  const { context, asked } = timedContext(fakeInternet(ZONES, odd))
  const location = await locateZone(name, context)
  const atResolver = asked.filter((one) => one.server === RESOLVER).map(({ name, type }) => `${name} ${type}`)
  return { location, atResolver, ms: context.effects.clock.monotonic() }
}

describe('the search for the zone', () => {
  test('asks the resolver for the top-level domain alone', async () => {
    const { location, atResolver } = await locate('a.b.web.de')
    expect(location).toMatchObject({ kind: 'located', delegation: { zone: 'web.de' } })
    expect(atResolver.filter((question) => question.endsWith(' NS'))).toEqual(['de NS'])
  })

  test('behind a firewall, ends at a delegated zone, whatever its name looks like', async () => {
    const { location, atResolver } = await locate('a.b.web.de', ({ server }) =>
      server === RESOLVER ? undefined : 'silent',
    )
    expect(location).toMatchObject({ kind: 'located', delegation: { zone: 'web.de' }, verified: false })
    expect(
      atResolver.filter((question) => question.includes('b.web.de') && !question.startsWith('ns.')),
    ).toEqual([])
  })

  test('starts at the primary server where the resolver refuses NS questions', async () => {
    const { location } = await locate('app.web.de', ({ server, type }) =>
      server === RESOLVER && type === 'NS' ? { flags: RA | RCODE.REFUSED } : undefined,
    )
    expect(location).toMatchObject({ kind: 'located', delegation: { zone: 'web.de' } })
  })

  test('does without the CD bit where the resolver takes it for an error', async () => {
    const { location } = await locate('app.web.de', ({ server, checkingDisabled }) =>
      server === RESOLVER && checkingDisabled ? { flags: RA | RCODE.FORMERR } : undefined,
    )
    expect(location).toMatchObject({ kind: 'located', delegation: { zone: 'web.de' } })
  })

  test('says that a resolver answers in the place of the registry', async () => {
    const { location } = await locate('app.web.de', ({ server }) =>
      server === RESOLVER ? undefined : { flags: RA | RCODE.REFUSED },
    )
    expect(location).toMatchObject({ kind: 'located', recursionAbove: true })
  })

  test('says nothing of the kind where the domain is served by a resolver', async () => {
    const { location } = await locate('app.web.de', ({ server }) =>
      server === '192.0.2.11' ? { flags: RA | RCODE.REFUSED } : undefined,
    )
    expect(location).toMatchObject({ kind: 'located', recursionAbove: false })
  })
})
