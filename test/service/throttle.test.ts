import { expect, test } from 'vitest'
import type { HttpRequest, HttpResponse, HttpTransport } from '../../src/context.ts'
import { createThrottlingTransport } from '../../src/service/throttle.ts'
import { createVirtualClock } from '../dns/virtual-clock.ts'
import { jsonResponse } from '../fake-context.ts'

const REQUEST: HttpRequest = {
  method: 'POST',
  url: new URL('http://service.test/'),
  headers: {},
  timeoutMs: 30_000,
}
const START = Date.parse('2026-11-20T12:00:00Z')

/**
 * Creates a throttling transport to a service with a round trip of 20 ms; `answer` gets the time in milliseconds and the
 * request's number.
 */
function service(answer: (now: number, count: number) => HttpResponse) {
  const virtual = createVirtualClock()
  const clock = { ...virtual, now: () => START + virtual.now() }
  const seen = { sent: 0, atOnce: 0, most: 0 }
  const http: HttpTransport = {
    async send() {
      seen.sent += 1
      seen.atOnce += 1
      seen.most = Math.max(seen.most, seen.atOnce)
      await clock.sleep(10)
      const response = answer(clock.monotonic(), seen.sent)
      await clock.sleep(10)
      seen.atOnce -= 1
      return response
    },
    close: async () => {},
  }
  const throttled = createThrottlingTransport(http, clock, { concurrent: 16 })
  const sendAll = (count: number, request = REQUEST) =>
    Promise.all(Array.from({ length: count }, () => throttled.send(request)))
  return { clock, seen, sendAll }
}

const refused = (retryAfter?: string) =>
  jsonResponse(429, {}, retryAfter === undefined ? {} : { 'retry-after': retryAfter })
const ok = () => jsonResponse(200, {})

test('1,000 throttled requests to a service that accepts 50 per second succeed within 25 seconds, up to 16 at once', async () => {
  let second = -1
  let left = 0
  const { clock, seen, sendAll } = service((now) => {
    if (Math.floor(now / 1000) !== second) [second, left] = [Math.floor(now / 1000), 50]
    return left-- > 0 ? ok() : refused('1')
  })
  const statuses = new Set((await sendAll(1000)).map(({ status }) => status))
  expect(statuses).toEqual(new Set([200]))
  expect(clock.monotonic()).toBeLessThan(25_000)
  expect(seen.most).toBe(16)
  expect(seen.sent).toBeLessThan(1500)
})

test.each([1, 8])(
  'with %i request(s) at once, the throttling transport doubles its pause after each round of 429s without Retry-After',
  async (count) => {
    const sent = new Set<number>()
    const { sendAll } = service((now) => {
      sent.add(Math.round(now / 1000))
      return now < 30_000 ? refused() : ok()
    })
    await sendAll(count)
    expect([...sent]).toEqual([0, 1, 3, 7, 15, 31])
  },
)

test('if the service refuses all requests, throttled requests return the last 429 response within six minutes', async () => {
  const { clock, seen, sendAll } = service(() => refused('20'))
  const statuses = new Set((await sendAll(100)).map(({ status }) => status))
  expect(statuses).toEqual(new Set([429]))
  expect(clock.monotonic()).toBeLessThan(6 * 60_000)
  expect(seen.sent).toBeLessThan(500)
})

test('the throttling transport returns a 429 response at once if its Retry-After is an hour', async () => {
  const { clock, sendAll } = service(() => refused('3600'))
  expect((await sendAll(20)).map(({ status }) => status)).toEqual(Array(20).fill(429))
  expect(clock.monotonic()).toBeLessThan(1000)
})

test('the throttling transport returns a 503 with Retry-After without a retry, and delays later requests', async () => {
  const { clock, sendAll } = service((_now, count) =>
    count === 1 ? jsonResponse(503, {}, { 'retry-after': '5' }) : ok(),
  )
  expect((await sendAll(1))[0]?.status).toBe(503)
  expect((await sendAll(1))[0]?.status).toBe(200)
  expect(clock.monotonic()).toBeGreaterThan(5000)
})

test('if the pause after a 429 exceeds the timeout of a request, the throttling transport returns a 429 at once, with the remaining seconds as Retry-After', async () => {
  const { clock, sendAll } = service((now) => (now < 40_000 ? refused('40') : ok()))
  const waiting = sendAll(1, { ...REQUEST, timeoutMs: 45_000 })
  await clock.sleep(1000)
  const [hasty] = await sendAll(1, { ...REQUEST, timeoutMs: 2000 })
  expect(hasty).toMatchObject({ status: 429, headers: { 'retry-after': '40' } })
  expect(clock.monotonic()).toBeLessThan(1100)
  expect((await waiting)[0]?.status).toBe(200)
})

test('the throttling transport sends a request with `beforeSend` even during the pause after a 429', async () => {
  const { clock, sendAll } = service((_now, count) => (count === 1 ? refused('30') : ok()))
  const waiting = sendAll(1)
  await clock.sleep(100)
  await sendAll(1, { ...REQUEST, beforeSend: () => {} })
  expect(clock.monotonic()).toBeLessThan(1000)
  await waiting
})
