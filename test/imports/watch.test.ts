import { describe, expect, it } from 'vitest'
import { run } from '../../src/cli.ts'
import { TransportError } from '../../src/context.ts'
import { createFakeContext, type FakeContextOptions, jsonResponse } from '../fake-context.ts'

interface Step {
  status?: string
  counts?: Record<string, number>
  fails?: true
}

/** `imports watch i-1` on a service that goes from step to step; the last one repeats. */
async function watch(steps: readonly Step[], argv: readonly string[] = [], options: FakeContextOptions = {}) {
  const left = [...steps]
  const context = createFakeContext({
    environment: { settings: { base_url: 'http://127.0.0.1:1' }, apiKey: 'key-1', ...options.environment },
    ...(options.terminal === undefined ? {} : { terminal: options.terminal }),
    respond: () => {
      const step = (left.length > 1 ? left.shift() : left[0]) as Step
      if (step.fails) throw new TransportError('reset', 'maybe', 'the connection was closed')
      return jsonResponse(200, { object: 'contact_import', id: 'i-1', ...step })
    },
  })
  const exit = await run(['imports', 'watch', 'i-1', ...argv], context)
  return { context, exit, out: context.stdout.text, err: context.stderr.text }
}

const at = (status: string, created: number, failed = 0): Step => ({
  status,
  counts: { total: 1000, created, updated: 0, skipped: 0, failed },
})

describe('imports watch', () => {
  it('imports watch reports each tenth on stderr and prints the import at its end', async () => {
    const { exit, out, err } = await watch([
      { status: 'queued' },
      at('in_progress', 10),
      at('in_progress', 20),
      at('in_progress', 300),
      at('completed', 1000),
    ])
    expect(exit).toBe(0)
    expect(err).toBe(
      'Watching import i-1\nqueued\nin progress, 10 of 1000 (1%)\nin progress, 300 of 1000 (30%)\ncompleted, 1000 of 1000 (100%)\n',
    )
    expect(out.split('\n')[1]).toContain('i-1\tcompleted\t1000\t1000')
  })

  it('imports watch --format jsonl writes an event for each change', async () => {
    const { out, err } = await watch(
      [
        at('queued', 0),
        at('in_progress', 0),
        at('in_progress', 0),
        at('in_progress', 5),
        at('completed', 1000),
      ],
      ['--format', 'jsonl'],
    )
    const events = out
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line))
    expect(events.map((event) => [event.event, event.import.status])).toEqual([
      ['status', 'queued'],
      ['status', 'in_progress'],
      ['waiting', 'in_progress'],
      ['done', 'completed'],
    ])
    expect(events[0].at).toBe('2026-11-20T12:00:00.000Z')
    expect(err).toBe('')
  })

  it('imports watch ends with exit 9 when the import has failed', async () => {
    const { exit, err, out } = await watch([at('failed', 400, 100)], ['--json'])
    expect(exit).toBe(9)
    expect(JSON.parse(err.trim().split('\n').at(-1) ?? '')).toMatchObject({
      error: {
        code: 'import_failed',
        message: expect.stringMatching(/^the import \S+ failed, with 500 of 1000 \(50%\) processed$/),
        exit: 9,
      },
    })
    expect(JSON.parse(out)).toMatchObject({ status: 'failed' })
  })

  it('imports watch times out with exit 8', async () => {
    const { exit, err, context } = await watch([at('in_progress', 1)], ['--timeout', '60'])
    expect(exit).toBe(8)
    expect(err).toContain('error: timed out after 60 seconds: the import i-1 is still in progress')
    expect(err).toContain('hint: the import continues; to keep watching: mailclaim imports watch i-1')
    expect(context.clock.monotonic()).toBe(60_000)
  })

  it('imports watch leaves the import on stdout when the time is up', async () => {
    const { exit, out } = await watch([at('in_progress', 1)], ['--timeout', '60', '--json'])
    expect(exit).toBe(8)
    expect(JSON.parse(out)).toMatchObject({ id: 'i-1', status: 'in_progress' })
  })

  it('imports watch writes a line once a minute, however little changes', async () => {
    const slow = Array.from({ length: 30 }, (_, n) => at('in_progress', n))
    const { err } = await watch([...slow, at('completed', 1000)], ['--interval', '10'])
    expect(err.match(/so far\)$/gm)).toHaveLength(4)
    const { out } = await watch([at('queued', 0)], ['--timeout', '200', '--format', 'jsonl'])
    const messages = out
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line).message)
    expect(messages.slice(1)).toEqual([
      expect.stringContaining('so far)'),
      expect.stringContaining('so far)'),
      expect.stringContaining('so far)'),
    ])
    expect(new Set(messages).size).toBe(messages.length)
  })

  it('imports watch --interval polls at a fixed interval', async () => {
    const { context } = await watch(
      [at('queued', 0), at('queued', 0), at('completed', 1000)],
      ['--interval', '5'],
    )
    expect(context.clock.slept).toEqual([5000, 5000])
  })

  it('imports watch survives network errors and reports them', async () => {
    const { exit, err } = await watch([
      at('in_progress', 1),
      { fails: true },
      { fails: true },
      at('completed', 1000),
    ])
    expect(exit).toBe(0)
    expect(err.match(/warning: no response .*retrying in/g)).toHaveLength(2)
  })

  it('imports watch continues after an unknown status', async () => {
    const { exit, err } = await watch([at('paused\x1b[31m', 1), at('completed', 1000)])
    expect(exit).toBe(0)
    expect(err).toContain('warning: paused\\u{1b}[31m, 1 of 1000 (0%): unknown status; still waiting')
  })

  it('imports watch reports how many contacts failed', async () => {
    expect((await watch([at('completed', 990, 10)])).err).toContain(
      "warning: couldn't import 10 of the contacts",
    )
  })

  it('imports watch works without counts', async () => {
    const { exit, out } = await watch([{ status: 'in_progress' }, { status: 'completed' }])
    expect(exit).toBe(0)
    expect(out).not.toMatch(/null|undefined|NaN/)
  })

  it('imports watch --quiet writes only the data', async () => {
    expect((await watch([at('queued', 0), at('completed', 990, 10)], ['--quiet'])).err).toBe('')
  })

  it('imports watch draws a bar that fits the terminal and restores the cursor', async () => {
    const { context, exit } = await watch(
      [at('in_progress', 100), at('in_progress', 500), at('completed', 1000)],
      ['--interval', '10'],
      { terminal: { columns: 60 } },
    )
    expect(exit).toBe(0)
    const drawn = context.stderr.text
    expect(drawn).toContain('\x1b[?25l')
    expect(drawn.lastIndexOf('\x1b[?25h')).toBeGreaterThan(drawn.lastIndexOf('\x1b[?25l'))
    expect(context.stdout.text).not.toContain('\x1b[?25')
  })

  it('imports watch writes plain lines to a dumb terminal', async () => {
    const { err } = await watch([at('queued', 0), at('completed', 1000)], [], {
      terminal: { columns: 60 },
      environment: { noColor: false, ci: false, ssh: false, term: 'dumb' },
    })
    expect(err).not.toContain('\x1b')
    expect(err).toContain('queued, 0 of 1000 (0%)\n')
  })
})
