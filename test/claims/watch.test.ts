import { describe, expect, it } from 'vitest'
import { type WatchEvent, type WatchOptions, watchClaim } from '../../src/claims/watch.ts'
import { CliError, Exit } from '../../src/errors.ts'
import type { DomainClaim } from '../../src/service/types.ts'
import { createFakeContext } from '../fake-context.ts'

const claim = (fields: Partial<Record<keyof DomainClaim, unknown>> = {}) =>
  ({ name: 'example.com', domain_id: 'd1', status: 'pending', ...fields }) as DomainClaim

const unavailable = (retryAfterMs?: number) =>
  new CliError('service_unavailable', Exit.unavailable, 'the service failed (503)', { retryAfterMs })

/** Watches these responses in turn (the last one repeats), and returns the events, the result and the delays. */
async function watch(answers: readonly (DomainClaim | Error)[], options: Partial<WatchOptions> = {}) {
  const context = createFakeContext()
  let turn = 0
  const events: WatchEvent[] = []
  const run = watchClaim(
    async () => {
      const answer = answers[Math.min(turn++, answers.length - 1)]
      if (answer instanceof Error) throw answer
      return answer ?? claim()
    },
    { intervalMs: undefined, timeoutMs: undefined, throughBlocked: false, ...options },
    context,
  )
  let end: unknown
  try {
    let step = await run.next()
    while (!step.done) {
      events.push(step.value)
      step = await run.next()
    }
    end = step.value
  } catch (error) {
    end = error
  }
  return { kinds: events.map(({ event }) => event), events, end, slept: context.clock.slept, asked: turn }
}

describe('watching a claim', () => {
  it('watching reports each change once and ends with completed', async () => {
    const { kinds, end, asked } = await watch([
      claim(),
      claim(),
      claim({ status: 'verified' }),
      claim({ status: 'verified' }),
      claim({ status: 'completed' }),
    ])
    expect(kinds).toEqual(['status', 'status', 'done'])
    expect(end).toMatchObject({ claim: { status: 'completed' }, state: { phase: 'completed' } })
    expect(asked).toBe(5)
  })

  it('right after a verification request it polls every second', async () => {
    const { slept } = await watch(
      [...Array.from({ length: 5 }, () => claim()), claim({ status: 'completed' })],
      { verifying: claim() },
    )
    expect(slept).toEqual([1000, 1000, 1000, 1500, 2250])
  })

  it('the delay between polls grows by half from 2 to 30 seconds', async () => {
    const { slept } = await watch([
      ...Array.from({ length: 10 }, () => claim()),
      claim({ status: 'completed' }),
    ])
    expect(slept[0]).toBe(2000)
    expect(slept[1]).toBe(3000)
    expect(Math.max(...slept)).toBe(30_000)
    expect(slept.toSorted((a, b) => a - b)).toEqual(slept)
  })

  it('a fixed interval is kept', async () => {
    const { slept } = await watch([claim(), claim(), claim({ status: 'completed' })], { intervalMs: 700 })
    expect(slept).toEqual([700, 700])
  })

  it('watching survives errors, honors Retry-After, and reports both', async () => {
    const { kinds, events, slept, end } = await watch([
      claim(),
      unavailable(9000),
      unavailable(),
      claim({ status: 'completed' }),
    ])
    expect(kinds).toEqual(['status', 'warning', 'warning', 'done'])
    expect(events[1]?.message).toBe('the service failed (503); retrying in 9 seconds')
    expect(slept[1]).toBe(9000)
    expect(end).toMatchObject({ state: { phase: 'completed' } })
  })

  it.each([
    ['an error of the first poll', [unavailable()], Exit.unavailable],
    ['a claim that is gone', [claim(), new CliError('not_found', Exit.notFound, 'gone')], Exit.notFound],
    ['a refused credential', [claim(), new CliError('refused', Exit.notSignedIn, 'no')], Exit.notSignedIn],
  ])('watching fails on %s', async (_what, answers, exit) => {
    expect((await watch(answers)).end).toMatchObject({ exit })
  })

  it('watching fails after a long silence', async () => {
    const { end } = await watch([claim({ expires_at: null }), unavailable()])
    expect(end).toMatchObject({ exit: Exit.unavailable })
  })

  it.each(['failed', 'expired', 'superseded', 'canceled'])(
    'watching ends when the claim is %s',
    async (status) => {
      const { kinds, end } = await watch([claim(), claim({ status })])
      expect(kinds).toEqual(['status', 'done'])
      expect(end).toMatchObject({ state: { phase: 'ended' }, error: { exit: Exit.negativeEnd } })
    },
  )

  it('watching ends when the claim is blocked, unless --through-blocked', async () => {
    const answers = [
      claim({ status: 'blocked', blocked_reason: 'grace_period' }),
      claim({ status: 'completed' }),
    ]
    expect((await watch(answers)).end).toMatchObject({ state: { phase: 'blocked' } })
    const waited = await watch(answers, { throughBlocked: true })
    expect(waited.kinds).toEqual(['waiting', 'done'])
    expect(waited.end).toMatchObject({ state: { phase: 'completed' } })
  })

  it('an unknown status is shown, and watching continues', async () => {
    const { kinds, events, end } = await watch([
      claim({ status: 'under_review' }),
      claim({ status: 'completed' }),
    ])
    expect(kinds).toEqual(['warning', 'done'])
    expect(events[0]?.message).toContain('under_review')
    expect(end).toMatchObject({ state: { phase: 'completed' } })
    expect((await watch([claim({ status: 'odd', failure_reason: 'broken' })])).end).toMatchObject({
      state: { phase: 'ended' },
    })
  })

  it('watching times out with exit 8', async () => {
    const { end, slept } = await watch([claim()], { timeoutMs: 6000 })
    expect(end).toMatchObject({
      claim: { status: 'pending' },
      error: {
        code: 'claim_in_flight',
        exit: Exit.notYet,
        message:
          'timed out after 6 seconds: example.com is still in progress (waiting for the TXT record to be verified)',
      },
    })
    expect(slept.reduce((sum, ms) => sum + ms, 0)).toBe(6000)
  })

  it.each([
    [
      'pending',
      "the claim continues; to keep watching: mailclaim claims watch example.com; if verification hasn't been requested yet: mailclaim claims verify example.com",
    ],
    ['verified', 'the claim continues; to keep watching: mailclaim claims watch example.com'],
  ])('after a timeout the hint for a %s claim names the next command', async (status, hint) => {
    expect((await watch([claim({ status })], { timeoutMs: 6000 })).end).toMatchObject({
      error: { hint },
    })
  })

  it('watching says once a minute that nothing has changed, and never the same twice', async () => {
    const { events, slept } = await watch([claim()], { timeoutMs: 300_000 })
    expect(events[0]).toMatchObject({ event: 'status', message: 'waiting for the TXT record to be verified' })
    const heartbeats = events.slice(1)
    expect(heartbeats.length).toBeGreaterThanOrEqual(3)
    expect(heartbeats.length).toBeLessThanOrEqual(5)
    expect(slept.length).toBeGreaterThan(heartbeats.length * 2)
    expect(heartbeats[0]?.message).toMatch(
      /^waiting for the TXT record to be verified \(\d+ seconds so far\)$/,
    )
    expect(new Set(heartbeats.map(({ event }) => event))).toEqual(new Set(['waiting']))
    expect(new Set(events.map(({ message }) => message)).size).toBe(events.length)
  })

  it('the same failure of each poll is reported once, and so is its end', async () => {
    const failing = Array.from({ length: 4 }, () => unavailable())
    const { kinds } = await watch([claim(), ...failing, claim(), claim({ status: 'completed' })], {
      intervalMs: 5000,
    })
    expect(kinds).toEqual(['status', 'warning', 'waiting', 'done'])
  })

  it('a pending claim waits for the service once verification was requested', async () => {
    const { events, end } = await watch([claim()], { timeoutMs: 6000, verifying: claim() })
    expect(events[0]?.message).toBe('waiting for the service to check the TXT record')
    expect(end).toMatchObject({
      error: { hint: 'the claim continues; to keep watching: mailclaim claims watch example.com' },
    })
  })

  it('watching ends with exit 9 when the claim expires meanwhile', async () => {
    const { kinds, end, slept } = await watch([claim({ expires_at: '2026-11-20 12:00:10.5+00' })])
    expect(end).toMatchObject({
      error: {
        code: 'claim_expired',
        exit: Exit.negativeEnd,
        message: expect.stringContaining('expired at 2026-11-20 12:00:10 UTC before'),
      },
    })
    expect(kinds).toEqual(['status'])
    expect(slept.reduce((sum, ms) => sum + ms, 0)).toBeGreaterThanOrEqual(10_500)
  })

  it('a claim that had expired before is watched for half a minute, since clocks differ', async () => {
    const over = claim({ expires_at: '2026-11-20 11:59:00+00' })
    const { kinds, end, slept } = await watch([over])
    expect(end).toMatchObject({ error: { code: 'claim_expired' } })
    expect(kinds).toEqual(['status', 'warning'])
    expect(slept.reduce((sum, ms) => sum + ms, 0)).toBeGreaterThanOrEqual(30_000)
    expect((await watch([over, over, claim({ status: 'completed' })])).end).toMatchObject({
      state: { phase: 'completed' },
    })
  })

  it('a transfer in progress is watched beyond expires_at', async () => {
    const running = claim({ expires_at: '2026-11-20 12:00:01+00', status: 'verified' })
    const { end } = await watch([running, running, running, claim({ status: 'completed' })])
    expect(end).toMatchObject({ state: { phase: 'completed' } })
  })

  it.each([null, undefined, 'soon'])('watching continues if expires_at is %s', async (expires_at) => {
    const { end } = await watch([claim({ expires_at }), claim({ expires_at, status: 'completed' })])
    expect(end).toMatchObject({ state: { phase: 'completed' } })
  })
})
