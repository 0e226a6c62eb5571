import type { Context, Hono } from 'hono'
import { timestamp } from './clock.ts'
import { type Env, notFound, validationError } from './http.ts'
import { type IssuedGrant, shownGrant } from './oauth.ts'

/** Items that are made when asked for, so that a list of any length costs nothing. Position 0 is the newest. */
interface Sequence<T> {
  readonly length: number
  at(position: number): T
  /** The position of the item with this id, or -1. */
  positionOf(id: string): number
}

/**
 * One page of a list, in its envelope (interface, sections 2.3, 4.2, 4.3 and 8).
 * @param keep the filter
 * @throws Problem 422 for a limit outside 1 to 100, repeated parameters, both cursors at once, and an unknown cursor
 */
function takePage<T>(
  c: Context,
  items: Sequence<T>,
  defaultLimit: number,
  keep: (item: T) => boolean = () => true,
): object {
  const limit = single(c, 'limit')
  const after = single(c, 'after')
  const before = single(c, 'before')
  if (after !== undefined && before !== undefined)
    throw validationError('The `after` and `before` parameters cannot be used together.')
  if (limit !== undefined && !/^([1-9][0-9]?|100)$/.test(limit))
    throw validationError('The `limit` parameter must be a whole number from 1 to 100.')
  const cursor = after ?? before
  const start = cursor === undefined ? -1 : items.positionOf(cursor)
  if (cursor !== undefined && start < 0)
    throw validationError(
      `The \`${after === undefined ? 'before' : 'after'}\` parameter names no item of this list.`,
    )

  const step = before === undefined ? 1 : -1
  const most = limit === undefined ? defaultLimit : Number(limit)
  const data: T[] = []
  let hasMore = false
  for (let position = start + step; position >= 0 && position < items.length && !hasMore; position += step) {
    const item = items.at(position)
    if (!keep(item)) continue
    hasMore = data.length === most
    if (!hasMore) data.push(item)
  }
  return { object: 'list', has_more: hasMore, data: step === 1 ? data : data.reverse() }
}

/** The one value of a query parameter. @throws Problem 422 when it is repeated */
function single(c: Context, name: string): string | undefined {
  const values = c.req.queries(name) ?? []
  if (values.length > 1) throw validationError(`The \`${name}\` parameter may be given once.`)
  return values[0]
}

/** UUIDs that end with the position of the item they stand for. */
function numbered(prefix: string, length: number) {
  return {
    idOf: (position: number) => `${prefix}-0000-4000-8000-${String(position).padStart(12, '0')}`,
    positionOf(id: string): number {
      const digits = new RegExp(`^${prefix}-0000-4000-8000-([0-9]{12})$`).exec(id)?.[1]
      const position = digits === undefined ? -1 : Number(digits)
      return position < length ? position : -1
    },
  }
}

const OTHER_CLIENTS = ['Newsletter Studio', 'Shop Mailer', 'CRM Sync', 'Invoice Robot', 'Zoë’s Notes']
const OTHER_SCOPES = [['emails:send'], ['emails:send', 'contacts:read'], ['contacts:write'], ['domains:read']]

/** The grants of the one team that there is: those of real sign-ins, the newest first, then made-up ones. */
function createGrantList(
  seeded: number,
  startedAt: number,
  issued: readonly IssuedGrant[],
): Sequence<object> {
  const ids = numbered('9a27e000', seeded)
  return {
    get length() {
      return issued.length + seeded
    },
    at(position) {
      const grant = issued[issued.length - 1 - position]
      if (grant !== undefined) return shownGrant(grant)
      const index = position - issued.length
      const createdAt = startedAt - (index + 1) * 3_600_000
      const isRevoked = index % 3 === 1
      const client = index % OTHER_CLIENTS.length
      return {
        id: ids.idOf(index),
        client_id: `c11e0000-0000-4000-8000-${String(client).padStart(12, '0')}`,
        scopes: OTHER_SCOPES[index % OTHER_SCOPES.length],
        resource: index % 2 === 0 ? null : 'https://api.example/mail',
        created_at: timestamp(createdAt),
        revoked_at: isRevoked ? timestamp(createdAt + 1_200_000) : null,
        revoked_reason: isRevoked ? 'revoked_from_api' : null,
        client: { name: OTHER_CLIENTS[client], logo_uri: `https://logos.example/${client}.png` },
      }
    },
    positionOf(id) {
      const place = issued.findIndex((grant) => grant.id === id)
      if (place >= 0) return issued.length - 1 - place
      const index = ids.positionOf(id)
      return index < 0 ? -1 : issued.length + index
    },
  }
}

const STATUSES = ['queued', 'in_progress', 'completed', 'failed']

/** The newest imports are under way when the sandbox starts and move with its clock; times in seconds from then. */
const RUNNING: readonly { starts: number; lasts: number; failsAt?: number }[] = [
  { starts: 10, lasts: 60 },
  { starts: 0, lasts: 30 },
  // Fails at this share of its way.
  { starts: 0, lasts: 20, failsAt: 0.6 },
  { starts: 0, lasts: 600 },
  { starts: 3_600, lasts: 600 },
  { starts: 86_400, lasts: 600 },
]

/** The contact imports (interface, section 2.4). */
function createImportList(length: number, startedAt: number, now: () => number) {
  const ids = numbered('1a9027e0', length)

  /** How far an import is; `share` from 0 to 1. */
  function progressOf(index: number): { status: string; share: number; endedAt: number | null } {
    const running = RUNNING[index]
    if (running === undefined) {
      const endedAt = startedAt - index * 97_000 + 20_000
      return index % 10 === 9
        ? { status: 'failed', share: 0.4, endedAt }
        : { status: 'completed', share: 1, endedAt }
    }
    const begins = startedAt + running.starts * 1000
    const share = (now() - begins) / (running.lasts * 1000)
    const end = running.failsAt ?? 1
    if (share < 0) return { status: 'queued', share: 0, endedAt: null }
    if (share < end) return { status: 'in_progress', share, endedAt: null }
    const endedAt = begins + running.lasts * end * 1000
    return { status: running.failsAt === undefined ? 'completed' : 'failed', share: end, endedAt }
  }

  return {
    length,
    positionOf: ids.positionOf,
    at(index: number) {
      const { status, share, endedAt } = progressOf(index)
      const total = 200 + ((index * 7919) % 20_000)
      const done = Math.floor(total * share)
      const [updated, skipped, failed] = [5, 20, 50].map((part) => Math.floor(done / part)) as [
        number,
        number,
        number,
      ]
      return {
        object: 'contact_import',
        id: ids.idOf(index),
        status,
        created_at: timestamp(startedAt - index * 97_000),
        completed_at: endedAt === null ? null : timestamp(endedAt),
        counts: { total, created: done - updated - skipped - failed, updated, skipped, failed },
      }
    },
  }
}

interface ListsOptions {
  readonly imports: number
  readonly grants: number
  readonly issued: readonly IssuedGrant[]
  /** Virtual time, in milliseconds since 1970. */
  readonly now: () => number
}

/** Grants and imports (interface, sections 4.2 to 4.4). */
export function addListRoutes(app: Hono<Env>, options: ListsOptions): void {
  const startedAt = options.now()
  const grants = createGrantList(options.grants, startedAt, options.issued)
  const imports = createImportList(options.imports, startedAt, options.now)

  app.get('/oauth/grants', (c) => c.json(takePage(c, grants, Number.POSITIVE_INFINITY)))

  app.get('/contacts/imports', (c) => {
    const wanted = single(c, 'status')
    if (wanted !== undefined && !STATUSES.includes(wanted))
      throw validationError(`The \`status\` parameter must be one of ${STATUSES.join(', ')}.`)
    return c.json(takePage(c, imports, 10, ({ status }) => wanted === undefined || status === wanted))
  })

  app.get('/contacts/imports/:id', (c) => {
    const index = imports.positionOf(c.req.param('id'))
    if (index < 0) throw notFound('There is no contact import with this id.')
    return c.json(imports.at(index))
  })
}
