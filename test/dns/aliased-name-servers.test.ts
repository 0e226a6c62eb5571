import type { Answer } from 'dns-packet'
import { describe, expect, test } from 'vitest'
import { type Asked, type FakeReply, RA, RCODE } from './fake-dns.ts'
import { fakeInternet, RESOLVER, txt } from './fake-internet.ts'
import { timedCheck } from './timed-check.ts'

const REAL = '192.0.2.2'

/** `example.com` at these hosts, of which those that start with `alias` are aliases of `real.provider.net`. */
function world(
  hosts: readonly string[],
  resolverAnswers: boolean,
  glue: readonly string[] = [],
): (asked: Asked) => FakeReply {
  const internet = fakeInternet([
    { apex: 'com', servers: { 'a.nic.com': ['192.0.2.1'] } },
    {
      apex: 'example.com',
      servers: Object.fromEntries(
        hosts.map((host) => [host, host.startsWith('alias') ? glue : ['192.0.2.3']]),
      ),
      records: [txt('example.com', 'prefix=token')],
    },
  ])
  return (asked) => {
    const { server, name, type } = asked
    const atAlias = { ...asked, server: '192.0.2.3' }
    if (server === REAL) return hosts.length > 1 ? internet(atAlias) : answerAlone(asked)
    if (server !== RESOLVER) return internet(asked)
    if (name.startsWith('alias')) {
      const alias: Answer = { type: 'CNAME', name, ttl: 60, data: 'real.provider.net' }
      const address: Answer = { type: 'A', name: 'real.provider.net', ttl: 60, data: REAL }
      return { flags: RA, answers: type === 'A' ? [alias, address] : [alias] }
    }
    if (type === 'TXT' && !resolverAnswers) return { flags: RA | RCODE.SERVFAIL }
    return internet(asked)
  }
}

/** The zone with its address at the alias's target. */
const answerAlone = (asked: Asked) =>
  fakeInternet([
    {
      apex: 'example.com',
      servers: { 'alias.provider.net': [REAL] },
      records: [txt('example.com', 'prefix=token')],
    },
  ])(asked)

describe('a name server that is an alias', () => {
  test('is an error if there is no other one, and explains why a resolver fails', async () => {
    const { report } = await timedCheck(world(['alias.provider.net'], false))
    expect(report.verdict).toBe('fix')
    expect(report.findings.map(({ code, severity }) => `${severity} ${code}`)).toEqual([
      'error nameserver_alias',
    ])
    expect(report.findings[0]).toMatchObject({
      message: expect.stringContaining('alias.provider.net (to real.provider.net) is an alias (CNAME)'),
      details: { aliases: { 'alias.provider.net': 'real.provider.net' } },
    })
  })

  test.each([true, false])(
    'is a remark if it has glue, and no explanation for a resolver: %s',
    async (answers) => {
      const { report } = await timedCheck(world(['alias.provider.net'], answers, ['192.0.2.3']))
      const remark = report.findings.find(({ code }) => code === 'nameserver_alias')
      expect(remark).toMatchObject({
        severity: 'info',
        message: expect.stringContaining(
          'the addresses that come with the delegation (glue) make it work anyway',
        ),
      })
      expect(report.verdict).toBe(answers ? 'ready' : 'ready_with_warning')
      expect(report.findings.map(({ code }) => code)).toEqual(
        answers ? ['nameserver_alias'] : ['resolver_broken', 'nameserver_alias'],
      )
    },
  )

  test('is a warning if another one has an address', async () => {
    const { report } = await timedCheck(world(['alias.provider.net', 'ns.example.com'], true))
    expect(report.verdict).toBe('ready_with_warning')
    expect(report.findings.map(({ code, severity }) => `${severity} ${code}`)).toEqual([
      'warning nameserver_alias',
    ])
  })
})
