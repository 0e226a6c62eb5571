import { describe, expect, it } from 'vitest'
import { CliError } from '../../src/errors.ts'
import type { RequestLimits } from '../../src/service/client.ts'
import { followResource } from '../../src/service/follow.ts'
import { createDeadline, remainingMsOrMin } from '../../src/timeout.ts'
import { createFakeContext } from '../fake-context.ts'

const DELAYS = { firstMs: 2000, maxMs: 30_000 }
const down = (retryAfterMs?: number) => new CliError('unreachable', 'down', { retryAfterMs })

/** Follows a resource whose requests get these statuses or errors in turn, repeating the last; the status `end` is final. */
function following(
  answers: readonly (string | Error)[],
  {
    timeoutMs = Number.POSITIVE_INFINITY,
    steady = 0,
    known,
  }: { timeoutMs?: number; steady?: number; known?: string } = {},
) {
  const context = createFakeContext()
  const asked: RequestLimits[] = []
  const events = followResource(
    {
      deadline: createDeadline(timeoutMs, context.clock),
      delays: { ...DELAYS, steady },
      ...(known !== undefined && { known: { status: known } }),
      async fetch(given) {
        asked.push(given)
        const answer = answers[Math.min(asked.length, answers.length) - 1]
        if (answer instanceof Error) throw answer
        return { status: answer ?? '' }
      },
      describe: ({ status }) => ({ status, text: `is ${status}`, ...(status === 'end' && { end: {} }) }),
      timeout: () => ({ code: 'import_in_flight', what: 'it', hint: 'watch it' }),
    },
    context,
  )
  return { events, asked, context }
}

/** Runs a watch to its end. @returns names of events, request options, result, delays and elapsed milliseconds */
async function take(...given: Parameters<typeof following>) {
  const { events, asked, context } = following(...given)
  const seen: string[] = []
  for (;;) {
    const { done, value } = await events.next()
    if (done)
      return { seen, asked, end: value, slept: context.clock.slept, passed: context.clock.monotonic() }
    seen.push(value.event)
  }
}

describe('following', () => {
  it('of the delays between requests of a watch, the first `steady` are equal, and the later ones grow by half up to a maximum', async () => {
    const { slept } = await take([...Array(10).fill('on'), 'end'])
    expect(slept).toEqual([2000, 3000, 4500, 6750, 10125, 15187.5, 22781.25, 30000, 30000, 30000])
    expect((await take([...Array(4).fill('on'), 'end'], { steady: 3 })).slept).toEqual([
      2000, 2000, 2000, 3000,
    ])
  })

  it('a watch yields events for each change, once a minute without a change, and at the end', async () => {
    const { seen, end } = await take([...Array(8).fill('on'), 'off', 'end'])
    expect(seen).toEqual(['status', 'waiting', 'status', 'done'])
    expect(end).toEqual({ value: { status: 'end' }, error: undefined })
    expect((await take(['end'])).seen).toEqual(['status', 'done'])
  })

  it('the first request of a watch that begins without `known` has the usual retries, and its failure ends the watch; each later request has one attempt', async () => {
    const { asked } = await take(['on', 'end'])
    expect(asked.map(({ maxAttempts }) => maxAttempts)).toEqual([undefined, 1])
    await expect(take([down()])).rejects.toMatchObject({ code: 'unreachable' })
  })

  it('a watch that knows its resource, from its first request or from its caller, warns about a failed request and continues', async () => {
    const { seen } = await take(['on', down(), down(), 'end'])
    expect(seen).toEqual(['status', 'warning', 'warning', 'done'])
    expect((await take([down(), 'end'], { known: 'on' })).seen).toEqual(['warning', 'done'])
  })

  it.each([
    [120_000, 120_000],
    [999_999_999_000, 300_000],
  ])('after a Retry-After of %i ms, a watch pauses for %i ms', async (retryAfterMs, waitedMs) => {
    expect((await take(['on', down(retryAfterMs), 'end'])).slept).toEqual([2000, waitedMs])
  })

  it('a watch fails if the resource is not found, or if its requests keep failing', async () => {
    const gone = new CliError('not_found', 'not_found')
    await expect(take(['on', gone])).rejects.toMatchObject({ exit: 5 })
    await expect(take(['on', down()])).rejects.toMatchObject({ code: 'unreachable' })
  })

  it('a watch sends its last request at its timeout, gives it two seconds, and ends with exit 8', async () => {
    const { end, passed, asked } = await take(['on'], { timeoutMs: 10_000 })
    expect(end.error).toMatchObject({
      code: 'import_in_flight',
      exit: 8,
      message: 'timed out after 10 seconds: it is still in progress (is on)',
      hint: 'watch it',
    })
    expect(passed).toBe(10_000)
    expect(asked.map(({ timeoutMs }) => timeoutMs)).toEqual([10_000, 8000, 5000, 2000, 2000])
    const refused = await take(['on', down(60_000)], { timeoutMs: 10_000 })
    expect([refused.seen, refused.passed]).toEqual([['status', 'warning'], 10_000])
    expect(refused.end.error?.message).toMatch(/is on\); the last request failed: down$/)
  })

  it('an interrupt ends a watch at once, with exit 130', async () => {
    const { events, context } = following(['on'])
    await events.next()
    context.interrupt()
    await expect(events.next()).rejects.toMatchObject({ exit: 130 })
  })
})

it.each([
  { timeoutMs: 10_000, passed: 0, left: 10_000 },
  { timeoutMs: 10_000, passed: 9500, left: 2000 },
  { timeoutMs: 1000, passed: 0, left: 2000 },
  { timeoutMs: Number.POSITIVE_INFINITY, passed: 0, left: Number.POSITIVE_INFINITY },
])('remainingMsOrMin is $left ms after $passed of $timeoutMs ms', ({ timeoutMs, passed, left }) => {
  let now = 70_000
  const deadline = createDeadline(timeoutMs, { monotonic: () => now })
  now += passed
  expect(remainingMsOrMin(deadline)).toBe(left)
})
