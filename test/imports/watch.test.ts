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
  it('tells each tenth of the way on stderr and prints the import at its end', async () => {
    const { exit, out, err } = await watch([
      { status: 'queued' },
      at('in_progress', 10),
      at('in_progress', 20),
      at('in_progress', 300),
      at('completed', 1000),
    ])
    expect(exit).toBe(0)
    expect(err).toBe(
      'queued\nin progress, 10 of 1000 (1%)\nin progress, 300 of 1000 (30%)\ncompleted, 1000 of 1000 (100%)\n',
    )
    expect(out.split('\n')[1]).toContain('i-1\tcompleted\t1000\t1000')
  })

  it('writes an event for each change with --format jsonl', async () => {
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

  it('ends with exit 9 when the import failed', async () => {
    const { exit, err, out } = await watch([at('failed', 400, 100)], ['--json'])
    expect(exit).toBe(9)
    expect(JSON.parse(err.trim().split('\n').at(-1) ?? '')).toMatchObject({
      error: { code: 'import_failed', exit: 9 },
    })
    expect(JSON.parse(out)).toMatchObject({ status: 'failed' })
  })

  it('ends with exit 8 when the time ran out', async () => {
    const { exit, err, context } = await watch([at('in_progress', 1)], ['--timeout', '60'])
    expect(exit).toBe(8)
    expect(err).toContain('error: the import is still in progress; the time ran out')
    expect(context.clock.monotonic()).toBe(60_000)
  })

  it('asks at a fixed interval where one is given', async () => {
    const { context } = await watch(
      [at('queued', 0), at('queued', 0), at('completed', 1000)],
      ['--interval', '5'],
    )
    expect(context.clock.slept).toEqual([5000, 5000])
  })

  it('survives a network that comes and goes, and says so', async () => {
    const { exit, err } = await watch([
      at('in_progress', 1),
      { fails: true },
      { fails: true },
      at('completed', 1000),
    ])
    expect(exit).toBe(0)
    expect(err.match(/warning: no answer .*asking again in/g)).toHaveLength(2)
  })

  it('waits on at a status that it does not know', async () => {
    const { exit, err } = await watch([at('paused\x1b[31m', 1), at('completed', 1000)])
    expect(exit).toBe(0)
    expect(err).toContain(
      'warning: paused\\u{1b}[31m, 1 of 1000 (0%): a status that this program does not know',
    )
  })

  it('says how many contacts could not be imported', async () => {
    expect((await watch([at('completed', 990, 10)])).err).toContain(
      'warning: 10 of the contacts could not be imported',
    )
  })

  it('works without counts', async () => {
    const { exit, out } = await watch([{ status: 'in_progress' }, { status: 'completed' }])
    expect(exit).toBe(0)
    expect(out).not.toMatch(/null|undefined|NaN/)
  })

  it('says nothing beside the data with --quiet', async () => {
    expect((await watch([at('queued', 0), at('completed', 990, 10)], ['--quiet'])).err).toBe('')
  })

  it('draws a bar on a terminal that fits it, and gives the cursor back', async () => {
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

  it('writes plain lines where a terminal is dumb', async () => {
    const { err } = await watch([at('queued', 0), at('completed', 1000)], [], {
      terminal: { columns: 60 },
      environment: { noColor: false, ci: false, ssh: false, term: 'dumb' },
    })
    expect(err).not.toContain('\x1b')
    expect(err).toContain('queued, 0 of 1000 (0%)\n')
  })
})
