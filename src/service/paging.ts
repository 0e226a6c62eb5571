import { CliError, Exit, usageError } from '../errors.ts'
import { sanitizeLine } from '../terminal/sanitize.ts'
import type { ListEnvelope } from './types.ts'

/** The interface's own limit for one request (section 8). */
export const LARGEST_PAGE = 100

/** In how many turns of the event loop a request leaves, with one to spare: the transport alone waits for three. */
const TURNS_TO_SEND = 5

/** How many items in front of a cursor are held in memory. */
const MOST_BACKWARDS = 20_000

export interface Cursor {
  readonly limit: number
  readonly after?: string
  readonly before?: string
}

export type PageFetcher<T> = (cursor: Cursor, signal?: AbortSignal) => Promise<ListEnvelope<T>>

export interface Range<T> {
  /** How many items are wanted in all; undefined for every one there is. */
  readonly limit?: number | undefined
  readonly after?: string | undefined
  readonly before?: string | undefined
  /** Chosen here, since the service has no such filter; the limit counts what is chosen. */
  readonly choose?: ((item: T) => boolean) | undefined
}

export interface Page<T> {
  readonly items: readonly T[]
  /** The service's own envelope that the items came in. */
  readonly envelope: ListEnvelope<T>
  /** Whether there are more items beyond this page, also where the range ends with it. */
  readonly hasMore: boolean
  /** Whether the range ends with this page. */
  readonly last: boolean
  /** `hasMore` of the range's last page, where it is known before that has come. */
  readonly finalHasMore: boolean | undefined
}

/**
 * Reads a range of a list page by page, each as soon as it is there while the next one is already being asked for. Holds
 * two pages at a time, whatever the length of the list.
 *
 * Backwards (`before`) a page holds the items right in front of the cursor, so the pages arrive from the cursor towards
 * the start. They are handed out in the order of the list: with a limit, a range of more than one page is collected
 * first; without, the list is read forward up to the cursor.
 *
 * @param interrupt cancels the requests
 * @throws CliError `no_progress`, exit 7, if the list claims to go on and doesn't, or ends without the cursor; `usage`,
 *   exit 2, if a backward range is too long to be collected.
 */
export async function* pages<T extends { readonly id?: string | null }>(
  fetchPage: PageFetcher<T>,
  range: Range<T>,
  interrupt: AbortSignal,
): AsyncGenerator<Page<T>, void, undefined> {
  if (range.before === undefined) {
    yield* consecutive(fetchPage, range, interrupt)
    return
  }
  if (range.limit === undefined) {
    yield* upTo(range.before, fetchPage, range, interrupt)
    return
  }
  const collected: Page<T>[] = []
  let items = 0
  for await (const page of consecutive(fetchPage, range, interrupt)) {
    collected.push(page)
    items += page.items.length
    if (items > MOST_BACKWARDS)
      throw usageError(
        `there are more than ${MOST_BACKWARDS} items in front of ${sanitizeLine(range.before)}, too many to print in order`,
        'limit them with --limit, or read the list forward with --after',
      )
  }
  const hasMore = collected.at(-1)?.hasMore ?? false
  for (let at = collected.length - 1; at >= 0; at--) {
    yield { ...(collected[at] as Page<T>), hasMore, last: at === 0, finalHasMore: hasMore }
  }
}

/** All items in front of a cursor, from the start of the list. */
async function* upTo<T extends { readonly id?: string | null }>(
  before: string,
  fetchPage: PageFetcher<T>,
  { choose = () => true }: Range<T>,
  interrupt: AbortSignal,
): AsyncGenerator<Page<T>, void, undefined> {
  // Refuses an unknown cursor before anything is printed, and tells where to stop even if that item is removed meanwhile.
  const envelope = await fetchPage({ limit: 1, before }, interrupt)
  const nearest = envelope.data.at(-1)
  if (nearest === undefined) {
    yield { items: [], envelope, hasMore: false, last: true, finalHasMore: false }
    return
  }
  for await (const page of consecutive(fetchPage, {}, interrupt)) {
    const { data } = page.envelope
    const edge = data.findIndex(({ id }) => id === before || id === nearest.id)
    const last = edge >= 0
    const items = last ? data.slice(0, data[edge]?.id === before ? edge : edge + 1) : data
    const more = { hasMore: false, last, finalHasMore: false }
    yield { items: items.filter(choose), envelope: page.envelope, ...more }
    if (last) return
  }
  throw noProgress(`${sanitizeLine(before)} never came`)
}

async function* consecutive<T extends { readonly id?: string | null }>(
  fetchPage: PageFetcher<T>,
  range: Range<T>,
  interrupt: AbortSignal,
): AsyncGenerator<Page<T>, void, undefined> {
  const backwards = range.before !== undefined
  const abandon = new AbortController()
  // One for the whole list: Node keeps a list of the signals that follow another.
  const signal = AbortSignal.any([interrupt, abandon.signal])
  const start = backwards ? range.before : range.after
  const seen = new Set<string>(start === undefined ? [] : [start])
  const ask = (cursor: string | undefined, left: number): Promise<ListEnvelope<T>> => {
    // With a choice of our own nobody knows how many items one more match takes.
    const limit = range.choose === undefined ? Math.min(left, LARGEST_PAGE) : LARGEST_PAGE
    const place = cursor === undefined ? {} : backwards ? { before: cursor } : { after: cursor }
    const asked = fetchPage({ limit, ...place }, signal)
    // It may fail while the page before is still being printed; whoever awaits it hears of it.
    asked.catch(() => {})
    return asked
  }

  let left = range.limit ?? Number.POSITIVE_INFINITY
  let asked = ask(start, left)
  try {
    for (;;) {
      const envelope = await asked
      const chosen = range.choose === undefined ? envelope.data : envelope.data.filter(range.choose)
      const cut = chosen.length > left
      const items = !cut ? chosen : backwards ? chosen.slice(-left) : chosen.slice(0, left)
      left -= items.length
      const hasMore = cut || envelope.has_more
      const last = left === 0 || !envelope.has_more
      const next = last ? undefined : nextCursor(envelope.data, backwards, seen)
      if (typeof next === 'string') {
        asked = ask(next, left)
        // The request leaves in these turns: it would otherwise wait until this page has been written.
        for (let turns = 0; turns < TURNS_TO_SEND; turns++)
          await new Promise((resolve) => setImmediate(resolve))
      }
      // Without a limit the range goes on until there is no more.
      const finalHasMore = last ? hasMore : range.limit === undefined ? false : undefined
      yield { items, envelope, hasMore, last, finalHasMore }
      if (next === undefined) return
      // Only now: what did arrive has been handed out.
      if (typeof next !== 'string') throw next
    }
  } finally {
    abandon.abort()
  }
}

/** The id from which the list goes on: the last of a page, or the first when going backwards. Or why there is none. */
function nextCursor(
  data: readonly { readonly id?: string | null }[],
  backwards: boolean,
  seen: Set<string>,
): string | CliError {
  const edge = backwards ? data[0] : data.at(-1)
  if (edge === undefined) return noProgress('sent an empty page')
  const id = idOf(edge)
  if (id === undefined) return noProgress('its last item has no id to go on from')
  if (seen.has(id)) return noProgress(`came back to ${sanitizeLine(id)}`)
  seen.add(id)
  return id
}

function noProgress(what: string): CliError {
  return new CliError('no_progress', Exit.unavailable, `the list says that it goes on, but ${what}`, {
    hint: 'this is a fault of the service',
  })
}

/** The id of an item that a list can go on from; undefined where the service sent none, or something else there. */
export function idOf({ id }: { readonly id?: unknown }): string | undefined {
  return typeof id === 'string' && id !== '' ? id : undefined
}
