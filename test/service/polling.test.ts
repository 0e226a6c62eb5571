import { describe, expect, it } from 'vitest'
import { CliError, Exit } from '../../src/errors.ts'
import { poll } from '../../src/service/polling.ts'
import { createFakeContext } from '../fake-context.ts'

const down = (retryAfterMs?: number) => new CliError('network', Exit.unavailable, 'down', { retryAfterMs })

async function take(
  answers: (string | Error)[],
  timeoutMs: number | undefined,
  context = createFakeContext(),
) {
  const seen: string[] = []
  let at = 0
  const ask = async () => {
    const answer = answers[Math.min(at++, answers.length - 1)]
    if (answer instanceof Error) throw answer
    return answer ?? ''
  }
  for await (const event of poll(
    ask,
    { delays: { first: 2000, max: 30_000 }, intervalMs: undefined, timeoutMs },
    context,
  )) {
    seen.push(event.kind === 'value' ? event.value : event.kind)
    if (event.kind === 'value' && event.value === 'end') break
  }
  return { seen, slept: context.clock.slept }
}

describe('polling', () => {
  it('the delay between polls grows by half up to the maximum', async () => {
    const { slept } = await take([...Array(10).fill('on'), 'end'], undefined)
    expect(slept).toEqual([2000, 3000, 4500, 6750, 10125, 15187.5, 22781.25, 30000, 30000, 30000])
  })

  it('the first delays can stay the same', async () => {
    const context = createFakeContext()
    let polls = 0
    const delays = { first: 1000, steady: 3, max: 30_000 }
    for await (const _ of poll(
      async () => polls++,
      { delays, intervalMs: undefined, timeoutMs: undefined },
      context,
    ))
      if (polls === 6) break
    expect(context.clock.slept).toEqual([1000, 1000, 1000, 1500, 2250])
  })

  it('polling survives network errors', async () => {
    expect((await take(['on', down(), down(), 'end'], undefined)).seen).toEqual([
      'on',
      'failure',
      'failure',
      'end',
    ])
  })

  it('polling waits as long as Retry-After says', async () => {
    expect((await take(['on', down(120_000), 'end'], undefined)).slept).toEqual([2000, 120_000])
  })

  it('polling cuts an absurd Retry-After to five minutes', async () => {
    const { slept, seen } = await take(['on', down(999_999_999_000), 'end'], undefined)
    expect(slept).toEqual([2000, 300_000])
    expect(seen).toEqual(['on', 'failure', 'end'])
  })

  it('polling fails if the first poll fails', async () => {
    await expect(take([down()], undefined)).rejects.toMatchObject({ code: 'network' })
  })

  it('polling fails on an error that waiting cannot fix', async () => {
    await expect(take(['on', new CliError('gone', Exit.notFound, 'gone')], undefined)).rejects.toMatchObject({
      exit: 5,
    })
  })

  it('polling fails after 15 minutes without a response', async () => {
    const context = createFakeContext()
    await expect(take(['on', down()], undefined, context)).rejects.toMatchObject({ code: 'network' })
    expect(context.clock.monotonic()).toBeGreaterThan(15 * 60_000)
    expect(context.clock.monotonic()).toBeLessThan(16 * 60_000)
  })

  it('the last poll is exactly at the timeout', async () => {
    const context = createFakeContext()
    const { seen } = await take(['on'], 10_000, context)
    expect(seen.at(-1)).toBe('timeout')
    expect(context.clock.monotonic()).toBe(10_000)
  })

  it('polling ends at once when interrupted', async () => {
    const context = createFakeContext()
    const asked = take(['on'], undefined, context)
    context.interrupt()
    await expect(asked).rejects.toMatchObject({ exit: 130 })
  })
})
