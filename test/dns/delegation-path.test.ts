import { expect, test } from 'vitest'
import { type FakeZone, fakeInternet, RESOLVER, txt } from './fake-internet.ts'
import { timedCheck } from './timed-check.ts'

const COM: FakeZone = { apex: 'com', servers: { 'a.nic.com': ['192.0.2.1'] } }
const EXAMPLE: FakeZone = {
  apex: 'example.com',
  servers: { 'ns1.example.com': ['192.0.2.2'], 'ns2.example.com': ['192.0.2.3'] },
  records: [txt('example.com', 'prefix=token')],
}

test('the report has each zone on the way, with its name servers and who gave them', async () => {
  const team: FakeZone = {
    apex: 'team.example.com',
    servers: { 'ns.team.example.com': ['192.0.2.9'] },
    records: [txt('team.example.com', 'prefix=token')],
  }
  const { report } = await timedCheck(fakeInternet([COM, EXAMPLE, team]), { name: 'team.example.com' })
  expect(report.path).toMatchObject([
    { zone: 'com', hosts: ['a.nic.com'], givenBy: { address: RESOLVER } },
    { zone: 'example.com', hosts: ['ns1.example.com', 'ns2.example.com'], givenBy: { address: '192.0.2.1' } },
    {
      zone: 'team.example.com',
      hosts: ['ns.team.example.com'],
      // The glue above told its name.
      givenBy: { host: expect.stringMatching(/^ns[12]\.example\.com$/) },
    },
  ])
})

test('the way ends at the registry that denies the domain', async () => {
  const { report } = await timedCheck(fakeInternet([COM]))
  expect(report.findings).toMatchObject([{ code: 'domain_not_found' }])
  expect(report.path).toMatchObject([{ zone: 'com', givenBy: { address: RESOLVER } }])
})

test('the way ends at the registry that is silent', async () => {
  const world = fakeInternet([COM])
  const { report } = await timedCheck((asked) =>
    asked.server === '192.0.2.1' || (asked.server === RESOLVER && asked.name !== 'com' && asked.type === 'NS')
      ? 'silent'
      : world(asked),
  )
  expect(report).toMatchObject({ zone: null, path: [{ zone: 'com', hosts: ['a.nic.com'] }] })
})

test('the way is there if the name servers never answer', async () => {
  const world = fakeInternet([COM, EXAMPLE])
  const { report } = await timedCheck((asked) =>
    ['192.0.2.2', '192.0.2.3'].includes(asked.server) ? 'silent' : world(asked),
  )
  expect(report.path?.map(({ zone }) => zone)).toEqual(['com', 'example.com'])
  expect(report.nameservers.map(({ outcome }) => outcome)).toEqual(['timeout', 'timeout'])
})

test('there is no way if no resolver answers', async () => {
  const { report } = await timedCheck(() => 'silent')
  expect(report.path).toEqual([])
})
