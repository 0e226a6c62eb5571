import type { Context } from 'hono'
import { formatPostgresTimestamp } from './clock.ts'
import { type HttpApp, notFoundError, validationError } from './http.ts'
import { type OAuthGrant, type OAuthServer, serializeGrant } from './oauth.ts'

/**
 * Returns one page of a cursor-paginated list: `{object, has_more, data}`.
 * @param items all items, the newest first
 * @param show serializes an item; called until the page is full and `has_more` is known, so that long lists stay cheap
 * @param matches the filter, applied to the serialized item
 * @throws HttpError 422 for invalid parameters of pagination
 */
function takePage<Item extends { readonly id: string }, Shown>(
  c: Context,
  items: readonly Item[],
  show: (item: Item) => Shown,
  defaultLimit: number,
  matches: (shown: Shown) => boolean = () => true,
): object {
  const limit = readParameter(c, 'limit')
  const after = readParameter(c, 'after')
  const before = readParameter(c, 'before')
  if (after !== undefined && before !== undefined)
    throw validationError('The `after` and `before` parameters cannot be used together.')
  if (limit !== undefined && !/^([1-9][0-9]?|100)$/.test(limit))
    throw validationError('The `limit` parameter must be a whole number from 1 to 100.')
  const cursor = after ?? before
  const start = cursor === undefined ? -1 : items.findIndex(({ id }) => id === cursor)
  if (cursor !== undefined && start < 0)
    throw validationError(
      `The \`${after === undefined ? 'before' : 'after'}\` parameter names no item of this list.`,
    )

  const step = before === undefined ? 1 : -1
  const pageSize = limit === undefined ? defaultLimit : Number(limit)
  const data: Shown[] = []
  let hasMore = false
  for (let position = start + step; !hasMore; position += step) {
    const item = items[position]
    if (item === undefined) break
    const shown = show(item)
    if (!matches(shown)) continue
    hasMore = data.length === pageSize
    if (!hasMore) data.push(shown)
  }
  return { object: 'list', has_more: hasMore, data: step === 1 ? data : data.reverse() }
}

/** Returns the value of a query parameter; undefined if it is absent. @throws HttpError 422 if it is repeated */
function readParameter(c: Context, name: string): string | undefined {
  const values = c.req.queries(name) ?? []
  if (values.length > 1) throw validationError(`The \`${name}\` parameter may be given once.`)
  return values[0]
}

/** Returns a UUID that begins with the prefix and ends with the number, so that ids don't change from run to run. */
const idOf = (prefix: string, number: number): string =>
  `${prefix}-0000-4000-8000-${String(number).padStart(12, '0')}`

const DEMO_CLIENTS = ['Newsletter Studio', 'Shop Mailer', 'CRM Sync', 'Invoice Robot', 'Zoë’s Notes']
const DEMO_SCOPES = [['emails:send'], ['emails:send', 'contacts:read'], ['contacts:write'], ['domains:read']]

/** Returns a sample grant to a client other than mailclaim; every third grant is revoked. @param index 0 is the newest */
function createDemoGrant(index: number, startedAt: number): OAuthGrant {
  const client = index % DEMO_CLIENTS.length
  const createdAt = startedAt - (index + 1) * 3_600_000
  const isRevoked = index % 3 === 1
  return {
    id: idOf('9a27e000', index),
    client: { id: idOf('c11e0000', client), name: DEMO_CLIENTS[client] ?? '' },
    scopes: DEMO_SCOPES[index % DEMO_SCOPES.length] ?? [],
    resource: index % 2 === 0 ? null : 'https://api.example/mail',
    createdAt,
    revokedAt: isRevoked ? createdAt + 1_200_000 : undefined,
    revokedReason: isRevoked ? 'revoked_from_api' : undefined,
  }
}

const CONTACT_IMPORT_STATUSES = ['queued', 'in_progress', 'completed', 'failed']

/** Start and planned duration of the six newest imports, in virtual seconds; the start counts from the start of the sandbox. */
const IMPORT_TIMES = [
  [10, 60],
  [0, 30],
  [0, 20],
  [0, 600],
  [3_600, 600],
  [86_400, 600],
] as const

/** Computes an import's status, the processed share of its rows (0 to 1), and its end time. One in ten fails at the share 0.6. */
function importProgress(index: number, startedAt: number, now: number) {
  const [starts, lasts] = IMPORT_TIMES[index] ?? [-97 * index, 60]
  const [end, status] = index % 10 === 2 ? [0.6, 'failed'] : [1, 'completed']
  const begins = startedAt + starts * 1000
  const share = (now - begins) / (lasts * 1000)
  if (share < 0) return { status: 'queued', share: 0, endedAt: null }
  if (share < end) return { status: 'in_progress', share, endedAt: null }
  return { status, share: end, endedAt: begins + lasts * end * 1000 }
}

/** Returns an import as the API's `contact_import` object. @param index 0 is the newest */
function serializeImport(id: string, index: number, startedAt: number, now: number) {
  const { status, share, endedAt } = importProgress(index, startedAt, now)
  const total = 200 + ((index * 7919) % 20_000)
  const done = Math.floor(total * share)
  const part = (size: number) => Math.floor(done / size)
  const counts = { updated: part(5), skipped: part(20), failed: part(50) }
  return {
    object: 'contact_import',
    id,
    status,
    created_at: formatPostgresTimestamp(startedAt - index * 97_000),
    completed_at: endedAt === null ? null : formatPostgresTimestamp(endedAt),
    counts: { total, created: done - part(5) - part(20) - part(50), ...counts },
  }
}

/**
 * Adds the routes of contact imports and grants.
 * @param imports number of contact imports
 * @param grants number of sample grants, listed after the issued grants
 */
export function addListRoutes(app: HttpApp, oauth: OAuthServer, imports: number, grants: number): void {
  const { now, grants: issued } = oauth
  const startedAt = now()
  const demoGrants = Array.from({ length: grants }, (_, index) => createDemoGrant(index, startedAt))
  const items = Array.from({ length: imports }, (_, index) => ({ id: idOf('1a9027e0', index), index }))
  const show = ({ id, index }: (typeof items)[number]) => serializeImport(id, index, startedAt, now())

  app.get('/oauth/grants', (c) =>
    c.json(takePage(c, [...issued.toReversed(), ...demoGrants], serializeGrant, Number.POSITIVE_INFINITY)),
  )

  app.get('/contacts/imports', (c) => {
    const wanted = readParameter(c, 'status')
    if (wanted !== undefined && !CONTACT_IMPORT_STATUSES.includes(wanted))
      throw validationError(`The \`status\` parameter must be one of ${CONTACT_IMPORT_STATUSES.join(', ')}.`)
    return c.json(takePage(c, items, show, 10, ({ status }) => wanted === undefined || status === wanted))
  })

  app.get('/contacts/imports/:id', (c) => {
    const found = items.find(({ id }) => id === c.req.param('id'))
    if (found === undefined) throw notFoundError('There is no contact import with this id.')
    return c.json(show(found))
  })
}
