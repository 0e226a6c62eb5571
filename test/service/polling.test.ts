import { describe, expect, it, test } from 'vitest'
import { run } from '../../src/cli.ts'
import { type HttpRequest, type HttpResponse, TransportError } from '../../src/context.ts'
import { CliError, Exit } from '../../src/errors.ts'
import { deadlineOf, poll } from '../../src/service/polling.ts'
import { createVirtualClock } from '../dns/virtual-clock.ts'
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

  it.each([
    { timeoutMs: 1000, at: 0, until: 5000 },
    { timeoutMs: 1000, at: 900, until: 5000 },
    { timeoutMs: 4000, at: 0, until: 5000 },
    { timeoutMs: 10_000, at: 0, until: 10_000 },
    { timeoutMs: 10_000, at: 9500, until: 11_500 },
    { timeoutMs: 10_000, at: 10_900, until: 12_000 },
  ])(
    'of a time of $timeoutMs ms, a request after $at ms may take until $until ms',
    ({ timeoutMs, at, until }) => {
      const start = 70_000
      const clock = { monotonic: () => start + at }
      expect(deadlineOf({ timeoutMs, since: start }, clock) - start).toBe(until)
    },
  )

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

  it('a Retry-After that is longer than what is left ends the polling at once', async () => {
    const { seen, slept } = await take(['on', down(9000)], 10_000)
    expect([seen, slept]).toEqual([['on', 'timeout'], [2000]])
    await expect(take([down(11_000)], 10_000)).rejects.toMatchObject({
      code: 'network',
      retryAfterMs: 11_000,
    })
  })

  it.each([30_000, 400_000])(
    'a Retry-After of a day ends the polling at once, and is reported as it is, with %d ms',
    async (timeoutMs) => {
      const context = createFakeContext()
      const options = { delays: { first: 2000, max: 30_000 }, intervalMs: undefined, timeoutMs }
      const events = []
      const fail = () => Promise.reject(down(86_400_000))
      for await (const event of poll(fail, { ...options, isKnown: true }, context)) events.push(event)
      expect(events).toMatchObject([{ kind: 'timeout', retryAfterMs: 86_400_000 }])
      expect(context.clock.slept).toEqual([])
    },
  )

  it('the failures of a service that has answered before are reported from the first one on', async () => {
    const context = createFakeContext()
    const options = { delays: { first: 2000, max: 30_000 }, intervalMs: undefined, timeoutMs: 4000 }
    const kinds: string[] = []
    const fail = () => Promise.reject(down())
    for await (const { kind } of poll(fail, { ...options, isKnown: true }, context)) kinds.push(kind)
    expect(kinds).toEqual(['failure', 'failure', 'timeout'])
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
    '%s ends in time with exit 7 if there was no answer at all',
    async (command) => {
      const { code, stderr, waited } = await type(`${command} --timeout 5`, 0)
      expect(stderr).toContain(
        'error: timed out after 5 seconds: no response from http://127.0.0.1:1: no complete response\n',
      )
      expect([code, waited]).toEqual([7, 5000])
    },
  )

  it.each([
    ['claims watch d-1', 1],
    ['claims verify d-1 --no-check --wait', 3],
    ['imports watch i-1', 1],
  ])('%s names what was seen last, and that the last request failed', async (command, answers) => {
    const { code, stderr, waited } = await type(`${command} --timeout 5`, answers)
    expect(stderr).toMatch(
      /^error: timed out after 5 seconds: .* still in progress.*; the last request failed: no response from /m,
    )
    expect(stderr).not.toContain('retrying')
    expect(code).toBe(8)
    expect(waited).toBeLessThanOrEqual(7000)
  })

  it('a watch by the id says once how to continue', async () => {
    const { stderr } = await type('claims watch d-1 --timeout 5', 1)
    expect(stderr.match(/mailclaim claims watch/g)).toHaveLength(1)
    expect(stderr).toContain('to keep watching: mailclaim claims watch d-1 --timeout 5')
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

describe('verifying with --wait and --timeout', () => {
  const CLAIM = { object: 'domain_claim', domain_id: 'd-1', name: 'example.com', status: 'pending' }

  /** Runs the command at a service that answers the requests to verify in turn, and then with the claim. */
  async function verify(
    answers: readonly (HttpResponse | TransportError)[],
    { seconds = 10, statuses = ['pending', 'pending', 'completed'] } = {},
  ) {
    const left = [...answers]
    let reads = 0
    const context = createFakeContext({
      environment: { settings: { base_url: 'http://127.0.0.1:1' }, apiKey: 'key-1' },
      respond: ({ method }) => {
        const answer = method === 'POST' ? left.shift() : undefined
        if (answer instanceof TransportError) throw answer
        if (answer !== undefined) return answer
        const status = method === 'POST' ? 'pending' : statuses[Math.min(reads++, statuses.length - 1)]
        return jsonResponse(200, { ...CLAIM, status })
      },
    })
    const line = `claims verify d-1 --no-check --wait --timeout ${seconds}`
    const code = await run(line.split(' '), context)
    const asked = context.requests.map(({ method }) => method).join(' ')
    return { code, asked, stderr: context.stderr.text, waited: context.clock.monotonic() }
  }

  it('ends at once if the service asks to wait for longer, and says so', async () => {
    const { code, stderr, waited } = await verify([jsonResponse(429, {}, { 'retry-after': '60' })])
    expect([code, waited]).toEqual([8, 0])
    expect(stderr).toContain(
      'error: the service asks to wait 60 seconds, longer than --timeout allows; try again then: example.com is still',
    )
  })

  it('waits as long as the service asks if there is time', async () => {
    const { code, waited } = await verify([jsonResponse(429, {}, { 'retry-after': '6' })])
    expect(code).toBe(0)
    expect(waited).toBeGreaterThanOrEqual(6000)
  })

  it('ends in time at a service that refuses without saying for how long', async () => {
    const refusals = Array.from({ length: 50 }, () => jsonResponse(429, {}))
    const { code, waited } = await verify(refusals, { statuses: ['pending'] })
    expect([code, waited]).toEqual([8, 10_000])
  })

  it.each<[string, HttpResponse | TransportError]>([
    ['a failure of the service', jsonResponse(500, {})],
    ['a 503 without a time', jsonResponse(503, {})],
    ['a lost answer', new TransportError('reset', 'maybe', 'closed')],
  ])('asks again after %s, once the claim shows that it still waits for that', async (_what, answer) => {
    const { code, asked, stderr } = await verify([answer])
    expect([code, asked]).toEqual([0, 'GET POST GET POST GET'])
    expect(stderr).toContain('; retrying in 2 seconds')
  })

  it('does not ask again if the service had acted on the lost request', async () => {
    const lost = new TransportError('reset', 'maybe', 'closed')
    const { code, asked } = await verify([lost], { statuses: ['pending', 'verified', 'completed'] })
    expect([code, asked]).toEqual([0, 'GET POST GET GET'])
  })

  const running = () =>
    jsonResponse(409, {
      name: 'verification_running',
      message: 'Verification is already running.',
    })

  it.each<[string, HttpResponse | TransportError]>([
    ['was lost', new TransportError('reset', 'maybe', 'closed')],
    ['failed', jsonResponse(500, {})],
  ])(
    'goes on, with a warning, if the service refuses the next request after one that %s',
    async (_, first) => {
      const { code, asked, stderr } = await verify([first, running()], {
        statuses: ['pending', 'pending', 'pending', 'completed'],
      })
      expect([code, asked]).toEqual([0, 'GET POST GET POST GET GET'])
      expect(stderr).toContain(
        'already running. (verification_running); waiting, as an earlier request may have been accepted',
      )
    },
  )

  it.each([
    ['completed', 0],
    ['verified', 8],
    ['blocked', 9],
    ['failed', 9],
  ])('a refusal because the claim is %s by now does not count as an error: exit %i', async (status, exit) => {
    const done = jsonResponse(400, { name: 'validation_error', message: 'Already completed.' })
    const { code, stderr } = await verify([done], { statuses: ['pending', status] })
    expect(code).toBe(exit)
    expect(stderr).not.toContain('validation_error')
  })

  const refused = () => jsonResponse(400, { name: 'validation_error', message: 'not now' })
  it.each<[string, readonly (HttpResponse | TransportError)[]]>([
    ['the first request', [refused()]],
    ['a request after one that the service had no time for', [jsonResponse(429, {}), refused()]],
    [
      'a request after one that was never sent',
      [...Array(3).fill(new TransportError('connect', 'no', 'refused')), refused()],
    ],
  ])('a refusal of %s is an error if the claim still waits: exit 6', async (_what, answers) => {
    const { code, stderr } = await verify(answers, { seconds: 60, statuses: ['pending'] })
    expect(code).toBe(6)
    expect(stderr).toContain('not now')
  })

  it('asks again if the service refuses the next request for another reason, and ends with the refusal if it goes on', async () => {
    const unparsed = () => jsonResponse(422, { name: 'validation_error', message: "It couldn't be parsed." })
    const lost = jsonResponse(503, {})
    const answers = [lost, ...Array.from({ length: 9 }, unparsed)]
    const refused = await verify(answers, { seconds: 600, statuses: ['pending'] })
    expect(refused.code).toBe(6)
    expect(refused.asked.match(/POST/g)).toHaveLength(5)
    expect(refused.stderr).toContain(
      "It couldn't be parsed. (validation_error); an earlier request may have been accepted; retrying in",
    )
    expect(refused.stderr).toMatch(/error: the service refused the request \(422\): It couldn't be parsed/)
    const accepted = await verify([lost, unparsed()], {
      seconds: 600,
      statuses: ['pending', 'pending', 'pending', 'verified', 'completed'],
    })
    expect(accepted.code).toBe(0)
  })

  it.each([
    ['completed', 0],
    ['pending', 8],
  ])(
    'a conflict says that verification runs already, so a claim that is then %s is watched: exit %i',
    async (status, exit) => {
      const { code, stderr } = await verify([running()], { statuses: ['pending', 'pending', status] })
      expect(code).toBe(exit)
      expect(stderr).toContain(
        'already running. (verification_running); waiting, as it may already be verifying it',
      )
    },
  )

  it.each([429, 500, 503])(
    'says first how to ask again if all requests to verify ended with %i',
    async (status) => {
      const { code, stderr } = await verify(
        Array.from({ length: 50 }, () => jsonResponse(status, {})),
        { statuses: ['pending'] },
      )
      expect(code).toBe(8)
      expect(stderr).toMatch(/^hint: .*; to ask again: mailclaim claims verify example\.com --wait$/m)
      expect(stderr).not.toContain('claims watch')
    },
  )

  it('sends a later job to verify again if no request was acknowledged, else to watch', async () => {
    const lost = await verify(
      Array.from({ length: 50 }, () => new TransportError('reset', 'maybe', 'closed')),
      { statuses: ['pending'] },
    )
    expect(lost.stderr).toMatch(/^in a job on another machine: mailclaim claims verify d-1 --wait$/m)
    const acknowledged = await verify([], { statuses: ['pending'] })
    expect(acknowledged.stderr).toMatch(/^in a job on another machine: mailclaim claims watch d-1$/m)
  })

  it('survives failures of the first polls', async () => {
    let reads = 0
    const context = createFakeContext({
      environment: { settings: { base_url: 'http://127.0.0.1:1' }, apiKey: 'key-1' },
      respond: ({ method }) => {
        if (method === 'POST' || ++reads === 1) return jsonResponse(200, CLAIM)
        return reads < 8 ? jsonResponse(500, {}) : jsonResponse(200, { ...CLAIM, status: 'completed' })
      },
    })
    expect(await run('claims verify d-1 --no-check --wait --timeout 600'.split(' '), context)).toBe(0)
  })
})

test('a watch of 200 domains at a service that hangs ends in time, with one cause and its hint', async () => {
  const clock = createVirtualClock()
  let sent = 0
  const context = {
    ...createFakeContext({ environment: { settings: { base_url: 'http://127.0.0.1:1' }, apiKey: 'key-1' } }),
    clock,
    http: {
      async send({ timeoutMs }: HttpRequest) {
        sent += 1
        await clock.sleep(timeoutMs)
        throw new TransportError('timeout', 'maybe', 'no complete response')
      },
      close: async () => {},
    },
  }
  const ids = Array.from({ length: 200 }, (_, number) => `id-${number}`)
  const words = ['claims', 'watch', ...ids, '--timeout', '5', '--http-timeout', '2', '--format', 'tsv']
  expect(await run(words, context)).toBe(7)
  expect(clock.monotonic()).toBeLessThan(5001)
  expect(sent).toBe(3 * 16)
  expect(context.stderr.text).toMatch(
    /^ {2}200 domains: timeout .*\n {4}fix: try again, or allow more time with --timeout and --http-timeout SECONDS\nerror: /m,
  )
})
