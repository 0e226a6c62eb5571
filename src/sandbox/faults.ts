import { validationError } from './problems.ts'
import { randomUuid, type SandboxRuntime } from './runtime.ts'

/** Ways for an exchange to go wrong; some process the request first. */
export const FAULT_KINDS = [
  /** Answers with `status`, `headers` and `body`; processes the request first with `after`. */
  'status',
  /** Processes the request, with a delay of `before_ms` before and `after_ms` after (both work with every kind). */
  'delay',
  /** Never answers; processes the request first with `after`. */
  'hang',
  /** Resets the connection; processes the request first with `after`. */
  'reset',
  /** Processes the request, then closes the connection without an answer. */
  'drop',
  /** Processes the request, then closes the connection after `bytes` of the body (default: half). */
  'truncate',
  /** 200 and JSON by its headers, noise in the body; processes the request first with `after`. */
  'garbage',
  /** Bytes that are not HTTP; processes the request first with `after`. */
  'not_http',
  /** Processes the request, then answers with another `content_type`. */
  'content_type',
  /** Processes the request, then sends the body a byte every `interval_ms`. */
  'drip',
  /** A JSON text of `bytes` bytes without an end; processes the request first with `after`. */
  'flood',
  /** Redirects (`status`, default 307) to `url`; processes the request first with `after`. */
  'redirect',
  /** A small gzip body that unpacks to `bytes` bytes; processes the request first with `after`. */
  'gzip_bomb',
  /** 200 without a body; processes the request first with `after`. */
  'empty',
  /** 200 and JSON by its headers, HTML in the body; processes the request first with `after`. */
  'not_json',
  /** Processes the request, then puts `fields` over the answer's own (and `item_fields` over those of each item of a list). */
  'merge',
] as const
type FaultKind = (typeof FAULT_KINDS)[number]

const ALWAYS_PROCESSED: readonly FaultKind[] = ['delay', 'drop', 'truncate', 'content_type', 'drip', 'merge']

export interface Fault {
  readonly id: string
  readonly kind: FaultKind
  readonly method: string | undefined
  /** An exact path, or one with `*` for any text. */
  readonly path: string | undefined
  readonly probability: number
  readonly seed: number
  readonly processesFirst: boolean
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
  /** How many more matching requests to skip. */
  skip: number
  /** How many more requests it may hit. */
  left: number
  struck: number
}

export interface Faults {
  /** @throws Problem 422. */
  add(body: unknown): Fault
  clear(): void
  list(): readonly Fault[]
  /** The fault to apply to this request, if any; counts it as applied. */
  take(method: string, path: string): Fault | undefined
}

export function createFaults(random: SandboxRuntime['random']): Faults {
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
    processesFirst: fields['after'] === true || ALWAYS_PROCESSED.includes(kind),
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
