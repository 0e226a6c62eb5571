import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  createGrantFetcher,
  type ListPage,
  type ListSelection,
  type PageFetcher,
  type PageQuery,
  readListPages,
} from '../../src/service/lists.ts'

const UNINTERRUPTED = new AbortController().signal

interface Thing {
  id: string
  even: boolean
}

const things = (count: number): Thing[] =>
  Array.from({ length: count }, (_, index) => ({ id: `id-${index}`, even: index % 2 === 0 }))

/** Returns a service with this list: pages have at most `limit` items, without the item that `after` or `before` names. */
function serviceWith(list: readonly Thing[]): { fetch: PageFetcher<Thing>; asked: PageQuery[] } {
  const asked: PageQuery[] = []
  return {
    asked,
    fetch: async (cursor) => {
      asked.push(cursor)
      if (cursor.before !== undefined) {
        const end = list.findIndex((thing) => thing.id === cursor.before)
        const start = Math.max(0, end - cursor.limit)
        return { object: 'list', has_more: start > 0, data: list.slice(start, end) }
      }
      const start = cursor.after === undefined ? 0 : list.findIndex((thing) => thing.id === cursor.after) + 1
      const data = list.slice(start, start + cursor.limit)
      return { object: 'list', has_more: start + data.length < list.length, data }
    },
  }
}

async function collect(fetch: PageFetcher<Thing>, range: ListSelection<Thing>): Promise<ListPage<Thing>[]> {
  const all: ListPage<Thing>[] = []
  for await (const page of readListPages(fetch, range, UNINTERRUPTED)) all.push(page)
  return all
}
const ids = (all: readonly ListPage<Thing>[]) => all.flatMap((page) => page.items.map((thing) => thing.id))

describe('paging', () => {
  it('readListPages yields exactly the items of the requested range, and says whether the list has more', async () => {
    const range = fc.record({
      total: fc.integer({ min: 0, max: 450 }),
      limit: fc.option(fc.integer({ min: 1, max: 450 }), { nil: undefined }),
      from: fc.option(fc.record({ back: fc.boolean(), at: fc.integer({ min: 0, max: 449 }) }), {
        nil: undefined,
      }),
    })
    await fc.assert(
      fc.asyncProperty(range, async ({ total, limit, from }) => {
        const list = things(total)
        const at = from === undefined || total === 0 ? undefined : from.at % total
        const service = serviceWith(list)
        const cursor = at === undefined ? {} : from?.back ? { before: `id-${at}` } : { after: `id-${at}` }
        const result = await collect(service.fetch, { limit, ...cursor })

        const beyond = at === undefined ? list : from?.back ? list.slice(0, at) : list.slice(at + 1)
        const wanted =
          from?.back && at !== undefined ? beyond.slice(-Math.min(limit ?? 100, 100)) : beyond.slice(0, limit)
        expect(ids(result)).toEqual(wanted.map((thing) => thing.id))
        expect(result.at(-1)?.hasMore).toBe(wanted.length < beyond.length)
        for (const request of service.asked) {
          expect(request.limit).toBeGreaterThanOrEqual(1)
          expect(request.limit).toBeLessThanOrEqual(100)
          expect(request.after !== undefined && request.before !== undefined).toBe(false)
        }
      }),
      { numRuns: 500 },
    )
  })

  it('the limit of readListPages counts the items that pass its filter', async () => {
    const service = serviceWith(things(1000))
    const result = await collect(service.fetch, { limit: 120, filter: (thing) => thing.even })
    expect(ids(result)).toHaveLength(120)
    expect(ids(result).at(-1)).toBe('id-238')
    expect(result.at(-1)?.hasMore).toBe(true)
    expect(service.asked).toHaveLength(3)
    const back = await collect(service.fetch, { limit: 2, before: 'id-500', filter: (thing) => thing.even })
    expect(ids(back)).toEqual(['id-496', 'id-498'])
  })

  it('readListPages requests the next page, but no further page, while the caller handles the current one', async () => {
    const service = serviceWith(things(1000))
    const reading = readListPages(service.fetch, {}, UNINTERRUPTED)
    await reading.next()
    expect(service.asked).toHaveLength(2)
    await new Promise((resolve) => setImmediate(resolve))
    expect(service.asked).toHaveLength(2)
    await reading.return()
  })

  it('readListPages cancels the request for the next page when the caller stops reading', async () => {
    const { fetch } = serviceWith(things(1000))
    const signals: (AbortSignal | undefined)[] = []
    const fetchPage: PageFetcher<Thing> = (cursor, signal) => {
      signals.push(signal)
      return fetch(cursor, signal)
    }
    const reading = readListPages(fetchPage, {}, UNINTERRUPTED)
    await reading.next()
    await reading.return()
    expect(signals.map((signal) => signal?.aborted)).toEqual([true, true])
  })

  it('all page requests of readListPages share one abort signal, which an interrupt aborts with its reason', async () => {
    const { fetch } = serviceWith(things(1000))
    const interrupt = new AbortController()
    const signals = new Set<AbortSignal | undefined>()
    const fetchPage: PageFetcher<Thing> = (cursor, signal) => {
      signals.add(signal)
      return fetch(cursor, signal)
    }
    const reading = readListPages(fetchPage, {}, interrupt.signal)
    for (let page = 0; page < 5; page++) await reading.next()
    expect(signals.size).toBe(1)
    interrupt.abort('Ctrl-C')
    expect([...signals].map((signal) => signal?.reason)).toEqual(['Ctrl-C'])
    await reading.return()
  })

  it('readListPages yields a page even if the request for the next page fails', async () => {
    const { fetch } = serviceWith(things(150))
    const fetchPage: PageFetcher<Thing> = async (cursor) => {
      if (cursor.after !== undefined) throw new Error('page 2 is broken')
      return fetch(cursor)
    }
    const reading = readListPages(fetchPage, {}, UNINTERRUPTED)
    expect((await reading.next()).value?.items).toHaveLength(100)
    await expect(reading.next()).rejects.toThrow('page 2 is broken')
  })

  it('readListPages drops the items of a page beyond the limit, and sets `hasMore`', async () => {
    const result = await collect(async () => ({ has_more: false, data: things(50) }), { limit: 10 })
    expect(ids(result)).toHaveLength(10)
    expect(result.at(-1)?.hasMore).toBe(true)
  })

  const nowhere: [string, PageFetcher<Thing>, string][] = [
    ['an empty page with `has_more`', async () => ({ has_more: true, data: [] }), 'sent an empty page'],
    [
      'a repeated page with `has_more`',
      async ({ after }) => ({
        has_more: true,
        data: after === 'id-1' ? things(3) : things(2),
      }),
      'came back to id-',
    ],
    [
      'a page with `has_more`, but without item ids',
      async () => ({ has_more: true, data: [{ even: true } as unknown as Thing] }),
      'has no id to go on from',
    ],
  ]
  it.each(nowhere)('readListPages fails with `no_progress` after %s', async (_, fetch, message) => {
    const failure = await collect(fetch, {}).catch((error: unknown) => error)
    expect(failure).toMatchObject({ code: 'no_progress', exit: 7 })
    expect((failure as Error).message).toContain(message)
  })

  it('readListPages fails with `no_progress` if a page with `has_more: true` ends with the item given as `after`', async () => {
    const failure = collect(async () => ({ has_more: true, data: things(3) }), { after: 'id-2' })
    await expect(failure).rejects.toMatchObject({ code: 'no_progress' })
  })
})

const answering = (body: Record<string, unknown>) => ({
  get: async () => ({ status: 200, body }),
  post: async () => ({ status: 200, body }),
})

it.each([
  ['full', { data: things(3) }, true],
  ['full, and has_more is null', { has_more: null, data: things(3) }, true],
  ['not full', { data: things(2) }, false],
  ['empty', { data: [] }, false],
  ['larger than requested', { data: things(5) }, false],
])('a list page without `has_more` counts as the last unless exactly full: %s', async (_what, body, more) => {
  expect((await createGrantFetcher(answering(body))({ limit: 3 })).has_more).toBe(more)
})
