import { CliError } from '../errors.ts'
import { sanitizeLine } from '../terminal/sanitize.ts'
import { pathSegment, type RequestOptions, type ServiceClient } from './client.ts'
import { checkFields, MismatchError, nameOfType, unexpectedAnswer } from './problems.ts'
import {
  CONTACT_IMPORT,
  type ContactImport,
  type Grant,
  type ImportStatus,
  type ListEnvelope,
} from './types.ts'

/** The interface's own limit for one request (section 8). */
const LARGEST_PAGE = 100

export interface Cursor {
  readonly limit: number
  readonly after?: string | undefined
  readonly before?: string | undefined
}

export type PageFetcher<T> = (cursor: Cursor, signal?: AbortSignal) => Promise<ListEnvelope<T>>

/** Pages of the team's grants, including revoked ones (section 4.2). */
export function grantPages(client: ServiceClient): PageFetcher<Grant> {
  return (cursor, signal) => listPage<Grant>(client, '/oauth/grants', { ...cursor }, signal)
}

/** Sends the cheapest request that needs a credential and changes nothing: it lists one grant. */
export async function tryCredential(client: ServiceClient): Promise<void> {
  await client.get('/oauth/grants', { limit: 1 })
}

/** Pages of the contact imports, filtered by the service if a status is given (section 4.3). */
export function importPages(client: ServiceClient, status?: ImportStatus): PageFetcher<ContactImport> {
  return (cursor, signal) =>
    listPage<ContactImport>(client, '/contacts/imports', { ...cursor, status }, signal)
}

/**
 * One import (section 4.4).
 *
 * @throws CliError exit 5 if there is none with that id; `unexpected_answer`, exit 7, if it is another one
 */
export async function getImport(
  client: ServiceClient,
  id: string,
  options?: RequestOptions,
): Promise<ContactImport> {
  const { body } = await client.get(`/contacts/imports/${pathSegment(id)}`, {}, options)
  checkFields(body, CONTACT_IMPORT, 'the import', ['id', 'status', 'counts'])
  const found = body as ContactImport
  const asked = id.trim()
  if (found.id != null && found.id.toLowerCase() !== asked.toLowerCase())
    throw new MismatchError(`asked for import ${JSON.stringify(asked)}, got ${JSON.stringify(found.id)}`)
  return found
}

/** One page of a list (section 2.3), checked as far as the program goes by it. @throws CliError exit 7. */
async function listPage<T>(
  client: ServiceClient,
  path: string,
  query: Readonly<Record<string, string | number | undefined>>,
  signal: AbortSignal | undefined,
): Promise<ListEnvelope<T>> {
  const { body } = await client.get(path, query, signal === undefined ? {} : { signal })
  checkFields(body, { data: [], has_more: true }, 'the list', ['data'])
  const data = body['data'] as unknown[]
  const odd = data.find((item) => typeof item !== 'object' || item === null || Array.isArray(item))
  if (odd !== undefined)
    throw unexpectedAnswer(`an item of the list should be an object, but is ${nameOfType(odd)}`)
  // Where it is left out, a page that is full may not be the last: asking once too often loses nothing.
  const more = body['has_more'] ?? data.length === query['limit']
  return { ...body, has_more: more === true, data: data as T[] }
}

export interface Range<T> extends Pick<Cursor, 'after' | 'before'> {
  /** How many items are wanted in all; undefined for every one there is. */
  readonly limit?: number | undefined
  /** Chosen here, since the service has no such filter; the limit counts what is chosen. */
  readonly filter?: ((item: T) => boolean) | undefined
}

export interface Page<T> {
  readonly items: readonly T[]
  /** The service's own envelope that the items came in. */
  readonly envelope: ListEnvelope<T>
  /** Whether there are more items beyond this page, also where the range ends with it. */
  readonly hasMore: boolean
}

/**
 * Reads a range of a list page by page, each as soon as it is there while the next one is already being asked for. Holds
 * two pages at a time, whatever the length of the list.
 *
 * @param interrupt cancels the requests
 * @throws CliError `no_progress`, exit 7, if the list claims to go on and doesn't.
 */
export async function* readPages<T extends { readonly id?: string | null }>(
  fetchPage: PageFetcher<T>,
  { limit = Number.POSITIVE_INFINITY, after, before, filter }: Range<T>,
  interrupt: AbortSignal,
): AsyncGenerator<Page<T>, void, undefined> {
  const abandon = new AbortController()
  // One for the whole list: Node keeps a list of the signals that follow another.
  const signal = AbortSignal.any([interrupt, abandon.signal])
  const seen = new Set(after === undefined ? [] : [after])
  let left = limit
  // With a choice of our own nobody knows how many items one more match takes.
  const ask = (place: Omit<Cursor, 'limit'>) =>
    fetchPage({ limit: filter ? LARGEST_PAGE : Math.min(left, LARGEST_PAGE), ...place }, signal)
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
      // It may fail while this page is still being printed; whoever awaits it hears of it.
      asked?.catch(() => {})
      yield { items, envelope, hasMore }
    }
  } finally {
    abandon.abort()
  }
}

/** The id of a page's last item, from which the list goes on. @throws CliError if there is none, or it came before. */
function nextCursor(data: readonly { readonly id?: string | null }[], seen: Set<string>): string {
  const last = data.at(-1)
  if (last === undefined) throw noProgress('sent an empty page')
  const id = itemId(last)
  if (id === undefined) throw noProgress('its last item has no id to go on from')
  if (seen.has(id)) throw noProgress(`came back to ${sanitizeLine(id)}`)
  seen.add(id)
  return id
}

function noProgress(what: string): CliError {
  const hint = 'this is a fault of the service'
  return new CliError('no_progress', `the list says that it goes on, but ${what}`, { hint })
}

/** The id of an item that a list can go on from; undefined where the service sent none, or something else there. */
export function itemId({ id }: { readonly id?: unknown }): string | undefined {
  return typeof id === 'string' && id !== '' ? id : undefined
}
