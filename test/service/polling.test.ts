import { describe, expect, it } from 'vitest'
import { CliError, Exit } from '../../src/errors.ts'
import type { RequestOptions } from '../../src/service/client.ts'
import { poll } from '../../src/service/polling.ts'
import { timeFor } from '../../src/timeout.ts'
import { createFakeContext } from '../fake-context.ts'

const DELAYS = { first: 2000, max: 30_000 }
const down = (retryAfterMs?: number) => new CliError('network', Exit.unavailable, 'down', { retryAfterMs })

/** Polls a service with these answers in turn, the last of which repeats; 'end' ends it. */
async function take(
  answers: readonly (string | Error)[],
  {
    timeoutMs = Number.POSITIVE_INFINITY,
    ...options
  }: { timeoutMs?: number; steady?: number; isKnown?: boolean } = {},
) {
  const context = createFakeContext()
  const seen: string[] = []
  const asked: RequestOptions[] = []
  const ask = async (given: RequestOptions) => {
    asked.push(given)
    const answer = answers[Math.min(asked.length, answers.length) - 1]
    if (answer instanceof Error) throw answer
    return answer ?? ''
  }
  const delays = options.steady === undefined ? DELAYS : { ...DELAYS, steady: options.steady }
  const events = poll(ask, { delays, timeoutMs, since: 0, isKnown: options.isKnown === true }, context)
  for await (const event of events) {
    seen.push(event.kind === 'value' ? event.value : event.kind)
    if (event.kind === 'value' && event.value === 'end') break
  }
  return { seen, asked, slept: context.clock.slept, passed: context.clock.monotonic() }
}

describe('polling', () => {
  it('the delay between polls grows by half up to the maximum, after as many as stay the same', async () => {
    const { slept } = await take([...Array(10).fill('on'), 'end'])
    expect(slept).toEqual([2000, 3000, 4500, 6750, 10125, 15187.5, 22781.25, 30000, 30000, 30000])
    expect((await take([...Array(4).fill('on'), 'end'], { steady: 3 })).slept).toEqual([
      2000, 2000, 2000, 3000,
    ])
  })

  it('the first value is asked for as any other request is, and the next ones once each', async () => {
    const { asked } = await take(['on', 'end'])
    expect(asked.map(({ maxAttempts }) => maxAttempts)).toEqual([undefined, 1])
    await expect(take([down()])).rejects.toMatchObject({ code: 'network' })
  })

  it('a failure after the first value is reported, and followed by another poll', async () => {
    expect((await take(['on', down(), down(), 'end'])).seen).toEqual(['on', 'failure', 'failure', 'end'])
    const known = await take([down(), 'end'], { isKnown: true })
    expect(known.seen).toEqual(['failure', 'end'])
  })

  it.each([
    [120_000, 120_000],
    [999_999_999_000, 300_000],
  ])('a Retry-After of %i ms is honored up to five minutes', async (retryAfterMs, waitedMs) => {
    expect((await take(['on', down(retryAfterMs), 'end'])).slept).toEqual([2000, waitedMs])
  })

  it('an error that waiting cannot fix ends it, and so do 15 minutes without a response', async () => {
    const gone = new CliError('gone', Exit.notFound, 'gone')
    await expect(take(['on', gone])).rejects.toMatchObject({ exit: 5 })
    await expect(take(['on', down()])).rejects.toMatchObject({ code: 'network' })
  })

  it('the last poll is exactly at the timeout, and has two seconds', async () => {
    const { seen, passed, asked } = await take(['on'], { timeoutMs: 10_000 })
    expect(seen.at(-1)).toBe('timeout')
    expect(passed).toBe(10_000)
    expect(asked.map(({ timeoutMs }) => timeoutMs)).toEqual([10_000, 8000, 5000, 2000, 2000])
    const refused = await take(['on', down(60_000)], { timeoutMs: 10_000 })
    expect([refused.seen, refused.passed]).toEqual([['on', 'failure', 'timeout'], 10_000])
  })

  it('ends at once when interrupted', async () => {
    const context = createFakeContext()
    const events = poll(
      async () => 'on',
      { delays: DELAYS, timeoutMs: Number.POSITIVE_INFINITY, since: 0 },
      context,
    )
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
])('of $timeoutMs ms, what starts after $passed ms gets $left ms', ({ timeoutMs, passed, left }) => {
  expect(timeFor({ timeoutMs, since: 70_000 }, { monotonic: () => 70_000 + passed })).toBe(left)
})
