import { CliError } from '../errors.ts'
import { sanitizeLine } from '../terminal/sanitize.ts'
import { encodeIdForPath, type RequestLimits, type ServiceClient } from './client.ts'
import { describeJsonType, invalidResponseError, requireFieldTypes, WrongResourceError } from './problems.ts'
import {
  CONTACT_IMPORT_SHAPE,
  type ContactImport,
  type ContactImportStatus,
  type ListEnvelope,
  type OAuthGrant,
} from './types.ts'

/** Maximum `limit` of a page request that the service accepts. */
const MAX_PAGE_SIZE = 100

/** Query parameters of a page request: at most one of `after` and `before`, each an item's id. */
export interface PageQuery {
  readonly limit: number
  readonly after?: string | undefined
  readonly before?: string | undefined
}

export type PageFetcher<T> = (query: PageQuery, signal?: AbortSignal) => Promise<ListEnvelope<T>>

/** Returns a function that requests pages of the team's grants, revoked grants included. */
export function createGrantFetcher(client: ServiceClient): PageFetcher<OAuthGrant> {
  return (query, signal) => requestPage(client, '/oauth/grants', { ...query }, signal)
}

/**
 * Verifies the client's credential by listing one grant, which changes nothing.
 *
 * @throws CliError exit 4 if the service refuses the credential; other errors of the request
 */
export async function verifyCredential(client: ServiceClient): Promise<void> {
  await client.get('/oauth/grants', { limit: 1 })
}

/** Returns a function that requests pages of contact imports; with `status`, only imports with that status. */
export function createContactImportFetcher(
  client: ServiceClient,
  status?: ContactImportStatus,
): PageFetcher<ContactImport> {
  return (query, signal) => requestPage(client, '/contacts/imports', { ...query, status }, signal)
}

/**
 * Fetches one contact import.
 *
 * @throws CliError `not_found`, exit 5, if no import has the id; `WrongResourceError` for a response with another id
 */
export async function getContactImport(
  client: ServiceClient,
  id: string,
  options?: RequestLimits,
): Promise<ContactImport> {
  const { body } = await client.get(`/contacts/imports/${encodeIdForPath(id)}`, {}, options)
  requireFieldTypes(body, CONTACT_IMPORT_SHAPE, 'the import', ['id', 'status', 'counts'])
  const found = body as ContactImport
  const asked = id.trim()
  if (found.id != null && found.id.toLowerCase() !== asked.toLowerCase())
    throw new WrongResourceError(`asked for import ${JSON.stringify(asked)}, got ${JSON.stringify(found.id)}`)
  return found
}

/** Requests one page of a list, and checks the types of `data` and `has_more`. */
async function requestPage<T>(
  client: ServiceClient,
  path: string,
  query: Readonly<Record<string, string | number | undefined>>,
  signal: AbortSignal | undefined,
): Promise<ListEnvelope<T>> {
  const { body } = await client.get(path, query, signal === undefined ? {} : { signal })
  requireFieldTypes(body, { data: [], has_more: true }, 'the list', ['data'])
  const data = body['data'] as unknown[]
  const odd = data.find((item) => typeof item !== 'object' || item === null || Array.isArray(item))
  if (odd !== undefined)
    throw invalidResponseError(`an item of the list should be an object, but is ${describeJsonType(odd)}`)
  // If the service omits `has_more`, assume more items after a full page: a superfluous request is harmless, but stopping early
  // would lose items.
  const more = body['has_more'] ?? data.length === query['limit']
  return { ...body, has_more: more === true, data: data as T[] }
}

/** The part of a list to read. With `before`, an item's id, only the page in front of that item is read: at most 100 items. */
export interface ListSelection<T> extends Pick<PageQuery, 'after' | 'before'> {
  /** Maximum number of items from all pages together; undefined for no limit. */
  readonly limit?: number | undefined
  /** Whether to yield an item; for conditions that the service can't filter by. `limit` counts the yielded items. */
  readonly filter?: ((item: T) => boolean) | undefined
}

/** One page of a list: the items that pass the selection's `filter`, cut off at its `limit`. */
export interface ListPage<T> {
  readonly items: readonly T[]
  /** The service's response that contained the items. */
  readonly envelope: ListEnvelope<T>
  /** Whether the list has more items after this page (with `before`: in front of it), even if `limit` excludes them. */
  readonly hasMore: boolean
}

/**
 * Reads a selection of a list page by page. Requests the next page while the caller handles the current one, but no further page,
 * so memory holds at most two pages.
 *
 * @param interrupt cancels the requests
 * @throws CliError `no_progress`, exit 7, if the list continues, but the page is empty or its last item gives no new id to continue
 *   after; errors of `fetchPage`
 */
export async function* readListPages<T extends { readonly id?: string | null }>(
  fetchPage: PageFetcher<T>,
  { limit = Number.POSITIVE_INFINITY, after, before, filter }: ListSelection<T>,
  interrupt: AbortSignal,
): AsyncGenerator<ListPage<T>, void, undefined> {
  const abandon = new AbortController()
  // Use a single signal for all pages: each `AbortSignal.any` stays registered with its sources, so one per page would use up
  // memory.
  const signal = AbortSignal.any([interrupt, abandon.signal])
  const seen = new Set(after === undefined ? [] : [after])
  let left = limit
  // Requests a page; with a filter, a page of the maximum size, because it's unknown how many items will pass.
  const ask = (cursor: Omit<PageQuery, 'limit'>) =>
    fetchPage({ limit: filter ? MAX_PAGE_SIZE : Math.min(left, MAX_PAGE_SIZE), ...cursor }, signal)
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
      // The request for the next page may fail before the loop awaits it. So attach an empty handler against an unhandled
      // rejection; the `await` still throws.
      asked?.catch(() => {})
      yield { items, envelope, hasMore }
    }
  } finally {
    abandon.abort()
  }
}

/**
 * Returns the id of a page's last item, after which the next page begins, and adds it to `seen`. @throws CliError `no_progress` if
 * the page is empty, or the id is missing or was seen before
 */
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

/** Returns an item's id, for the query parameters `after` and `before`; undefined if it is missing, empty or not a string. */
export function readItemId({ id }: { readonly id?: unknown }): string | undefined {
  return typeof id === 'string' && id !== '' ? id : undefined
}
