import { describe, expect, test } from 'vitest'
import type { Asked, FakeReply } from './fake-dns.ts'
import { type FakeZone, fakeInternet, RESOLVER, txt } from './fake-internet.ts'
import { timedCheck } from './timed-check.ts'

const REGISTRY = '192.0.2.1'
const [OLD, NEW] = ['192.0.2.11', '192.0.2.13']
const OLD_HOST = { 'ns1.shop.com': [OLD] }
const NEW_HOST = { 'ns3.shop.com': [NEW] }
const RECORD = [txt('shop.com', 'prefix=token')]

/** `shop.com` as one party sees it. */
const world = (servers: FakeZone['servers'], records: FakeZone['records'] = []) =>
  fakeInternet([
    { apex: 'com', servers: { 'a.nic.com': [REGISTRY] } },
    { apex: 'shop.com', servers, records },
  ])

/** Each server answers for the world as it sees it; the resolver has cached what the old server says. */
const seenBy =
  (views: Readonly<Record<'registry' | 'old' | 'new', (asked: Asked) => FakeReply>>) =>
  (asked: Asked): FakeReply =>
    asked.server === REGISTRY
      ? views.registry(asked)
      : asked.server === NEW
        ? views.new(asked)
        : views.old(asked)

/** How long a query takes, and how many of the first ones to a resolver are lost. */
const PATHS: readonly (readonly [string, (server: string) => number, number])[] = [
  ...[0, 100, 300, 400, 600, 800].map((ms) => [`${ms} ms`, () => ms, 0] as const),
  ['the registry far away', (server) => (server === REGISTRY ? 700 : 20), 0],
  ['the first query lost', () => 50, 1],
]

async function checkOver(
  respond: (asked: Asked) => FakeReply,
  roundMs: (server: string) => number,
  lost: number,
) {
  let left = lost
  const lossy = (asked: Asked): FakeReply => {
    const isLost = asked.server === RESOLVER && left > 0
    if (isLost) left -= 1
    return isLost ? 'silent' : respond(asked)
  }
  const { report, ms, asked } = await timedCheck(lossy, { name: 'shop.com', roundMs })
  expect(ms).toBeLessThan(10_000)
  expect(asked.length).toBeLessThanOrEqual(120)
  return {
    verdict: report.verdict,
    codes: report.findings.map(({ code }) => code),
    servers: report.nameservers.map(({ host, outcome }) => `${host} ${outcome}`),
  }
}

describe.each(PATHS)('the registry decides which name servers count, with %s:', (_title, roundMs, lost) => {
  test('a domain that was only half moved', async () => {
    const respond = seenBy({
      registry: world({ ...OLD_HOST, ...NEW_HOST }),
      old: world(OLD_HOST, RECORD),
      new: world(NEW_HOST),
    })
    expect(await checkOver(respond, roundMs, lost)).toMatchObject({
      verdict: 'fix',
      codes: expect.arrayContaining(['partial_propagation']),
      servers: ['ns1.shop.com match', 'ns3.shop.com absent'],
    })
  })

  test('a record only at the name servers from before a move', async () => {
    const respond = seenBy({
      registry: world(NEW_HOST),
      old: world(OLD_HOST, RECORD),
      new: world(NEW_HOST),
    })
    expect(await checkOver(respond, roundMs, lost)).toEqual({
      verdict: 'fix',
      codes: ['missing', 'wrong_provider_hint'],
      servers: ['ns3.shop.com absent'],
    })
  })

  test('a record only at the new name servers', async () => {
    const respond = seenBy({
      registry: world(NEW_HOST),
      old: world(OLD_HOST),
      new: world(NEW_HOST, RECORD),
    })
    expect(await checkOver(respond, roundMs, lost)).toEqual({
      verdict: 'wait',
      codes: ['stale_delegation'],
      servers: ['ns3.shop.com match'],
    })
  })
})
