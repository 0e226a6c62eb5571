import { expect, it } from 'vitest'
import { grantPages } from '../../src/service/lists.ts'

const answering = (body: Record<string, unknown>) => ({
  get: async () => ({ status: 200, body }),
  post: async () => ({ status: 200, body }),
})
const items = (count: number) => Array.from({ length: count }, (_, at) => ({ id: `id-${at}` }))

it.each([
  ['full', { data: items(3) }, true],
  ['full, and has_more is null', { has_more: null, data: items(3) }, true],
  ['not full', { data: items(2) }, false],
  ['empty', { data: [] }, false],
  ['larger than what was asked for: the service does not page', { data: items(5) }, false],
])('a page without has_more may have a successor if it is full: %s', async (_what, body, more) => {
  expect((await grantPages(answering(body))({ limit: 3 })).has_more).toBe(more)
})
