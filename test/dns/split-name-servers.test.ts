import { describe, expect, test } from 'vitest'
import { AA, type Asked, type FakeReply, RA, RCODE } from './fake-dns.ts'
import { type FakeZone, fakeInternet, RESOLVER, txt } from './fake-internet.ts'
import { timedCheck } from './timed-check.ts'

const INSIDE = '10.0.9.9'
const REGISTRIES: readonly FakeZone[] = [
  { apex: 'com', servers: { 'a.nic.com': ['192.0.2.1'] } },
  { apex: 'net', servers: { 'a.nic.net': ['192.0.2.2'] } },
]
const RECORD = [txt('example.com', 'prefix=token')]
/** Name servers in the domain itself. */
const OWN: readonly FakeZone[] = [
  ...REGISTRIES,
  {
    apex: 'example.com',
    servers: { 'ns1.example.com': ['192.0.2.11'], 'ns2.example.com': ['192.0.2.12'] },
    records: RECORD,
  },
]
const PROVIDER = { 'ns1.host.net': ['192.0.2.21'], 'ns2.host.net': ['192.0.2.22'] }
/** A provider's name servers, for which the domain's registry has no glue. */
const HOSTED: readonly FakeZone[] = [
  ...REGISTRIES,
  { apex: 'host.net', servers: PROVIDER },
  { apex: 'example.com', servers: PROVIDER, withoutGlue: true, records: RECORD },
]
const WITHOUT_RECORD = (zones: readonly FakeZone[]) =>
  zones.map((zone) => (zone.apex === 'example.com' ? { ...zone, records: [] } : zone))

/** The resolver gives these addresses for all name servers of the domain; an internal zone answers at `INSIDE`. */
function world(zones: readonly FakeZone[], given: Readonly<Record<'A' | 'AAAA', string | undefined>>) {
  const inside = fakeInternet([
    { apex: 'example.com', servers: { 'ns-inside.example.com': [INSIDE] } },
    ...REGISTRIES,
  ])
  const domain = zones.find(({ apex }) => apex === 'example.com')
  const hosts = Object.keys(domain?.servers ?? {})
  return fakeInternet(zones, (asked: Asked): FakeReply | undefined => {
    const { server, name, type } = asked
    if (server === INSIDE) return inside(asked)
    if (server === '0.0.0.0' || server === '::' || server === '127.0.0.1') return 'refused'
    if (server !== RESOLVER) return undefined
    if (type === 'TXT' && name === 'example.com') return { flags: RA, answers: [...(domain?.records ?? [])] }
    if (!hosts.includes(name) || (type !== 'A' && type !== 'AAAA')) return undefined
    const data = given[type]
    return { flags: RA, answers: data === undefined ? [] : [{ type, name, ttl: 60, data }] }
  })
}

const SPLIT = { A: INSIDE, AAAA: undefined }
const PLACES = [
  ['in the domain itself', OWN, ['192.0.2.11', '192.0.2.12']],
  ['of a provider', HOSTED, ['192.0.2.21', '192.0.2.22']],
] as const

describe.each(PLACES)('name servers %s that the resolver has other addresses for', (_where, zones, real) => {
  test('do not make the servers inside a company servers of the domain', async () => {
    const { report } = await timedCheck(world(zones, SPLIT))
    expect(report).toMatchObject({ verdict: 'ready', findings: [{ code: 'split_dns', severity: 'info' }] })
    expect(report.nameservers.map(({ address }) => address)).toEqual(real)
    expect(report.findings[0]?.message).toContain(`The resolver ${RESOLVER} gives ${INSIDE} for ns1.`)
  })

  test('are told apart if no server has the record', async () => {
    const { report, asked } = await timedCheck(world(WITHOUT_RECORD(zones), SPLIT))
    expect(report).toMatchObject({
      verdict: 'fix',
      findings: [{ code: 'missing' }, {}, { code: 'split_dns' }],
    })
    expect(report.nameservers.map(({ address }) => address)).toEqual(real)
    expect(asked.length).toBeLessThanOrEqual(120)
  })

  test.each([
    ['0.0.0.0 and ::', { A: '0.0.0.0', AAAA: '::' }],
    ['0.0.0.0', { A: '0.0.0.0', AAAA: undefined }],
    ['127.0.0.1', { A: '127.0.0.1', AAAA: undefined }],
    ['::1', { A: undefined, AAAA: '::1' }],
  ])('are not broken if a filter answers %s', async (_what, given) => {
    const { report, asked } = await timedCheck(world(zones, given))
    expect(report).toMatchObject({
      verdict: 'ready',
      findings: [{ code: 'split_dns', severity: 'info', details: { resolver: RESOLVER, filtered: true } }],
    })
    expect(report.nameservers.map(({ address }) => address)).toEqual(real)
    expect(asked.map(({ server }) => server)).not.toContain(given.A ?? given.AAAA)
  })
})

test('the registry has no answer, so nothing is said about servers that a filter hides', async () => {
  const hidden = world(HOSTED, { A: '0.0.0.0', AAAA: '::' })
  const { report } = await timedCheck((asked) =>
    asked.server === RESOLVER && asked.type === 'NS' && asked.name === 'net'
      ? { flags: RA | RCODE.SERVFAIL }
      : hidden(asked),
  )
  expect(report.verdict).toBe('unknown')
})

test('an address that only the zone has, and the resolver knows, is one of a name server', async () => {
  const further = '192.0.2.13'
  const zones = fakeInternet(OWN)
  const { report } = await timedCheck((asked) => {
    const { server, name, type } = asked
    const isFurther = name === 'ns2.example.com' && type === 'A' && server !== '192.0.2.1'
    if (server === further) return zones({ ...asked, server: '192.0.2.12' })
    if (!isFurther) return zones(asked)
    const flags = server === RESOLVER ? RA : AA
    return { flags, answers: ['192.0.2.12', further].map((data) => ({ type: 'A', name, ttl: 60, data })) }
  })
  expect(report).toMatchObject({ verdict: 'ready', findings: [] })
  expect(report.nameservers.map(({ address }) => address)).toEqual(['192.0.2.11', '192.0.2.12', further])
})

test('a healthy check sends no more queries than those that the servers and the resolver need', async () => {
  const [own, hosted] = await Promise.all([timedCheck(fakeInternet(OWN)), timedCheck(fakeInternet(HOSTED))])
  expect(own.asked.map(({ name }) => name)).not.toContain('net')
  expect(Math.max(own.asked.length, hosted.asked.length)).toBeLessThan(30)
})
