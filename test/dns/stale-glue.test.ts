import type { Answer } from 'dns-packet'
import { describe, expect, test } from 'vitest'
import { plainText } from '../../src/dns/diagnosis/text.ts'
import { isWithin } from '../../src/dns/wire/name.ts'
import type { Asked, FakeReply } from './fake-dns.ts'
import { RCODE } from './fake-dns.ts'
import { fakeInternet, txt } from './fake-internet.ts'
import { timedCheck } from './timed-check.ts'

const OLD = '192.0.2.99'
const record = txt('example.com', 'prefix=token')
const com = { apex: 'com', servers: { 'a.nic.com': ['192.0.2.1'] } }

/** The registry of `com` delegates the domain to these hosts at these addresses. */
const delegates =
  (hosts: Readonly<Record<string, string>>, oldReply: FakeReply, zone = 'example.com') =>
  ({ server, name, type }: Asked): FakeReply | undefined => {
    if (server === OLD) return oldReply
    if (server !== '192.0.2.1' || type === 'DS' || !isWithin(name, zone)) return undefined
    const ns = Object.keys(hosts).map((data): Answer => ({ type: 'NS', name: zone, ttl: 60, data }))
    const glue = Object.entries(hosts).map(
      ([host, data]): Answer => ({
        type: 'A',
        name: host,
        ttl: 60,
        data,
      }),
    )
    return { authorities: ns, additionals: glue }
  }

const REPLIES = [
  ['refuses', 'lame_nameserver', { flags: RCODE.REFUSED }],
  ['fails', 'lame_nameserver', { flags: RCODE.SERVFAIL }],
  ['is silent', 'nameserver_unreachable', 'silent'],
  ['is unreachable', 'nameserver_unreachable', 'refused'],
] as const satisfies [string, string, FakeReply][]

describe.each(REPLIES)('an old glue address that %s', (_what, code, reply) => {
  test('is to be changed at the registrar, and the host, which serves the zone elsewhere, stays', async () => {
    const servers = { 'ns1.example.com': ['192.0.2.2'], 'ns2.example.com': ['192.0.2.3'] }
    const { report } = await timedCheck(
      fakeInternet(
        [com, { apex: 'example.com', servers, records: [record] }],
        delegates({ 'ns1.example.com': '192.0.2.2', 'ns2.example.com': OLD }, reply),
      ),
    )
    expect(report).toMatchObject({
      verdict: 'ready_with_warning',
      findings: [
        {
          code,
          severity: 'warning',
          details: { stale_glue: [{ host: 'ns2.example.com', glue: OLD, own: ['192.0.2.3'] }] },
        },
      ],
    })
    expect(report.findings[0]?.fix).toBe(
      `Waiting won't help: the registry still has the old address ${OLD} for ns2.example.com, so change the glue (host record) at the registrar of example.com to 192.0.2.3`,
    )
  })

  test('of a host in another zone is to be changed at the registrar of that zone', async () => {
    const provider = {
      apex: 'host.com',
      servers: { 'ns2.host.com': ['192.0.2.5'] },
      records: [{ type: 'A', name: 'ns1.host.com', ttl: 60, data: '192.0.2.4' } as const],
    }
    const { report } = await timedCheck(
      fakeInternet(
        [
          com,
          provider,
          { apex: 'example.com', servers: { 'ns1.host.com': ['192.0.2.4'] }, records: [record] },
        ],
        delegates({ 'ns1.host.com': OLD }, reply),
      ),
    )
    const finding = report.findings.find((found) => found.code === code)
    expect(plainText(finding?.fix ?? '')).toContain('at the registrar of host.com to 192.0.2.4')
    expect(plainText(finding?.fix ?? '')).not.toContain('remove')
  })

  test('that leads to the zone of the host as well is found through another server of that zone', async () => {
    const provider = {
      apex: 'host.com',
      servers: { 'ns1.host.com': ['192.0.2.4'], 'ns2.host.com': ['192.0.2.5'] },
    }
    const hosts = { 'ns1.host.com': OLD, 'ns2.host.com': '192.0.2.5' }
    const viaOld = delegates({ 'ns1.host.com': OLD }, reply)
    const { report } = await timedCheck(
      fakeInternet(
        [
          com,
          provider,
          { apex: 'example.com', servers: { 'ns1.host.com': ['192.0.2.4'] }, records: [record] },
        ],
        (asked) => viaOld(asked) ?? delegates(hosts, reply, 'host.com')(asked),
      ),
    )
    expect(report.findings.find((found) => found.code === code)?.fix).toContain(
      'at the registrar of host.com to 192.0.2.4',
    )
  })

  test('that the host’s own zone lists as well is removed, but not its host', async () => {
    const servers = { 'ns1.example.com': ['192.0.2.2'], 'ns2.example.com': ['192.0.2.3', OLD] }
    const { report } = await timedCheck(
      fakeInternet([com, { apex: 'example.com', servers, records: [record] }], ({ server }) =>
        server === OLD ? reply : undefined,
      ),
    )
    expect(report.findings).toMatchObject([{ code }])
    expect(report.findings[0]?.fix).toContain(
      `or remove the address ${OLD} from the A/AAAA records and the glue of ns2.example.com`,
    )
    expect(report.findings[0]?.details).not.toHaveProperty('stale_glue')
  })
})

test('a delegation to old addresses only is an error if no resolver gets the record', async () => {
  const servers = { 'ns1.example.com': ['192.0.2.3'] }
  const internet = fakeInternet(
    [com, { apex: 'example.com', servers, records: [record] }],
    delegates({ 'ns1.example.com': OLD }, { flags: RCODE.REFUSED }),
  )
  const { report } = await timedCheck((asked) =>
    asked.server === '192.0.2.53' && asked.type === 'TXT' ? { flags: RCODE.SERVFAIL } : internet(asked),
  )
  expect(report.findings.map(({ code, severity }) => `${severity} ${code}`)[0]).toBe('error lame_nameserver')
})
