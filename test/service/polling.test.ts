import { describe, expect, it } from 'vitest'
import { run } from '../../src/cli.ts'
import { TransportError } from '../../src/context.ts'
import { CliError, Exit } from '../../src/errors.ts'
import { poll } from '../../src/service/polling.ts'
import { createFakeClock, createFakeContext, jsonResponse } from '../fake-context.ts'

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

  it.each([1, 2, 3])(
    'the first value is asked for again after %d failures of the service',
    async (failures) => {
      const failure = new CliError('failed', Exit.unavailable, 'failed', { status: 503 })
      const { seen } = await take([...Array<CliError>(failures).fill(failure), 'on', 'end'], undefined)
      expect(seen).toEqual(['on', 'end'])
    },
  )

  it('polling fails if the service fails four times before the first value', async () => {
    const failure = new CliError('failed', Exit.unavailable, 'failed', { status: 503 })
    await expect(take(Array(4).fill(failure), undefined)).rejects.toBe(failure)
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

describe('a watch with --timeout of a service that no longer answers', () => {
  const CLAIM = { object: 'domain_claim', domain_id: 'd-1', name: 'example.com', status: 'pending' }
  const IMPORT = { object: 'contact_import', id: 'i-1', status: 'in_progress' }

  /** Runs a command at a service that answers the first requests and then lets every other one wait. */
  async function type(line: string, answers: number) {
    const clock = createFakeClock()
    let requests = 0
    const context = createFakeContext({
      clock,
      environment: { settings: { base_url: 'http://127.0.0.1:1' }, apiKey: 'key-1' },
      respond: ({ url, timeoutMs }) => {
        if (++requests <= answers) return jsonResponse(200, url.pathname.includes('import') ? IMPORT : CLAIM)
        clock.advance(timeoutMs)
        throw new TransportError('timeout', 'maybe', 'no complete response')
      },
    })
    const code = await run(line.split(' '), context)
    return { code, stderr: context.stderr.text, waited: clock.monotonic() }
  }

  it.each(['claims watch d-1', 'imports watch i-1'])(
    '%s ends in time with exit 8, even if there was no answer at all',
    async (command) => {
      const { code, stderr, waited } = await type(`${command} --timeout 5`, 0)
      expect(stderr).toContain(
        'error: timed out after 5 seconds: no response from http://127.0.0.1:1: no complete response\n',
      )
      expect([code, waited]).toEqual([8, 5000])
    },
  )

  it.each([
    ['claims watch d-1', 1],
    ['claims verify d-1 --no-check --wait', 3],
    ['imports watch i-1', 1],
  ])('%s names what was seen last, and that the last poll failed', async (command, answers) => {
    const { code, stderr, waited } = await type(`${command} --timeout 5`, answers)
    expect(stderr).toMatch(
      /^error: timed out after 5 seconds: .* still in progress.*; the last poll failed: no response from /m,
    )
    expect(stderr).not.toContain('retrying')
    expect(code).toBe(8)
    expect(waited).toBeLessThanOrEqual(7000)
  })

  it('the last poll, at the timeout, still has two seconds', async () => {
    const { code, waited } = await type('claims watch d-1 --timeout 2 --interval 2', 2)
    expect(code).toBe(8)
    expect(waited).toBeLessThanOrEqual(4000)
  })

  it('a failure that comes before the time is up keeps its exit code', async () => {
    expect(await type('claims watch d-1 --timeout 600', 0)).toMatchObject({ code: 7, waited: 30_000 })
  })
})
