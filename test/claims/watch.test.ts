import { describe, expect, it } from 'vitest'
import { type WatchEvent, type WatchOptions, watchClaim } from '../../src/claims/watch.ts'
import { CliError, Exit } from '../../src/errors.ts'
import type { DomainClaim } from '../../src/service/types.ts'
import { createFakeContext } from '../fake-context.ts'

const claim = (fields: Partial<Record<keyof DomainClaim, unknown>> = {}) =>
  ({ name: 'example.com', domain_id: 'd1', status: 'pending', ...fields }) as DomainClaim

const unavailable = (retryAfterMs?: number) =>
  new CliError('service_unavailable', Exit.unavailable, 'the service failed (503)', { retryAfterMs })

/** Watches answers in turn (the last one repeats) and gives every event, the end, and how long each pause was. */
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
    for (;;) {
      const step = await run.next()
      if (step.done) {
        end = step.value
        break
      }
      events.push(step.value)
    }
  } catch (error) {
    end = error
  }
  return { kinds: events.map(({ event }) => event), events, end, slept: context.clock.slept, asked: turn }
}

describe('watching a claim', () => {
  it('tells each change once, and ends with completed', async () => {
    const { kinds, end, asked } = await watch([
      claim(),
      claim(),
      claim({ status: 'verified' }),
      claim({ status: 'verified' }),
      claim({ status: 'completed' }),
    ])
    expect(kinds).toEqual(['status', 'status', 'done'])
    expect(end).toMatchObject({ claim: { status: 'completed' }, standing: { phase: 'completed' } })
    expect(asked).toBe(5)
  })

  it('pauses from two seconds to thirty, growing by half', async () => {
    const { slept } = await watch([
      ...Array.from({ length: 10 }, () => claim()),
      claim({ status: 'completed' }),
    ])
    expect(slept[0]).toBe(2000)
    expect(slept[1]).toBe(3000)
    expect(Math.max(...slept)).toBe(30_000)
    expect(slept.toSorted((a, b) => a - b)).toEqual(slept)
  })

  it('pauses as long as it is told to', async () => {
    const { slept } = await watch([claim(), claim(), claim({ status: 'completed' })], { intervalMs: 700 })
    expect(slept).toEqual([700, 700])
  })

  it('survives trouble, heeds Retry-After, and says so', async () => {
    const { kinds, events, slept, end } = await watch([
      claim(),
      unavailable(9000),
      unavailable(),
      claim({ status: 'completed' }),
    ])
    expect(kinds).toEqual(['status', 'warning', 'warning', 'done'])
    expect(events[1]?.message).toBe('the service failed (503); asking again in 9 s')
    expect(slept[1]).toBe(9000)
    expect(end).toMatchObject({ standing: { phase: 'completed' } })
  })

  it.each([
    ['trouble at the first question', [unavailable()], Exit.unavailable],
    ['a claim that is gone', [claim(), new CliError('not_found', Exit.notFound, 'gone')], Exit.notFound],
    [
      'a credential that is refused',
      [claim(), new CliError('refused', Exit.notSignedIn, 'no')],
      Exit.notSignedIn,
    ],
  ])('passes on %s', async (_what, answers, exit) => {
    expect((await watch(answers)).end).toMatchObject({ exit })
  })

  it('gives up after a long silence', async () => {
    const { end } = await watch([claim({ expires_at: null }), unavailable()])
    expect(end).toMatchObject({ exit: Exit.unavailable })
  })

  it.each(['failed', 'expired', 'superseded', 'canceled'])('ends with %s', async (status) => {
    const { kinds, end } = await watch([claim(), claim({ status })])
    expect(kinds).toEqual(['status', 'done'])
    expect(end).toMatchObject({ standing: { phase: 'ended' } })
  })

  it('ends with a block, unless blocks are waited out', async () => {
    const answers = [
      claim({ status: 'blocked', blocked_reason: 'grace_period' }),
      claim({ status: 'completed' }),
    ]
    expect((await watch(answers)).end).toMatchObject({ standing: { phase: 'blocked' } })
    const waited = await watch(answers, { throughBlocked: true })
    expect(waited.kinds).toEqual(['waiting', 'done'])
    expect(waited.end).toMatchObject({ standing: { phase: 'completed' } })
  })

  it('shows a status never heard of, and waits on', async () => {
    const { kinds, events, end } = await watch([
      claim({ status: 'under_review' }),
      claim({ status: 'completed' }),
    ])
    expect(kinds).toEqual(['warning', 'done'])
    expect(events[0]?.message).toContain('under_review')
    expect(end).toMatchObject({ standing: { phase: 'completed' } })
    expect((await watch([claim({ status: 'odd', failure_reason: 'broken' })])).end).toMatchObject({
      standing: { phase: 'ended' },
    })
  })

  it('stops when its time is over: exit 8', async () => {
    const { end, slept } = await watch([claim()], { timeoutMs: 6000 })
    expect(end).toMatchObject({ code: 'claim_in_flight', exit: Exit.notYet })
    expect(slept.reduce((sum, ms) => sum + ms, 0)).toBe(6000)
  })

  it.each([
    [
      'pending',
      'nothing is lost; go on with: mailclaim claims watch example.com; if the service was not asked to verify yet: mailclaim claims verify example.com',
    ],
    ['verified', 'nothing is lost; go on with: mailclaim claims watch example.com'],
  ])('that is %s when its time is over names the ways on', async (status, hint) => {
    expect((await watch([claim({ status })], { timeoutMs: 6000 })).end).toMatchObject({ hint })
  })

  it('stops once expires_at has passed while it watched: exit 9', async () => {
    const { kinds, end, slept } = await watch([claim({ expires_at: '2026-11-20 12:00:10.5+00' })])
    expect(end).toMatchObject({ code: 'claim_expired', exit: Exit.negativeEnd })
    expect(kinds).toEqual(['status'])
    expect(slept.reduce((sum, ms) => sum + ms, 0)).toBeGreaterThanOrEqual(10_500)
  })

  it('asks for half a minute where expires_at had passed before, since clocks differ', async () => {
    const over = claim({ expires_at: '2026-11-20 11:59:00+00' })
    const { kinds, end, slept } = await watch([over])
    expect(end).toMatchObject({ code: 'claim_expired' })
    expect(kinds).toEqual(['status', 'warning'])
    expect(slept.reduce((sum, ms) => sum + ms, 0)).toBeGreaterThanOrEqual(30_000)
    expect((await watch([over, over, claim({ status: 'completed' })])).end).toMatchObject({
      standing: { phase: 'completed' },
    })
  })

  it('lets a transfer that is running come to its end after expires_at', async () => {
    const running = claim({ expires_at: '2026-11-20 12:00:01+00', status: 'verified' })
    const { end } = await watch([running, running, running, claim({ status: 'completed' })])
    expect(end).toMatchObject({ standing: { phase: 'completed' } })
  })

  it.each([null, undefined, 'soon'])('goes on without an end where expires_at is %s', async (expires_at) => {
    const { end } = await watch([claim({ expires_at }), claim({ expires_at, status: 'completed' })])
    expect(end).toMatchObject({ standing: { phase: 'completed' } })
  })
})
