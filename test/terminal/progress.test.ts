import { describe, expect, test } from 'vitest'
import { withProgress } from '../../src/terminal/progress.ts'
import { createFakeContext } from '../fake-context.ts'

const TEXT = 'querying the name servers of example.com'
const HIDES_CURSOR = '\x1b[?25l'
const SHOWS_CURSOR = '\x1b[?25h'

/** What a person sees of work that ends in this way. */
async function shown(work: () => Promise<string>, terminal: { columns: number } | undefined, quiet = false) {
  const context = createFakeContext({ ...(terminal && { terminal }), environment: { term: 'xterm' } })
  const end = await withProgress(TEXT, work, context, { quiet, colorOption: false }).catch(
    (error: unknown) => error,
  )
  return { end, text: context.stderr.text }
}

describe('progress around a piece of work', () => {
  test.each([
    ['succeeds', async () => 'done', 'done'],
    ['fails', () => Promise.reject(new Error('no network')), new Error('no network')],
  ])(
    'shows a spinner at a terminal, and gives the cursor back if the work %s',
    async (_how, work, result) => {
      const { end, text } = await shown(work, { columns: 80 })
      expect(end).toEqual(result)
      expect(text).toContain(TEXT)
      expect(text.lastIndexOf(SHOWS_CURSOR)).toBeGreaterThan(text.lastIndexOf(HIDES_CURSOR))
    },
  )

  test.each([
    ['in a log', undefined, false],
    ['with --quiet', { columns: 80 }, true],
  ])('%s nothing is written', async (_where, terminal, quiet) => {
    expect(await shown(async () => 'done', terminal, quiet)).toEqual({ end: 'done', text: '' })
  })
})
