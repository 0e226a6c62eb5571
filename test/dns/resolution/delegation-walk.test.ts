import { describe, expect, test } from 'vitest'
import { walkDelegations } from '../../../src/dns/resolution/delegation-walk.ts'
import type { Asked, FakeReply } from '../fake-dns.ts'
import { RA, RCODE } from '../fake-dns.ts'
import { type FakeZone, fakeInternet } from '../fake-internet.ts'
import { timedContext } from '../timed-check.ts'

const REGISTRY: FakeZone = { apex: 'me', servers: { 'a.nic.me': ['192.0.2.1'], 'b.nic.me': ['192.0.2.2'] } }
const COMPANY: FakeZone = { apex: 'id.me', servers: { 'ns.id.me': ['192.0.2.11'] } }

async function walk(
  name: string,
  odd?: (asked: Asked) => FakeReply | undefined,
  zones = [REGISTRY, COMPANY],
) {
  const { context, asked } = timedContext(fakeInternet(zones, odd))
  const start = {
    zone: 'me',
    hosts: new Map([
      ['a.nic.me', [{ address: '192.0.2.1', port: 53 }]],
      ['b.nic.me', [{ address: '192.0.2.2', port: 53 }]],
    ]),
  }
  const seen: string[] = []
  const recursion: string[] = []
  const end = await walkDelegations(name, start, context, {
    onDelegation: ({ zone }) => seen.push(zone),
    onRegistryAnswer: ({ zone, server, isRecursion }) => {
      if (isRecursion) recursion.push(`${zone} ${server.address}`)
    },
  })
  return { end, seen, recursion, asked, ms: context.effects.clock.monotonic() }
}

describe('the delegation walk', () => {
  test('follows referrals to the zone that holds the name', async () => {
    const { end, seen } = await walk('new.id.me')
    expect(seen).toEqual(['id.me'])
    expect(end).toMatchObject({
      kind: 'located',
      verified: true,
      delegation: { zone: 'id.me' },
      parent: { zone: 'me', hosts: ['ns.id.me'] },
    })
  })

  test('does not take a company for a registry because of its name', async () => {
    const { end } = await walk('nobody.there.id.me')
    expect(end).toMatchObject({ kind: 'located', delegation: { zone: 'id.me' } })
  })

  test('ends at the registry if it does not know the domain', async () => {
    const { end } = await walk('app.nobody.me')
    expect(end).toMatchObject({ kind: 'no-domain', domain: 'nobody.me', saidBy: 'me' })
  })

  test.each(['192.0.2.1', '192.0.2.2'])(
    'follows the referral if %s does not know the domain yet',
    async (old) => {
      const fresh = (asked: Asked): FakeReply | undefined =>
        asked.server === old ? fakeInternet([REGISTRY])(asked) : undefined
      const { end } = await walk('id.me', fresh)
      expect(end).toMatchObject({ kind: 'located', delegation: { zone: 'id.me' } })
    },
  )

  test('notices a resolver that answers instead of a registry', async () => {
    const refused = () => ({ flags: RA | RCODE.REFUSED })
    const { end, recursion } = await walk('id.me', refused)
    expect(end).toBe('dead-end')
    expect(recursion).toEqual(['me 192.0.2.1', 'me 192.0.2.2'])
  })

  test('finds a zone whose servers are silent within four seconds', async () => {
    const { end, ms } = await walk('id.me', ({ server }) => (server === '192.0.2.11' ? 'silent' : undefined))
    expect(end).toMatchObject({ kind: 'located', verified: false, delegation: { zone: 'id.me' } })
    expect(ms).toBeLessThanOrEqual(4000)
  })
})
