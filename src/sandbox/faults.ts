import { randomUuid, type SandboxEffects } from './effects.ts'
import { validationError } from './problems.ts'

/** Ways for an exchange to go wrong. Which of them work on the request first is said at each. */
export const FAULT_KINDS = [
  /** Answers with `status`, `headers` and `body`; worked on first with `after`. */
  'status',
  /** Works, `before_ms` and `after_ms` later (both go with every kind). */
  'delay',
  /** Never answers; worked on first with `after`. */
  'hang',
  /** Resets the connection; worked on first with `after`. */
  'reset',
  /** Works, then closes the connection without an answer. */
  'drop',
  /** Works, then closes the connection after `bytes` of the body (half of it where not given). */
  'truncate',
  /** 200 and JSON by its headers, noise in the body; worked on first with `after`. */
  'garbage',
  /** Bytes that are not HTTP; worked on first with `after`. */
  'not_http',
  /** Works, then answers with another `content_type`. */
  'content_type',
  /** Works, then sends the body a byte every `interval_ms`. */
  'drip',
  /** A JSON text of `bytes` bytes without an end; worked on first with `after`. */
  'flood',
  /** Redirects (`status`, 307 where not given) to `url`; worked on first with `after`. */
  'redirect',
  /** A small gzip body that unpacks to `bytes` bytes; worked on first with `after`. */
  'gzip_bomb',
  /** 200 without a body; worked on first with `after`. */
  'empty',
  /** 200 and JSON by its headers, HTML in the body; worked on first with `after`. */
  'not_json',
  /** Works, then puts `fields` over the answer's own (and `item_fields` over those of each item of a list). */
  'merge',
] as const
type FaultKind = (typeof FAULT_KINDS)[number]

const ALWAYS_WORKED_ON: readonly FaultKind[] = ['delay', 'drop', 'truncate', 'content_type', 'drip', 'merge']

export interface Fault {
  readonly id: string
  readonly kind: FaultKind
  readonly method: string | undefined
  /** An exact path, or one with `*` for any text. */
  readonly path: string | undefined
  readonly probability: number
  readonly seed: number
  readonly worksFirst: boolean
  readonly beforeMs: number
  readonly afterMs: number
  readonly status: number | undefined
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
  readonly bytes: number | undefined
  readonly intervalMs: number
  readonly url: string
  readonly contentType: string
  readonly fields: Readonly<Record<string, unknown>>
  readonly itemFields: Readonly<Record<string, unknown>>
  /** Matching requests still to be spared. */
  skip: number
  /** How often it may still strike. */
  left: number
  struck: number
}

export interface Faults {
  /** @throws Problem 422. */
  add(body: unknown): Fault
  clear(): void
  list(): readonly Fault[]
  /** The fault that strikes this request, if any; that counts as a strike. */
  take(method: string, path: string): Fault | undefined
}

export function createFaults(random: SandboxEffects['random']): Faults {
  const faults: { fault: Fault; matches: RegExp; draw: () => number }[] = []
  return {
    add(body) {
      const fault = readFault(body, randomUuid(random))
      const pattern = (fault.path ?? '*').split('*').map((part) => part.replace(/[.+?^${}()|[\]\\]/g, '\\$&'))
      faults.push({ fault, matches: new RegExp(`^${pattern.join('.*')}$`), draw: seededDraw(fault.seed) })
      return fault
    },
    clear() {
      faults.length = 0
    },
    list: () => faults.map(({ fault }) => fault),
    take(method, path) {
      for (const { fault, matches, draw } of faults) {
        if (fault.left <= 0 || (fault.method !== undefined && fault.method !== method) || !matches.test(path))
          continue
        if (fault.skip > 0) {
          fault.skip -= 1
          continue
        }
        if (fault.probability < 1 && draw() >= fault.probability) continue
        fault.left -= 1
        fault.struck += 1
        return fault
      }
      return undefined
    },
  }
}

/** Numbers in [0, 1) that are the same for the same seed (mulberry32). */
function seededDraw(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let t = Math.imul(state ^ (state >>> 15), state | 1)
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61)
    return ((t ^ (t >>> 14)) >>> 0) / 0x1_0000_0000
  }
}

function readFault(body: unknown, id: string): Fault {
  const fields: Record<string, unknown> = typeof body === 'object' && body !== null ? { ...body } : {}
  const text = (name: string): string | undefined => {
    const value = fields[name]
    if (value === undefined || typeof value === 'string') return value
    throw validationError(`\`${name}\` must be a text.`)
  }
  const number = (name: string): number | undefined => {
    const value = fields[name]
    if (value === undefined || (typeof value === 'number' && value >= 0)) return value
    throw validationError(`\`${name}\` must be a number of 0 or more.`)
  }
  const object = (name: string): Record<string, unknown> => {
    const value = fields[name] ?? {}
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return { ...value }
    throw validationError(`\`${name}\` must be an object.`)
  }
  const kind = FAULT_KINDS.find((known) => known === fields['kind'])
  if (kind === undefined) throw validationError(`\`kind\` must be one of ${FAULT_KINDS.join(', ')}.`)
  const whole = fields['body'] ?? ''
  const headers = Object.entries(object('headers')).map(([name, value]) => [name, String(value)] as const)
  const status = number('status')
  if (status !== undefined && !(Number.isInteger(status) && status >= 200 && status <= 599)) {
    throw validationError('`status` must be from 200 to 599.')
  }
  return {
    id,
    kind,
    method: text('method')?.toUpperCase(),
    path: text('path'),
    probability: number('probability') ?? 1,
    seed: number('seed') ?? 1,
    worksFirst: fields['after'] === true || ALWAYS_WORKED_ON.includes(kind),
    beforeMs: number('before_ms') ?? 0,
    afterMs: number('after_ms') ?? 0,
    status,
    headers: Object.fromEntries(headers),
    body: typeof whole === 'string' ? whole : JSON.stringify(whole),
    bytes: number('bytes'),
    intervalMs: number('interval_ms') ?? 100,
    url: text('url') ?? 'http://127.0.0.1:9/',
    contentType: text('content_type') ?? 'text/html',
    fields: object('fields'),
    itemFields: object('item_fields'),
    skip: number('skip') ?? 0,
    left: number('count') ?? Number.POSITIVE_INFINITY,
    struck: 0,
  }
}
