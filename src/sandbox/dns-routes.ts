import type { Hono } from 'hono'
import { readJson, readObject } from './bodies.ts'
import { MISTAKES, type Mistake, publish } from './mistakes.ts'
import { notFound, validationError } from './problems.ts'
import type { SandboxState } from './sandbox-state.ts'
import {
  DEFAULT_TTL,
  normalName,
  RECORD_TYPES,
  type RecordData,
  type RecordSet,
  type RecordType,
  shownData,
  TROUBLES,
  txtData,
  type Zone,
} from './zones.ts'

/** The zone editor for programs: PUT, GET and DELETE /_sandbox/dns/{name}/{type}. */
export function addDnsRoutes(app: Hono, sandbox: SandboxState): void {
  const { zones, claims } = sandbox
  app.post('/_sandbox/claims/publish', async (c) => {
    const fields = await readObject(c)
    const mistake = readMistake(fields)
    const { domains } = fields
    if (domains !== undefined && !(Array.isArray(domains) && domains.every((key) => typeof key === 'string')))
      throw validationError('`domains` must be a list of texts.')
    const wanted =
      domains?.map((key: string) => {
        const claim = claims.find(key.toLowerCase())
        if (claim === undefined) throw notFound(`There is no claim of ${key}.`)
        return claim
      }) ?? claims.list().filter(({ status }) => status === 'pending')
    for (const claim of wanted) publish(sandbox, claim, mistake)
    return c.json({ published: wanted.length })
  })

  app.post('/_sandbox/claims/:key/publish', async (c) => {
    const mistake = readMistake(await readObject(c))
    const claim = claims.find(c.req.param('key').toLowerCase())
    if (claim === undefined) throw notFound('There is no such claim.')
    publish(sandbox, claim, mistake)
    return c.json(claim.record)
  })

  app.get('/_sandbox/zones', (c) => c.json({ zones: zones.list().map(describeZone) }))

  app.put('/_sandbox/zones/:name/trouble', async (c) => {
    const zone = zones.ensure(readName(c.req.param('name')))
    const wanted = (await readObject(c))['trouble']
    const trouble = TROUBLES.find((known) => known === wanted)
    if (trouble === undefined && wanted !== null) {
      throw validationError(`\`trouble\` must be null or one of ${TROUBLES.join(', ')}.`)
    }
    zone.trouble = trouble
    return c.json(describeZone(zone))
  })

  app.get('/_sandbox/dns/:name/:type', (c) => {
    const name = readName(c.req.param('name'))
    const type = readType(c.req.param('type'))
    const set = zones.holding(name)?.names.get(name)?.get(type)
    if (set === undefined) throw notFound('There are no such records.')
    return c.json(describeSet(name, type, set))
  })

  app.put('/_sandbox/dns/:name/:type', async (c) => {
    const name = readName(c.req.param('name'))
    const type = readType(c.req.param('type'))
    const set = readSet(type, await readJson(c))
    zones.set(name, type, set)
    return c.json(describeSet(name, type, set))
  })

  app.delete('/_sandbox/dns/:name/:type', (c) => {
    const removed = zones.remove(readName(c.req.param('name')), readType(c.req.param('type')))
    if (!removed) throw notFound('There are no such records.')
    return c.body(null, 204)
  })
}

/** @throws Problem 422 */
function readMistake(fields: Record<string, unknown>): Mistake {
  const wanted = fields['mistake'] ?? 'none'
  const mistake = MISTAKES.find(({ id }) => id === wanted)
  if (mistake !== undefined) return mistake
  throw validationError(`\`mistake\` must be one of ${MISTAKES.map(({ id }) => id).join(', ')}.`)
}

/** @throws Problem 422. */
export function readName(text: string): string {
  const name = normalName(text.trim())
  const labels = name.split('.')
  const fits = name.length <= 253 && labels.every((label) => label !== '' && Buffer.byteLength(label) <= 63)
  if (!fits || labels.length < 2) throw validationError('That is not a name below a top-level domain.')
  return name
}

/** @throws Problem 422. */
export function readType(text: string): RecordType {
  const type = RECORD_TYPES.find((known) => known === text.toUpperCase())
  if (type === undefined) throw validationError(`The type must be one of ${RECORD_TYPES.join(', ')}.`)
  return type
}

/**
 * Reads `"text"`, `["text", …]`, `{"value"}`, `{"values": […]}` or, for TXT records of several strings,
 * `{"records": [["one","two"], "three"]}`; an object may carry `ttl`.
 * @throws Problem 422.
 */
function readSet(type: RecordType, body: unknown): RecordSet {
  const fields: Record<string, unknown> =
    typeof body === 'object' && body !== null && !Array.isArray(body) ? { ...body } : { values: body }
  const given = fields['records'] ?? fields['values'] ?? fields['value']
  const list: unknown[] = Array.isArray(given) ? given : [given]
  const ttl = fields['ttl'] ?? DEFAULT_TTL
  if (typeof ttl !== 'number' || !Number.isInteger(ttl) || ttl < 0 || ttl > 2_147_483_647) {
    throw validationError('`ttl` must be a whole number of seconds.')
  }
  if (list.length === 0) throw validationError('Give at least one value, or delete the records.')
  return { ttl, data: list.map((value) => readData(type, value)) }
}

/** @throws Problem 422. */
export function readData(type: RecordType, value: unknown): RecordData {
  const strings: unknown[] = Array.isArray(value) ? value : [value]
  const texts = strings.filter((item): item is string => typeof item === 'string')
  if (texts.length !== strings.length || texts.length === 0) throw validationError('A value must be a text.')
  if (type === 'TXT') return txtData(texts)
  const text = texts.join('').trim()
  if (type === 'A' && /^(\d{1,3}\.){3}\d{1,3}$/.test(text) && text.split('.').every((part) => +part < 256)) {
    return { type, value: text }
  }
  if (type === 'AAAA' && text.includes(':') && URL.canParse(`http://[${text}]/`)) return { type, value: text }
  if (type === 'CNAME' || type === 'NS') return { type, value: readTarget(text) }
  if (type === 'MX') {
    const match = /^(?:(\d{1,5})\s+)?(\S+)$/.exec(text)
    const preference = Number(match?.[1] ?? 10)
    if (match !== null && preference < 65_536) return { type, preference, value: readTarget(match[2] ?? '') }
  }
  throw validationError(`That is not the data of a record of type ${type}.`)
}

/** Case is kept: a server hands out what was typed. */
function readTarget(text: string): string {
  readName(text)
  return text.replace(/\.$/, '')
}

function describeSet(name: string, type: RecordType, set: RecordSet): object {
  return {
    name,
    type,
    ttl: set.ttl,
    values: set.data.map(shownData),
    ...(type === 'TXT'
      ? {
          records: set.data.map((data) =>
            data.type === 'TXT' ? data.strings.map((piece) => piece.toString('utf8')) : [],
          ),
        }
      : {}),
  }
}

function describeZone(zone: Zone): object {
  const records = [...zone.names].flatMap(([name, types]) =>
    [...types].map(([type, set]) => describeSet(name, type, set)),
  )
  return { name: zone.apex, serial: zone.serial, trouble: zone.trouble ?? null, records }
}
