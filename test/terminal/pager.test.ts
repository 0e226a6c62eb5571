import { setImmediate as turn } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { OutputClosedError, type PagerProcess } from '../../src/context.ts'
import { CliError, Exit } from '../../src/errors.ts'
import type { GlobalOptions } from '../../src/settings/settings.ts'
import { withPager } from '../../src/terminal/pager.ts'
import { createFakeContext, type FakeContextOptions, fakeSettings } from '../fake-context.ts'

const terminal = { columns: 80 }

/** A pager that shows everything at once, and that a person quits with `quit`. */
function createFakePager() {
  const commands: (readonly string[])[] = []
  let shown = ''
  let isAtEnd = false
  let quit: (code: number | undefined) => void = () => {}
  let hasEnded = false
  const ended = new Promise<number | undefined>((resolve) => {
    quit = (code) => {
      hasEnded = true
      resolve(code)
    }
  })
  const process: PagerProcess = {
    ended,
    write: async (text) => {
      if (hasEnded) throw new OutputClosedError('')
      shown += text
    },
    end: () => {
      isAtEnd = true
    },
    kill: () => quit(undefined),
  }
  return {
    commands,
    quit: (code = 0) => quit(code),
    get shown() {
      return shown
    },
    get isAtEnd() {
      return isAtEnd
    },
    start: async (command: readonly [string, ...string[]]) => {
      commands.push(command)
      return process
    },
  }
}

async function setUp(options: FakeContextOptions = {}, given: GlobalOptions = {}) {
  const pager = createFakePager()
  const context = createFakeContext({
    terminal,
    pager,
    ...options,
    environment: { noColor: true, ...options.environment },
  })
  return { pager, context, settings: await fakeSettings(context, given) }
}

const writeLine: Parameters<typeof withPager>[0] = ({ stdout }) => stdout.write('line\n')

describe('a pager', () => {
  test('is less, and gets what the command prints', async () => {
    const { pager, context, settings } = await setUp()
    const done = withPager(writeLine, context, settings)
    await turn()
    expect(pager).toMatchObject({ commands: [['less']], shown: 'line\n', isAtEnd: true })
    pager.quit()
    await done
    expect(context.stdout.text).toBe('')
    expect(context.stderr.text).toBe('')
  })

  test.each([
    ['PAGER', { pager: "more -n '5 0'" }, {}, ['more', '-n', '5 0']],
    ['MAILCLAIM_PAGER before PAGER', { pager: 'more', settings: { pager: 'most' } }, {}, ['most']],
  ])('is what %s says', async (_name, environment, given, command) => {
    const { pager, context, settings } = await setUp({ environment }, given)
    pager.quit()
    await withPager(writeLine, context, settings).catch(() => {})
    expect(pager.commands).toEqual([command])
  })

  test.each<[string, FakeContextOptions, GlobalOptions]>([
    ['with --no-pager', {}, { pager: false }],
    ['with --no-input', {}, { input: false }],
    ['with --json, which programs read', {}, { json: true }],
    ['in CI', { environment: { ci: true } }, {}],
    ['on a dumb terminal', { environment: { term: 'dumb' } }, {}],
    ['if it is cat', { environment: { pager: 'cat' } }, {}],
  ])('is not started %s', async (_when, options, given) => {
    const { pager, context, settings } = await setUp(options, given)
    await withPager(writeLine, context, settings)
    expect(pager.commands).toEqual([])
    expect(context.stdout.text).toBe('line\n')
  })

  test('is not started by a command that prints nothing, so that its error is seen', async () => {
    const { pager, context, settings } = await setUp()
    const failure = new CliError('x', Exit.unavailable, 'no answer')
    await expect(withPager(() => Promise.reject(failure), context, settings)).rejects.toBe(failure)
    expect(pager.commands).toEqual([])
  })

  test('that cannot be started is reported only if someone chose it, and the list is printed without it', async () => {
    const start = () => Promise.reject(Object.assign(new Error(), { code: 'ENOENT' }))
    const usual = await setUp({ pager: { start } })
    await withPager(writeLine, usual.context, usual.settings)
    expect(usual.context.stdout.text).toBe('line\n')
    expect(usual.context.stderr.text).toBe('')
    for (const [pager, reason] of [
      ['moar', 'ENOENT'],
      ['less | head', 'no shell reads'],
    ] as const) {
      const chosen = await setUp({ environment: { pager }, pager: { start } })
      await withPager(writeLine, chosen.context, chosen.settings)
      expect(chosen.context.stdout.text).toBe('line\n')
      expect(chosen.context.stderr.text).toContain(`warning: can't start the pager "${pager}" (`)
      expect(chosen.context.stderr.text).toContain(reason)
    }
  })

  test('holds back messages and questions until it has ended', async () => {
    const { pager, context, settings } = await setUp()
    const asked: boolean[] = []
    const done = withPager(
      async (paged, { interactive }) => {
        asked.push(interactive)
        await paged.stderr.write('before\n')
        await paged.stdout.write('line\n')
        await paged.stderr.write('after\n')
      },
      context,
      settings,
    )
    await turn()
    expect(asked).toEqual([true])
    expect(context.stderr.text).toBe('before\n')
    pager.quit()
    await done
    expect(context.stderr.text).toBe('before\nafter\n')
  })

  test('asks nothing while it is open', async () => {
    const { pager, context, settings } = await setUp()
    let interactive = true
    const done = withPager(
      async (paged, pagedSettings) => {
        await paged.stdout.write('line\n')
        interactive = pagedSettings.interactive
      },
      context,
      settings,
    )
    await turn()
    pager.quit()
    await done
    expect(interactive).toBe(false)
  })

  test('ends what is still being read when the person quits, quietly', async () => {
    const { pager, context, settings } = await setUp()
    const done = withPager(
      async ({ stdout, interrupts }) => {
        await stdout.write('line\n')
        await new Promise((_resolve, reject) => {
          interrupts.signal.addEventListener('abort', () => reject(new Error('aborted')))
        })
      },
      context,
      settings,
    )
    await turn()
    pager.quit()
    await expect(done).rejects.toBeInstanceOf(OutputClosedError)
  })

  test('that is quit lets a refresh finish before it ends the work', async () => {
    const { pager, context, settings } = await setUp()
    const steps: string[] = []
    let answer: () => void = () => {}
    const done = withPager(
      async ({ stdout, interrupts }) => {
        await stdout.write('line\n')
        await interrupts.shield(async () => {
          interrupts.signal.addEventListener('abort', () => steps.push('aborted'))
          await new Promise<void>((resolve) => {
            answer = resolve
          })
          steps.push('stored')
        })
        interrupts.signal.throwIfAborted()
        await turn()
        interrupts.signal.throwIfAborted()
      },
      context,
      settings,
    )
    await turn()
    pager.quit()
    await turn()
    expect(steps).toEqual([])
    answer()
    await expect(done).rejects.toBeInstanceOf(OutputClosedError)
    expect(steps).toEqual(['stored', 'aborted'])
  })

  test('shows what was there before an error, which follows when the person quits', async () => {
    const { pager, context, settings } = await setUp()
    const failure = new CliError('x', Exit.unavailable, 'no answer')
    const done = withPager(
      async ({ stdout }) => {
        await stdout.write('line\n')
        throw failure
      },
      context,
      settings,
    )
    await turn()
    pager.quit()
    await expect(done).rejects.toBe(failure)
    expect(pager.shown).toBe('line\n')
  })

  test('that fails is reported', async () => {
    const { pager, context, settings } = await setUp({ environment: { pager: 'false' } })
    pager.quit(1)
    await withPager(writeLine, context, settings).catch(() => {})
    expect(context.stderr.text).toBe('warning: the pager "false" ended with exit code 1\n')
  })
})
