import { expect, test } from 'vitest'
import { createProgressDisplay, type ProgressStreams } from '../../src/terminal/progress.ts'
import { createFakeContext, fakeSettings } from '../fake-context.ts'

const HIDES = '\x1b[?25l'
const SHOWS = '\x1b[?25h'

test.each<[what: string, use: (screen: ProgressStreams) => Promise<unknown>[], spinners: number]>([
  ['three updates at once', ({ update }) => ['a', 'b', 'c'].map(update), 1],
  ['an end before the first drawing', ({ update, end }) => [update('a'), end()], 0],
  ['a success before the first drawing', ({ update, succeed }) => [update('a'), succeed('done')], 0],
  ['an update after an early end', ({ update, end }) => [update('a'), end(), update('b')], 1],
])('progress with %s starts no second spinner, and leaves none running', async (_what, use, spinners) => {
  const context = createFakeContext({ terminal: { columns: 80 } })
  const screen = createProgressDisplay(context, await fakeSettings(context, { color: false }))
  await Promise.all(use(screen))
  await screen.end()
  const { text } = context.stderr
  expect(text.split(HIDES), 'starts').toHaveLength(spinners + 1)
  expect(text.split(SHOWS), 'stops').toHaveLength(spinners + 1)
})

test('progress draws nothing if an interrupt comes before the first drawing', async () => {
  const context = createFakeContext({ terminal: { columns: 80 } })
  const screen = createProgressDisplay(context, await fakeSettings(context, { color: false }))
  const drawn = screen.update('a')
  context.interrupt()
  await drawn
  expect(context.stderr.text).toBe('')
})
