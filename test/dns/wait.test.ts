import { expect, test } from 'vitest'
import { waitForRecord } from '../../src/dns/wait.ts'
import { createDeadline } from '../../src/timeout.ts'
import { createFakeClock } from '../fake-context.ts'
import { AA, type Asked, createFakeDns, type FakeReply } from './fake-dns.ts'
import { smallWorld } from './fake-internet.ts'

const resolver = { address: '192.0.2.53', port: 53 }
const request = {
  name: 'example.com',
  expected: 'prefix=token',
  resolvers: [resolver],
  authoritativePort: 53,
  publicResolvers: false,
}

function fakeEffects(respond: (asked: Asked) => FakeReply, clock = createFakeClock()) {
  const random = { bytes: (length: number) => new Uint8Array(length).fill(3), fraction: () => 0 }
  return { clock, dns: createFakeDns(respond, clock), random, signal: new AbortController().signal }
}

const waitFor = (timeoutMs: number, effects: ReturnType<typeof fakeEffects>) =>
  waitForRecord({ ...request, deadline: createDeadline(timeoutMs, effects.clock) }, effects)

/** Waits for a record that appears at the name server after `appearsAfterMs`. */
async function runWait(appearsAfterMs: number, timeoutMs: number) {
  const clock = createFakeClock()
  const txt = () => (clock.monotonic() >= appearsAfterMs ? ['prefix=token'] : [])
  const effects = fakeEffects(smallWorld(txt), clock)
  const delays: (number | null)[] = []
  const checks = waitFor(timeoutMs, effects)
  let next = await checks.next()
  while (!next.done) {
    delays.push(next.value.nextInMs)
    next = await checks.next()
  }
  return { report: next.value, delays, clock }
}

test('waitForRecord repeats the check after 5, 10 and 20 seconds, then every 30 seconds', async () => {
  const { report, delays } = await runWait(90_000, 3_600_000)
  expect(delays).toEqual([5000, 10_000, 20_000, 30_000, 30_000, null])
  expect(report.verdict).toBe('ready')
})

test('waitForRecord notices the record within three seconds after the name servers have it', async () => {
  for (const appears of [1000, 4000, 16_500, 61_000, 1_000_000]) {
    const { report, clock } = await runWait(appears, 3_600_000)
    expect(report.verdict).toBe('ready')
    expect(clock.monotonic() - appears).toBeLessThanOrEqual(3000)
  }
})

test('waitForRecord makes only the four scheduled checks in 35 s if there is a CNAME at the name', async () => {
  const world = smallWorld(() => [])
  const effects = fakeEffects((asked) => {
    if (asked.server === '192.0.2.2' && asked.name === 'example.com' && asked.type === 'TXT')
      return {
        flags: AA,
        answers: [{ name: 'example.com', type: 'CNAME', ttl: 60, data: 'x.example.com' }],
      }
    return world(asked)
  })
  let checks = 0
  for await (const _ of waitFor(35_000, effects)) checks++
  expect(checks).toBe(4)
})

test('waitForRecord repeats the check only after the negative TTL, or at the deadline, if only the resolver responds', async () => {
  const world = smallWorld(() => [])
  const blocked = (asked: Asked): FakeReply =>
    asked.server === resolver.address ? world(asked) : 'unreachable'
  const effects = fakeEffects(blocked)
  const delays: (number | null)[] = []
  for await (const step of waitFor(150_000, effects)) delays.push(step.nextInMs)
  expect(delays).toEqual([60_000, 60_000, 30_000, null])
})

test('waitForRecord ends with the finding `resolver_differs` if a resolver still denies the record after the negative TTL', async () => {
  const [world, inside] = [smallWorld(() => ['prefix=token']), smallWorld(() => [])]
  const effects = fakeEffects((asked) => (asked.server === resolver.address ? inside(asked) : world(asked)))
  const codes: unknown[] = []
  for await (const { report } of waitFor(3_600_000, effects)) codes.push(report.findings[0]?.code)
  expect(new Set(codes.slice(0, -1))).toEqual(new Set(['cached']))
  expect([codes.at(-1), effects.clock.monotonic()]).toEqual(['resolver_differs', 65_000])
})

test('waitForRecord ends after one check if the record is visible', async () => {
  expect((await runWait(0, 60_000)).delays).toEqual([null])
})

test('waitForRecord ends with a last check at the deadline if the record does not appear', async () => {
  const { report, delays, clock } = await runWait(Number.POSITIVE_INFINITY, 20_000)
  expect(delays).toEqual([5000, 10_000, 5000, null])
  expect(report).toMatchObject({ verdict: 'fix', findings: [{ code: 'missing' }] })
  expect(clock.monotonic()).toBe(20_000)
})
