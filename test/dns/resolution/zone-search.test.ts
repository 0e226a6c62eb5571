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

describe('the zone search', () => {
  test('asks the resolver only for the top-level domain', async () => {
    const { location, atResolver } = await locate('a.b.web.de')
    expect(location).toMatchObject({ kind: 'located', delegation: { zone: 'web.de' } })
    expect(atResolver.filter((question) => question.endsWith(' NS'))).toEqual(['de NS'])
  })

  test('ends at a delegated zone behind a firewall, even if its name looks like a registry’s', async () => {
    const { location, atResolver } = await locate('a.b.web.de', ({ server }) =>
      server === RESOLVER ? undefined : 'silent',
    )
    expect(location).toMatchObject({ kind: 'located', delegation: { zone: 'web.de' }, verified: false })
    expect(
      atResolver.filter((question) => question.includes('b.web.de') && !question.startsWith('ns.')),
    ).toEqual([])
  })

  test('starts at the primary server if the resolver refuses NS queries', async () => {
    const { location } = await locate('app.web.de', ({ server, type }) =>
      server === RESOLVER && type === 'NS' ? { flags: RA | RCODE.REFUSED } : undefined,
    )
    expect(location).toMatchObject({ kind: 'located', delegation: { zone: 'web.de' } })
  })

  test('does without the CD bit if the resolver rejects it', async () => {
    const { location } = await locate('app.web.de', ({ server, checkingDisabled }) =>
      server === RESOLVER && checkingDisabled ? { flags: RA | RCODE.FORMERR } : undefined,
    )
    expect(location).toMatchObject({ kind: 'located', delegation: { zone: 'web.de' } })
  })

  test('notices a resolver that answers instead of the registry', async () => {
    const { location } = await locate('app.web.de', ({ server }) =>
      server === RESOLVER ? undefined : { flags: RA | RCODE.REFUSED },
    )
    expect(location).toMatchObject({
      kind: 'located',
      registryAnswers: [{ server: { address: '192.0.2.1' }, isRecursion: true }],
    })
  })

  test('does not mistake a resolver that serves the domain for one that answers instead of the registry', async () => {
    const { location } = await locate('app.web.de', ({ server }) =>
      server === '192.0.2.11' ? { flags: RA | RCODE.REFUSED } : undefined,
    )
    expect(location).toMatchObject({ kind: 'located', registryAnswers: [{ isRecursion: false }] })
  })
})
