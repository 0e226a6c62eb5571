import { expect, test } from 'vitest'
import { type HttpRequest, type HttpResponse, type HttpTransport, TransportError } from '../../src/context.ts'
import { paceRequests } from '../../src/service/pace-requests.ts'
import { createVirtualClock } from '../dns/virtual-clock.ts'
import { jsonResponse } from '../fake-context.ts'

const REQUEST: HttpRequest = {
  method: 'POST',
  url: new URL('http://service.test/'),
  headers: {},
  timeoutMs: 1000,
}
const WINDOW_MS = 1000
const START = Date.parse('2026-11-20T12:00:00Z')

type Say = (limit: {
  limit: number
  remaining: number
  resetMs: number
  now: number
}) => Record<string, string>

const seconds = (ms: number) => String(Math.ceil(ms / 1000))
const classic: Say = ({ limit, remaining, resetMs }) => ({
  'ratelimit-limit': `${limit}`,
  'ratelimit-remaining': `${remaining}`,
  'ratelimit-reset': seconds(resetMs),
})

/** A service with a limit in every second, and a round trip of 20 ms; and what it saw. */
function limitedService(limit: number, say: Say, others = 0) {
  const virtual = createVirtualClock()
  const clock = { ...virtual, now: () => START + virtual.now() }
  const seen = { answered: 0, refused: 0, atOnce: 0, most: 0 }
  let windowEnd = 0
  let used = 0
  const http: HttpTransport = {
    async send() {
      seen.atOnce += 1
      seen.most = Math.max(seen.most, seen.atOnce)
      await clock.sleep(10)
      if (clock.monotonic() >= windowEnd) {
        windowEnd = clock.monotonic() + WINDOW_MS
        used = others
      }
      const isRefused = used >= limit
      if (!isRefused) used += 1
      const headers = say({
        limit,
        remaining: limit - used,
        resetMs: windowEnd - clock.monotonic(),
        now: clock.now(),
      })
      const retryAfter = { 'retry-after': seconds(windowEnd - clock.monotonic()) }
      await clock.sleep(10)
      seen.atOnce -= 1
      seen[isRefused ? 'refused' : 'answered'] += 1
      return isRefused ? jsonResponse(429, {}, { ...headers, ...retryAfter }) : jsonResponse(200, {}, headers)
    },
    close: async () => {},
  }
  return { clock, http, seen }
}

async function sendAll(count: number, service: ReturnType<typeof limitedService>, concurrent = 16) {
  const paced = paceRequests(service.http, service.clock, { concurrent })
  const responses = await Promise.all(Array.from({ length: count }, () => paced.send(REQUEST)))
  return { statuses: new Set(responses.map(({ status }) => status)), ms: service.clock.monotonic() }
}

test.each<[string, Say]>([
  ['the headers of three names', classic],
  [
    'the two structured headers',
    ({ limit, remaining, resetMs }) => ({
      'ratelimit-policy': `"default";q=${limit};w=1`,
      ratelimit: `"default";r=${remaining};t=${seconds(resetMs)}`,
    }),
  ],
  [
    'headers that begin with X, and a time since 1970',
    ({ limit, remaining, resetMs, now }) => ({
      'x-ratelimit-limit': `${limit}`,
      'x-ratelimit-remaining': `${remaining}`,
      'x-ratelimit-reset': `${(now + resetMs) / 1000}`,
    }),
  ],
])('1,000 requests take what 50 a second allow, and none is refused: %s', async (_what, say) => {
  const service = limitedService(50, say)
  const { statuses, ms } = await sendAll(1000, service)
  expect(statuses).toEqual(new Set([200]))
  expect(service.seen).toMatchObject({ refused: 0, answered: 1000 })
  // Twenty windows, the last of which is not waited for.
  expect(ms / (19 * WINDOW_MS)).toBeLessThan(1.1)
})

test('a request that was refused for the rate succeeds later, even if others use up the limit', async () => {
  const service = limitedService(10, classic, 7)
  const { statuses } = await sendAll(30, service)
  expect(statuses).toEqual(new Set([200]))
  expect(service.seen.answered).toBe(30)
})

test('without headers about the limit, Retry-After holds for all requests', async () => {
  const service = limitedService(5, () => ({}))
  const { statuses, ms } = await sendAll(40, service, 8)
  expect(statuses).toEqual(new Set([200]))
  // Of the eight that are sent before the first refusal is heard, three are refused in each of the seven windows.
  expect(service.seen.refused).toBeLessThanOrEqual(8 * 8)
  expect(ms).toBeLessThan(10 * WINDOW_MS)
})

test('no more requests are sent at once than allowed', async () => {
  const service = limitedService(1000, () => ({}))
  await sendAll(100, service, 4)
  expect(service.seen.most).toBe(4)
})

test('a service that asks for an hour is not waited for', async () => {
  const clock = createVirtualClock()
  const send = async () => jsonResponse(429, {}, { 'retry-after': '3600' })
  const paced = paceRequests({ send, close: async () => {} }, clock, { concurrent: 2 })
  const responses = await Promise.all([paced.send(REQUEST), paced.send(REQUEST), paced.send(REQUEST)])
  expect(responses.map(({ status }) => status)).toEqual([429, 429, 429])
  expect(clock.monotonic()).toBeLessThan(1)
})

test.each([502, 401])(
  'responses with the status %d and without a limit, as many as the limit allows, stop nothing',
  async (status) => {
    const service = limitedService(5, classic)
    let failures = 0
    const send: HttpTransport['send'] = async (request) => {
      if (service.clock.monotonic() < WINDOW_MS || failures === 5) return service.http.send(request)
      failures += 1
      return jsonResponse(status, {})
    }
    const { statuses, ms } = await sendAll(40, { ...service, http: { ...service.http, send } })
    expect(ms).toBeLessThan(10 * WINDOW_MS)
    expect(statuses).toEqual(new Set([200, status]))
    expect(failures).toBe(5)
    expect(service.seen.answered).toBe(35)
  },
)

test('a request with a step before it is sent, as one under a lock has, waits for no other', async () => {
  const service = limitedService(1, classic)
  const paced = paceRequests(service.http, service.clock, { concurrent: 1 })
  const others = Array.from({ length: 10 }, () => paced.send(REQUEST))
  await paced.send({ ...REQUEST, beforeSend: () => {} })
  expect(service.clock.monotonic()).toBeLessThan(WINDOW_MS)
  await Promise.all(others)
})

test('where the limit leaves no time for all, most of what has begun gets to its end', async () => {
  const service = limitedService(2, classic)
  const paced = paceRequests(service.http, service.clock, { concurrent: 16 })
  const latest = { start: 60_000, end: 60_000 }
  let ended = 0
  const work = async () => {
    for (const goesOn of [false, true, true, true]) await paced.send({ ...REQUEST, latest, goesOn })
    ended += 1
  }
  const ends = await Promise.allSettled(Array.from({ length: 200 }, work))
  // Of 120 requests.
  expect(ended).toBeGreaterThan(15)
  for (const end of ends)
    if (end.status === 'rejected')
      expect(end.reason).toMatchObject({
        kind: 'limited',
        message: 'the time was up before the rate limit of the service let the request through',
      })
})

test('where the limit shows in refusals alone, it is the limit that leaves no time', async () => {
  const service = limitedService(2, () => ({}))
  const paced = paceRequests(service.http, service.clock, { concurrent: 4 })
  const latest = { start: 5000, end: 5000 }
  const ends = await Promise.allSettled(Array.from({ length: 50 }, () => paced.send({ ...REQUEST, latest })))
  const late = ends.flatMap((end) => (end.status === 'rejected' ? [end.reason.kind] : []))
  expect(late.length).toBeGreaterThan(30)
  expect(new Set(late)).toEqual(new Set(['limited']))
})

test('what has begun does not keep other work from beginning', async () => {
  const service = limitedService(2, classic)
  const paced = paceRequests(service.http, service.clock, { concurrent: 4 })
  const endless = Promise.all(Array.from({ length: 200 }, () => paced.send({ ...REQUEST, goesOn: true })))
  await Promise.all(Array.from({ length: 10 }, () => paced.send(REQUEST)))
  expect(service.clock.monotonic()).toBeLessThan(30_000)
  await endless
})

test('while the limit holds requests up, it is told how many get through', async () => {
  const service = limitedService(2, classic)
  const paced = paceRequests(service.http, service.clock, { concurrent: 16 })
  expect(paced.heldUp()).toBeUndefined()
  const all = Promise.all(Array.from({ length: 30 }, () => paced.send(REQUEST)))
  await service.clock.sleep(10_500)
  expect(paced.heldUp()).toMatch(/^its rate limit \(2 a second\), for \d+ s$/)
  await all
  expect(paced.heldUp()).toBeUndefined()
})

test('after a refusal for longer than anybody waits, the other requests fail without being sent', async () => {
  const clock = createVirtualClock()
  let sent = 0
  const http: HttpTransport = {
    async send() {
      sent += 1
      const isRefused = sent > 5
      await clock.sleep(20)
      return isRefused ? jsonResponse(429, {}, { 'retry-after': '3600' }) : jsonResponse(200, {})
    },
    close: async () => {},
  }
  const paced = paceRequests(http, { ...clock, now: () => START + clock.now() }, { concurrent: 2 })
  const responses = await Promise.all(Array.from({ length: 40 }, () => paced.send(REQUEST)))
  expect(responses.filter(({ status }) => status === 429)).toHaveLength(35)
  expect(new Set(responses.slice(10).map(({ headers }) => headers['retry-after']))).toEqual(new Set(['3600']))
  expect(sent).toBeLessThanOrEqual(5 + 5)
})

test('a refusal for hours of a few requests does not keep the others from being sent', async () => {
  const clock = createVirtualClock()
  const http: HttpTransport = {
    async send({ url }) {
      await clock.sleep(20)
      return url.pathname === '/v' ? jsonResponse(429, {}, { 'retry-after': '3600' }) : jsonResponse(200, {})
    },
    close: async () => {},
  }
  const paced = paceRequests(http, { ...clock, now: () => START + clock.now() }, { concurrent: 4 })
  const paths = Array.from({ length: 60 }, (_, index) => (index % 15 === 0 ? '/v' : '/'))
  const requests = paths.map((path) => ({ ...REQUEST, url: new URL(path, REQUEST.url) }))
  const responses = await Promise.all(requests.map((request) => paced.send(request)))
  expect(responses.map(({ status }) => status)).toEqual(paths.map((path) => (path === '/v' ? 429 : 200)))
  expect(clock.monotonic()).toBeLessThan(2000)
})

test('a refusal without a time slows all requests down, and none is lost', async () => {
  const service = limitedService(5, () => ({}))
  const send: HttpTransport['send'] = async (request) => {
    const { status, body } = await service.http.send(request)
    return { status, headers: {}, body }
  }
  const { statuses } = await sendAll(40, { ...service, http: { ...service.http, send } })
  expect(statuses).toEqual(new Set([200]))
})

const BY_TEN_SECONDS: HttpRequest = { ...REQUEST, latest: { start: 10_000, end: 10_000 } }

test('at a service that hangs, requests that have no turn before their deadline are not sent, however many they are', async () => {
  const clock = createVirtualClock()
  let sent = 0
  const http: HttpTransport = {
    async send({ timeoutMs }) {
      sent += 1
      await clock.sleep(timeoutMs)
      throw new TransportError('timeout', 'maybe', 'no complete response')
    },
    close: async () => {},
  }
  const paced = paceRequests(http, clock, { concurrent: 16 })
  const request = { ...BY_TEN_SECONDS, timeoutMs: 4000 }
  const ends = await Promise.allSettled(Array.from({ length: 200 }, () => paced.send(request)))
  expect(clock.monotonic()).toBeLessThan(10_001)
  expect(sent).toBe(3 * 16)
  for (const end of ends.slice(sent))
    expect(end).toMatchObject({
      reason: { kind: 'timeout', sent: 'no', message: 'the time was up before the request could be sent' },
    })
})

test('a request that must not be cut off is left its time, but has to begin before the deadline', async () => {
  const clock = createVirtualClock()
  const times: number[] = []
  const http: HttpTransport = {
    async send({ timeoutMs }) {
      times.push(timeoutMs)
      await clock.sleep(timeoutMs)
      return jsonResponse(200, {})
    },
    close: async () => {},
  }
  const paced = paceRequests(http, clock, { concurrent: 1 })
  const whole = { ...REQUEST, timeoutMs: 8000, latest: { start: 10_000, end: Number.POSITIVE_INFINITY } }
  const ends = await Promise.allSettled([whole, whole, whole].map((request) => paced.send(request)))
  expect(ends.map(({ status }) => status)).toEqual(['fulfilled', 'fulfilled', 'rejected'])
  expect(times).toEqual([8000, 8000])
})

test.each<[string, Record<string, string>, number]>([
  ['asks to wait beyond it', { 'retry-after': '30' }, 1],
  ['says that its limit lasts beyond it', { 'ratelimit-remaining': '0', 'ratelimit-reset': '30' }, 1],
  ['goes on refusing', {}, 10_000],
])('requests with a deadline get the refusal of a service that %s', async (_what, headers, ms) => {
  const clock = createVirtualClock()
  let sent = 0
  const send = async () => {
    sent += 1
    return jsonResponse(429, {}, headers)
  }
  const paced = paceRequests({ send, close: async () => {} }, clock, { concurrent: 2 })
  const responses = await Promise.all(Array.from({ length: 50 }, () => paced.send(BY_TEN_SECONDS)))
  expect(new Set(responses.map(({ status }) => status))).toEqual(new Set([429]))
  expect(clock.monotonic()).toBeLessThan(ms)
  expect(sent).toBeLessThanOrEqual(2 * 10)
})

test.each([
  ['30', '30'],
  ['29.2', '30'],
  ['0', undefined],
  // It may be much longer than anybody waits.
  ['3600', undefined],
])(
  'a refusal whose rate limit ends in %s seconds has that time as Retry-After: %s',
  async (reset, expected) => {
    const { paced } = refusingService({ 'ratelimit-remaining': '0', 'ratelimit-reset': reset })
    const { status, headers } = await paced.send(BY_TEN_SECONDS)
    expect([status, headers['retry-after']]).toEqual([429, expected])
  },
)

/** A service that refuses everything for a while, with a round trip of 20 ms; and when it was asked. */
function refusingService(headers: Record<string, string>, untilMs = Number.POSITIVE_INFINITY, status = 429) {
  const clock = createVirtualClock()
  const times: number[] = []
  const http: HttpTransport = {
    async send() {
      times.push(clock.monotonic())
      await clock.sleep(20)
      return clock.monotonic() < untilMs ? jsonResponse(status, {}, headers) : jsonResponse(200, {})
    },
    close: async () => {},
  }
  return { times, clock, paced: paceRequests(http, clock, { concurrent: 16 }) }
}

const MINUTE = 60_000

test.each<[string, Record<string, string>]>([
  ['without a time', {}],
  ['with a short time', { 'retry-after': '5' }],
  ['with a time that is over', { 'retry-after': '0' }],
])(
  'a service that only refuses, %s, holds 200 requests up for five minutes in all',
  async (_what, headers) => {
    const { paced, clock, times } = refusingService(headers)
    const responses = await Promise.all(Array.from({ length: 200 }, () => paced.send(REQUEST)))
    expect(new Set(responses.map(({ status }) => status))).toEqual(new Set([429]))
    expect(clock.monotonic()).toBeLessThan(6 * MINUTE)
    // The first ones that are sent at once, twice, and then one after each pause.
    expect(times.length).toBeLessThan(16 * 2 + 70)
    expect(responses.at(-1)?.headers['retry-after']).toBeUndefined()
  },
)

test('while nothing gets through, one request at a time is sent, after pauses that grow', async () => {
  const { paced, times } = refusingService({}, 2 * MINUTE)
  const responses = await Promise.all(Array.from({ length: 100 }, () => paced.send(REQUEST)))
  expect(new Set(responses.map(({ status }) => status))).toEqual(new Set([200]))
  const seconds = times.map((ms) => Math.floor(ms / 1000))
  expect(seconds.filter((second) => second === 0)).toHaveLength(16)
  expect(seconds.filter((second) => second === 1)).toHaveLength(16)
  expect(seconds.filter((second) => second > 1).slice(0, 7)).toEqual([3, 7, 15, 31, 61, 91, 121])
})

test('a service that was given up is asked once after each pause, and all go on as soon as it accepts one', async () => {
  const { paced, clock, times } = refusingService({}, 7 * MINUTE)
  await Promise.all(Array.from({ length: 20 }, () => paced.send(REQUEST)))
  const before = times.length
  expect((await paced.send(REQUEST)).status).toBe(429)
  expect(times).toHaveLength(before)
  await clock.sleep(31_000)
  const again = await Promise.all(Array.from({ length: 20 }, () => paced.send(REQUEST)))
  expect(new Set(again.map(({ status }) => status))).toEqual(new Set([429]))
  expect(times).toHaveLength(before + 1)
  await clock.sleep(2 * MINUTE)
  const later = await Promise.all(Array.from({ length: 20 }, () => paced.send(REQUEST)))
  expect(new Set(later.map(({ status }) => status))).toEqual(new Set([200]))
})

test('the answer to a long refusal is not taken back by a shorter one that was on its way', async () => {
  const clock = createVirtualClock()
  let sent = 0
  const http: HttpTransport = {
    async send() {
      sent += 1
      const mine = sent
      await clock.sleep(20 * mine)
      return jsonResponse(429, {}, { 'retry-after': mine <= 5 ? '3600' : '1' })
    },
    close: async () => {},
  }
  const paced = paceRequests(http, clock, { concurrent: 6 })
  const responses = await Promise.all(Array.from({ length: 10 }, () => paced.send(REQUEST)))
  expect(clock.monotonic()).toBeLessThan(1000)
  expect(new Set(responses.map(({ headers }) => headers['retry-after']))).toEqual(new Set(['3600']))
})

test('requests of one kind that are always refused end, although others get through', async () => {
  const clock = createVirtualClock()
  const http: HttpTransport = {
    async send({ method }) {
      await clock.sleep(20)
      return jsonResponse(method === 'POST' ? 429 : 200, {})
    },
    close: async () => {},
  }
  const paced = paceRequests(http, clock, { concurrent: 16 })
  let isDone = false
  const others = (async () => {
    while (!isDone) await paced.send({ ...REQUEST, method: 'GET' })
  })()
  expect((await paced.send(REQUEST)).status).toBe(429)
  isDone = true
  await others
  expect(clock.monotonic()).toBeLessThan(6 * MINUTE)
})

test.each<[string, () => HttpResponse]>([
  ['the service is unavailable (503)', () => jsonResponse(503, {})],
  [
    'the connection was refused',
    () => {
      throw new TransportError('connect', 'no', 'the connection was refused')
    },
  ],
])(
  'while every request fails, that is told from two seconds on, until one gets an answer: %s',
  async (what, fail) => {
    const clock = createVirtualClock()
    let isDown = false
    const http: HttpTransport = {
      async send() {
        return isDown ? fail() : jsonResponse(404, {})
      },
      close: async () => {},
    }
    const paced = paceRequests(http, clock, { concurrent: 16 })
    const send = () => paced.send(REQUEST).catch(() => {})
    await send()
    isDown = true
    await send()
    await clock.sleep(1990)
    expect(paced.heldUp()).toBeUndefined()
    await clock.sleep(2900)
    await send()
    expect(paced.heldUp()).toBe(`${what}, for 5 s`)
    isDown = false
    await send()
    expect(paced.heldUp()).toBeUndefined()
  },
)

test.each([
  [{}, 429, 'too many requests (429), for 70 s'],
  [{ 'retry-after': '30' }, 503, 'the service is unavailable (503), for 70 s'],
])('what requests wait for is told: %j %d', async (headers, status, expected) => {
  const { paced, clock } = refusingService(headers, 100_000, status)
  expect(paced.heldUp()).toBeUndefined()
  const responses = Promise.all(Array.from({ length: 100 }, () => paced.send(REQUEST)))
  await clock.sleep(1000)
  expect(paced.heldUp()).toBeUndefined()
  await clock.sleep(68_990)
  expect(paced.heldUp()).toBe(expected)
  await responses
  expect(paced.heldUp()).toBeUndefined()
})
