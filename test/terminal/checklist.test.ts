import { describe, expect, it } from 'vitest'
import type { Output } from '../../src/context.ts'
import { createChecklist } from '../../src/terminal/checklist.ts'
import { createPalette, PLAIN_PALETTE } from '../../src/terminal/color.ts'

const STEPS = [
  { key: 'one', title: 'First step' },
  { key: 'two', title: 'Second step' },
]
const environment = { settings: {}, noColor: false, ci: false, ssh: false, term: 'xterm' }

function fakeOutput(isTTY: boolean) {
  let written = ''
  const output: Output & { columns: number | undefined } = {
    isTTY,
    columns: isTTY ? 60 : undefined,
    async write(text) {
      written += text
    },
  }
  const takeWritten = () => {
    const taken = written
    written = ''
    return taken
  }
  return { output, takeWritten }
}

describe('a checklist on a terminal', () => {
  it('has the spinner in front of the first open step, and what it waits for below the list', async () => {
    const { output, takeWritten } = fakeOutput(true)
    const list = await createChecklist(STEPS, { stderr: output, environment }, PLAIN_PALETTE)
    await list.tick('one', 'done')
    takeWritten()
    await list.waiting(['for an answer'])
    expect(takeWritten()).toMatch(/✔ First step {2}done\n[⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏] Second step *\n {2}for an answer/)
    await list.end()
  })

  it('wraps a warning at words, and gives a command in it a line of its own', async () => {
    const { output, takeWritten } = fakeOutput(true)
    const list = await createChecklist(STEPS, { stderr: output, environment }, PLAIN_PALETTE)
    await list.warn('--region has no effect on it; to start another: mailclaim claims create example.com')
    await list.end()
    expect(takeWritten()).toContain(
      'warning: --region has no effect on it; to start another:\n  mailclaim claims create example.com\n',
    )
  })

  it('wraps what a finished step says at words, and cuts nothing off', async () => {
    const { output, takeWritten } = fakeOutput(true)
    const list = await createChecklist(STEPS, { stderr: output, environment }, PLAIN_PALETTE)
    await list.tick('one', 'shop.example, resumed: waiting for the record to be verified')
    await list.end()
    expect(takeWritten()).toContain(
      '✔ First step  shop.example, resumed: waiting for the record\n              to be verified\n',
    )
  })

  it('shows the progress next to the step, as it is when the list is drawn, and never wraps it', async () => {
    const { output, takeWritten } = fakeOutput(true)
    let seconds = 5
    const list = await createChecklist(
      STEPS,
      { stderr: output, environment },
      PLAIN_PALETTE,
      () => `next check in ${seconds} seconds, ${'x'.repeat(50)}`,
    )
    await list.tick('one', 'done')
    seconds = 3
    takeWritten()
    await list.waiting(['for an answer'])
    const [, step = ''] = /\n([⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏] .*)\n/.exec(takeWritten()) ?? []
    expect(step).toContain('Second step  next check in 3 seconds')
    expect(step.length).toBeLessThan(60)
    await list.end()
  })

  it('leaves the list without a spinner, and the cursor shown', async () => {
    const { output, takeWritten } = fakeOutput(true)
    const list = await createChecklist(STEPS, { stderr: output, environment }, PLAIN_PALETTE)
    await list.tick('one', 'done')
    takeWritten()
    await list.end()
    await list.end()
    expect(takeWritten()).toBe(
      '\r\u001b[1A\u001b[K\u001b[C\u001b[J\r\u001b[?25h✔ First step  done\n○ Second step\n',
    )
  })

  it('leaves out a step that was passed over', async () => {
    const { output, takeWritten } = fakeOutput(true)
    const list = await createChecklist(STEPS, { stderr: output, environment }, PLAIN_PALETTE)
    await list.tick('two', 'done')
    takeWritten()
    await list.end()
    expect(takeWritten()).toMatch(/\[\?25h✔ Second step {2}done\n$/)
  })

  it('leaves what it was waiting for below the list', async () => {
    const { output, takeWritten } = fakeOutput(true)
    const list = await createChecklist(STEPS, { stderr: output, environment }, PLAIN_PALETTE)
    await list.tick('one', 'done')
    await list.waiting(['for an answer'])
    takeWritten()
    await list.end()
    expect(takeWritten()).toMatch(/✔ First step {2}done\n○ Second step\n {2}for an answer\n$/)
  })

  it('colors the label of a warning, but not the text that it waits with', async () => {
    const { output, takeWritten } = fakeOutput(true)
    const palette = await createPalette(1)
    const list = await createChecklist(STEPS, { stderr: output, environment }, palette)
    await list.warn('it may fail')
    expect(takeWritten()).toContain('\u001b[33mwarning:\u001b[39m\u001b[22m it may fail\n')
    await list.waiting(['for an answer'])
    expect(takeWritten()).toContain('\n  for an answer')
    await list.end()
  })

  it('clears every row that it takes after the window became narrower', async () => {
    const { output, takeWritten } = fakeOutput(true)
    const list = await createChecklist(STEPS, { stderr: output, environment }, PLAIN_PALETTE)
    await list.tick('one', 'x'.repeat(38))
    output.columns = 30
    takeWritten()
    await list.say('above')
    // The first step takes 52 columns: two rows now.
    expect(takeWritten()).toMatch(/^\r\u001b\[2A\u001b\[Jabove\n/)
    await list.end()
  })
})

describe('a checklist that is not on a terminal', () => {
  it('is plain lines, each written once', async () => {
    const { output, takeWritten } = fakeOutput(false)
    const list = await createChecklist(STEPS, { stderr: output, environment }, PLAIN_PALETTE)
    await list.waiting(['for an answer'])
    await list.waiting(['for an answer'])
    await list.tick('one', 'done')
    await list.end()
    expect(takeWritten()).toBe('for an answer\nFirst step: done\n')
  })
})
