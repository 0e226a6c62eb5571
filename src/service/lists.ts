import { CliError } from '../errors.ts'
import { sanitizeLine } from '../terminal/sanitize.ts'
import { encodeSegment, type RequestOptions, type ServiceClient } from './client.ts'
import { checkFieldTypes, describeJsonType, unexpectedResponse, WrongResourceError } from './problems.ts'
import {
  type ContactImport,
  type Grant,
  IMPORT_EXAMPLE,
  type ImportStatus,
  type ListEnvelope,
} from './types.ts'

/** Maximum number of items per request (service interface, section 8). */
const MAX_PAGE_SIZE = 100

/** The query of one page request (service interface, section 2.3): at most one of `after` and `before`, each an item's id. */
export interface PageQuery {
  readonly limit: number
  readonly after?: string | undefined
  readonly before?: string | undefined
}

/** Requests one page of a list. */
export type PageFetcher<T> = (cursor: PageQuery, signal?: AbortSignal) => Promise<ListEnvelope<T>>

/** Returns a function that requests pages of the team's grants, including revoked grants (service interface, section 4.2). */
export function createGrantFetcher(client: ServiceClient): PageFetcher<Grant> {
  return (query, signal) => requestPage(client, '/oauth/grants', { ...query }, signal)
}

/** Checks a credential by listing one grant: the cheapest request that needs a credential and changes nothing. */
export async function verifyCredential(client: ServiceClient): Promise<void> {
  await client.get('/oauth/grants', { limit: 1 })
}

/**
 * Returns a function that requests pages of contact imports, filtered by the service if a status is given (service interface,
 * section 4.3).
 */
export function createImportFetcher(
  client: ServiceClient,
  status?: ImportStatus,
): PageFetcher<ContactImport> {
  return (query, signal) => requestPage(client, '/contacts/imports', { ...query, status }, signal)
}

/**
 * Fetches one contact import (service interface, section 4.4).
 *
 * @throws CliError `not_found`, exit 5, without an import of that id; `unexpected_answer`, exit 7, if the response has another id
 */
export async function getImport(
  client: ServiceClient,
  id: string,
  options?: RequestOptions,
): Promise<ContactImport> {
  const { body } = await client.get(`/contacts/imports/${encodeSegment(id)}`, {}, options)
  checkFieldTypes(body, IMPORT_EXAMPLE, 'the import', ['id', 'status', 'counts'])
  const found = body as ContactImport
  const asked = id.trim()
  if (found.id != null && found.id.toLowerCase() !== asked.toLowerCase())
    throw new WrongResourceError(`asked for import ${JSON.stringify(asked)}, got ${JSON.stringify(found.id)}`)
  return found
}

/**
 * Requests one page (service interface, section 2.3) and checks `data` and `has_more`.
 *
 * @throws CliError exit 7 for an unusable page
 */
async function requestPage<T>(
  client: ServiceClient,
  path: string,
  query: Readonly<Record<string, string | number | undefined>>,
  signal: AbortSignal | undefined,
): Promise<ListEnvelope<T>> {
  const { body } = await client.get(path, query, signal === undefined ? {} : { signal })
  checkFieldTypes(body, { data: [], has_more: true }, 'the list', ['data'])
  const data = body['data'] as unknown[]
  const odd = data.find((item) => typeof item !== 'object' || item === null || Array.isArray(item))
  if (odd !== undefined)
    throw unexpectedResponse(`an item of the list should be an object, but is ${describeJsonType(odd)}`)
  // If the service omits `has_more`, assume more items after a full page: a superfluous request is harmless, but stopping early
  // would lose items.
  const more = body['has_more'] ?? data.length === query['limit']
  return { ...body, has_more: more === true, data: data as T[] }
}

/** The part of a list to read. With `before`, only the page in front of that item: at most 100 items. */
export interface ListRange<T> extends Pick<PageQuery, 'after' | 'before'> {
  /** Maximum number of items in all; undefined for all items. */
  readonly limit?: number | undefined
  /** Local filter, for lists that the service can't filter; `limit` counts the items that pass the filter. */
  readonly filter?: ((item: T) => boolean) | undefined
}

/** One page of a list, after the local filter and the limit. */
export interface ListPage<T> {
  readonly items: readonly T[]
  /** The service's list object that contained the items. */
  readonly envelope: ListEnvelope<T>
  /** Whether the list has more items after this page, even if the range ends here. */
  readonly hasMore: boolean
}

/**
 * Reads a range of a list page by page. Requests the next page while the caller handles the current one, so memory holds two
 * pages at most.
 *
 * @param interrupt cancels the requests
 * @throws CliError `no_progress`, exit 7, if `has_more` is true but no new items come
 */
export async function* readListPages<T extends { readonly id?: string | null }>(
  fetchPage: PageFetcher<T>,
  { limit = Number.POSITIVE_INFINITY, after, before, filter }: ListRange<T>,
  interrupt: AbortSignal,
): AsyncGenerator<ListPage<T>, void, undefined> {
  const abandon = new AbortController()
  // A single signal for all pages: each `AbortSignal.any` stays registered with its sources, so one per page would use up memory.
  const signal = AbortSignal.any([interrupt, abandon.signal])
  const seen = new Set(after === undefined ? [] : [after])
  let left = limit
  // With a local filter, the number of items to look through is unknown, so pages have the maximum size.
  const ask = (place: Omit<PageQuery, 'limit'>) =>
    fetchPage({ limit: filter ? MAX_PAGE_SIZE : Math.min(left, MAX_PAGE_SIZE), ...place }, signal)
  const askForNext = async ({ data }: ListEnvelope<T>) => ask({ after: nextCursor(data, seen) })
  let asked: Promise<ListEnvelope<T>> | undefined = ask({ after, before })
  try {
    while (asked !== undefined) {
      const envelope: ListEnvelope<T> = await asked
      const chosen = filter === undefined ? envelope.data : envelope.data.filter(filter)
      const isCut = chosen.length > left
      const items = !isCut ? chosen : before === undefined ? chosen.slice(0, left) : chosen.slice(-left)
      left -= items.length
      const hasMore = isCut || envelope.has_more
      const isLast = left === 0 || !envelope.has_more || before !== undefined
      asked = isLast ? undefined : askForNext(envelope)
      // The request may fail before the loop awaits it, and Node would end the process for an unhandled rejection. So attach an
      // empty handler; the `await` still throws the error.
      asked?.catch(() => {})
      yield { items, envelope, hasMore }
    }
  } finally {
    abandon.abort()
  }
}

/** Returns the id of a page's last item, the next cursor. @throws CliError `no_progress` if the id is missing or came before */
function nextCursor(data: readonly { readonly id?: string | null }[], seen: Set<string>): string {
  const last = data.at(-1)
  if (last === undefined) throw noProgress('sent an empty page')
  const id = readItemId(last)
  if (id === undefined) throw noProgress('its last item has no id to go on from')
  if (seen.has(id)) throw noProgress(`came back to ${sanitizeLine(id)}`)
  seen.add(id)
  return id
}

function noProgress(what: string): CliError {
  const hint = 'this is a fault of the service'
  return new CliError('no_progress', `the list says that it goes on, but ${what}`, { hint })
}

/** Returns an item's id for use as a cursor; undefined if the id is missing, empty or no string. */
export function readItemId({ id }: { readonly id?: unknown }): string | undefined {
  return typeof id === 'string' && id !== '' ? id : undefined
}
