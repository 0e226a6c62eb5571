import type { ClaimStore } from './claims.ts'
import { formatPostgresTimestamp, type VirtualClock } from './clock.ts'
import { CONTROL_PREFIX, type HttpApp, notFoundError, readBody, validationError } from './http.ts'
import { publishRecord } from './mistakes.ts'
import type { OAuthServer } from './oauth.ts'
import { type RecordData, toTxtData, type ZoneStore } from './zones.ts'

interface ControlledParts {
  readonly clock: VirtualClock
  readonly oauth: OAuthServer
  readonly claims: ClaimStore
  readonly zones: ZoneStore
  /** Counts of requests outside of /_sandbox: in total, and by `METHOD /path`, with ids in paths replaced by `{id}`. */
  readonly requests: object
}

/** Adds routes below /_sandbox with which tests read and change the sandbox's clock, grants, claims and TXT records. */
export function addControlRoutes(app: HttpApp, parts: ControlledParts): void {
  const { clock, oauth, claims, zones, requests } = parts
  const control = app.basePath(CONTROL_PREFIX)

  control.post('clock', async (c) => {
    const seconds = (await readBody(c))['advance_seconds']
    if (typeof seconds !== 'number' || !(seconds >= 0 && seconds <= 1e10))
      throw validationError('`advance_seconds` must be a number of 0 or more.')
    await clock.advance(seconds * 1000)
    return c.json({ now: formatPostgresTimestamp(clock.now()) })
  })

  control.get('state', (c) =>
    c.json({
      now: formatPostgresTimestamp(clock.now()),
      requests,
      refreshes: oauth.counts.refreshes,
      reuse_detections: oauth.counts.reuseDetections,
      grants_revoked: oauth.grants.filter(({ revokedAt }) => revokedAt !== undefined).length,
      claims: claims.list(),
    }),
  )

  control.post('sessions', async (c) => c.json(await oauth.startSession(), 201))

  control.post('grants/all/revoke', (c) => {
    oauth.revokeAll()
    return c.body(null, 204)
  })

  control.post('claims/:domain/outcome', async (c) =>
    c.json(claims.setOutcome(c.req.param('domain'), await readBody(c))),
  )

  control.post('claims/:domain/publish', async (c) => {
    const { mistake = 'none' } = await readBody(c)
    const { record } = claims.find(c.req.param('domain'))
    publishRecord(zones, record, mistake)
    return c.json(record)
  })

  control.put('dns/:name/TXT', async (c) => {
    zones.setRecords(readName(c.req.param('name')), 'TXT', readValues(await readBody(c)))
    return c.body(null, 204)
  })

  control.delete('dns/:name/TXT', (c) => {
    const name = readName(c.req.param('name'))
    if (zones.recordsAt(name)?.has('TXT') !== true) throw notFoundError('There are no such records.')
    zones.setRecords(name, 'TXT', [])
    return c.body(null, 204)
  })
}

/** Returns a domain name in lowercase without its final dot. @throws HttpError 422 if it is malformed or a top-level domain */
function readName(text: string): string {
  const name = text.trim().replace(/\.$/, '').toLowerCase()
  const labels = name.split('.')
  const fits = name.length <= 253 && labels.every((label) => label !== '' && Buffer.byteLength(label) <= 63)
  if (fits && labels.length >= 2) return name
  throw validationError('That is not a name below a top-level domain.')
}

/** Reads the TXT values in a request's body. @throws HttpError 422 for anything but a non-empty list of strings */
function readValues({ values }: Record<string, unknown>): readonly RecordData[] {
  if (!Array.isArray(values) || values.length === 0)
    throw validationError('`values` must be a list of texts; to remove them all, delete the records.')
  return values.map((value) => {
    if (typeof value === 'string') return toTxtData(value)
    throw validationError('`values` must be a list of texts.')
  })
}
