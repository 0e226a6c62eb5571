import { describe, expect, it } from 'vitest'
import { listPage } from '../../src/service/lists.ts'

const answering = (body: Record<string, unknown>) => ({
  get: async () => ({ status: 200, body }),
  post: async () => ({ status: 200, body }),
})
const items = (count: number) => Array.from({ length: count }, (_, at) => ({ id: `id-${at}` }))

describe('a page whose has_more is left out', () => {
  it.each([
    ['full', 3, 3, true],
    ['not full', 2, 3, false],
    ['empty', 0, 3, false],
    ['larger than what was asked for: the service does not page', 5, 3, false],
    ['everything, since no limit was sent', 5, undefined, false],
  ])('a page without has_more may have a successor if it is full: %s', async (_what, count, limit, more) => {
    const page = await listPage(answering({ data: items(count) }), '/things', { limit }, undefined)
    expect(page.has_more).toBe(more)
  })

  it('has_more: null counts as left out', async () => {
    const page = await listPage(
      answering({ has_more: null, data: items(3) }),
      '/things',
      { limit: 3 },
      undefined,
    )
    expect(page.has_more).toBe(true)
  })
})
