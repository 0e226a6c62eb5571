import { expect, it } from 'vitest'
import type { Clock, Context, HttpRequest, HttpResponse } from '../../src/context.ts'
import { CliError } from '../../src/errors.ts'
import { renew } from '../../src/session/refresh.ts'
import { replaceShared } from '../../src/session/shared/replace.ts'
import { SharedVault } from '../../src/session/shared/vault.ts'
import { createMemoryEtcd } from '../../test/etcd/memory-etcd.ts'
import { createFakeContext, fakeSettings, jsonResponse } from '../../test/fake-context.ts'
import { seeded } from '../../test/session/processes.ts'
import { withEffects } from '../../test/session/sandbox-session.ts'
import { seed } from './options.ts'

const MACHINES = Number(process.env['MAILCLAIM_CHAOS_MACHINES'] ?? 2000)
const DAY_MS = 24 * 3600 * 1000
/** Each machine runs a command at every full hour, within half a minute of it, as cron does. */
const EVERY_MS = 3600 * 1000
const SPREAD_MS = 30_000

/** A clock that jumps from one event to the next, once everything that is ready has happened. */
class VirtualTime {
  now = 0
  readonly #events: { at: number; order: number; ring: () => void }[] = []
  #order = 0
  /** Encryption runs on other threads, as files do, and time must not pass meanwhile. */
  #outside = 0

  constructor() {
    const { subtle } = globalThis.crypto
    for (const name of ['encrypt', 'decrypt', 'importKey'] as const) {
      const original = subtle[name].bind(subtle) as (...words: unknown[]) => Promise<unknown>
      Object.defineProperty(subtle, name, {
        value: (...words: unknown[]) => {
          this.#outside++
          return original(...words).finally(() => this.#outside--)
        },
      })
    }
  }

  after(ms: number): Promise<void> {
    return new Promise((resolve) => this.#add(ms, resolve))
  }

  #add(ms: number, ring: () => void): void {
    const events = this.#events
    const event = { at: this.now + Math.max(0, ms), order: this.#order++, ring }
    // A binary heap: there are millions of events.
    let at = events.push(event) - 1
    while (at > 0) {
      const parent = (at - 1) >> 1
      if (isBefore(events[parent] as Event, event)) break
      events[at] = events[parent] as Event
      at = parent
    }
    events[at] = event
  }

  #take(): Event | undefined {
    const events = this.#events
    const [first] = events
    const last = events.pop()
    if (first === undefined || last === undefined || events.length === 0) return first
    let at = 0
    for (;;) {
      let child = at * 2 + 1
      if (child >= events.length) break
      if (child + 1 < events.length && isBefore(events[child + 1] as Event, events[child] as Event)) child++
      if (isBefore(last, events[child] as Event)) break
      events[at] = events[child] as Event
      at = child
    }
    events[at] = last
    return first
  }

  /** Lets time pass until the work has settled. */
  async run<T>(work: Promise<T>): Promise<T> {
    let isOver = false
    const end = () => {
      isOver = true
    }
    work.then(end, end)
    while (!isOver) {
      const event = this.#take()
      if (event !== undefined) {
        this.now = event.at
        event.ring()
      }
      for (let quiet = 0; quiet < QUIET; quiet++) {
        await new Promise((resolve) => setImmediate(resolve))
        if (this.#outside > 0 || (quiet === QUIET - 1 && isReading())) quiet = -1
      }
    }
    return work
  }
}

/** How many turns of the event loop have to bring nothing before time may pass. */
const QUIET = 10
const isReading = () => process.getActiveResourcesInfo().some((name) => name.startsWith('FSReq'))

type Event = { at: number; order: number; ring: () => void }
const isBefore = (one: Event, other: Event) =>
  one.at < other.at || (one.at === other.at && one.order < other.order)

it(`${MACHINES} machines share one sign-in for a virtual day`, async () => {
  const time = new VirtualTime()
  const random = seeded(seed)
  const began = Date.parse('2026-11-22T00:00:00Z')
  const clock: Clock = {
    now: () => began + time.now,
    monotonic: () => time.now,
    sinceBoot: () => ({ seconds: 1000 + time.now / 1000, boot: undefined }),
    sleep: (ms) => time.after(ms),
    alarm: () => () => {},
  }
  const asked: Record<string, number> = {}
  const etcd = createMemoryEtcd()
  let current = 'refresh-1'
  let refreshes = 0
  let reuse = 0

  function answer(request: HttpRequest): HttpResponse {
    const stored = etcd(request)
    if (stored !== undefined) return stored
    if (new URLSearchParams(request.body).get('refresh_token') !== current) {
      reuse++
      return jsonResponse(400, { error: 'invalid_grant' })
    }
    refreshes++
    current = `refresh-${refreshes + 1}`
    return jsonResponse(200, {
      access_token: `access-${refreshes + 1}`,
      token_type: 'Bearer',
      expires_in: 900,
      refresh_token: current,
    })
  }

  const http: Context['http'] = {
    close: async () => {},
    async send(request) {
      asked[request.url.pathname] = (asked[request.url.pathname] ?? 0) + 1
      const isToken = request.url.pathname === '/oauth/token'
      // Connecting, then half of the way there, then back.
      await time.after(isToken ? 30 + random() * 30 : 4 + random() * 8)
      await request.beforeSend?.()
      await time.after(isToken ? 100 + random() * 300 : 1 + random() * 2)
      const response = answer(request)
      await time.after(isToken ? 20 : 1 + random() * 2)
      return response
    },
  }
  const environment: Partial<Context['environment']> = {
    storeKey: Buffer.alloc(32, 7).toString('base64'),
    storeUser: 'mailclaim',
    storePassword: 'x',
    settings: { store: 'etcd', store_url: 'https://a:2379,https://b:2379,https://c:2379' },
  }
  const bytes = (length: number) => Uint8Array.from({ length }, () => Math.floor(random() * 256))
  const context = withEffects(createFakeContext({ http, environment }), {
    clock,
    random: { bytes, fraction: random },
  } as Partial<Context>)
  const settings = await fakeSettings(context, { baseUrl: 'https://api.example.com', clientId: 'client' })
  // Nothing is kept there, and reading a full directory takes time.
  process.env['TMPDIR'] = '/proc/nowhere'

  const record = {
    kind: 'oauth',
    id: '0123456789ab',
    profile: 'default',
    issuer: 'https://api.example.com',
    clientId: 'client',
    scope: null,
    resource: null,
    store: 'etcd',
    signedInAt: began,
    ended: null,
  } as const
  const received = { wall: began - 900_000, sinceBoot: 100, boot: null }
  const token = { session: record.id, generation: 1, issuer: record.issuer, clientId: 'client' }
  const first = { ...token, value: 'access-1', scope: null, narrowed: false, expiresInSeconds: 900, received }
  const secret = { generation: 1, issuedAt: began, value: current }
  await time.run(replaceShared(new SharedVault(context, settings), { record, secret, token: first }))
  for (const path of Object.keys(asked)) asked[path] = 0

  const took: number[] = []
  const failures: string[] = []
  async function machine(): Promise<void> {
    const offset = random() * SPREAD_MS
    for (let at = offset; at < DAY_MS; at += EVERY_MS) {
      await time.after(at - time.now)
      const begun = time.now
      try {
        await renew(context, settings, { reason: 'stale' })
      } catch (error) {
        failures.push(error instanceof CliError ? error.code : String(error))
      }
      took.push(time.now - begun)
    }
  }
  await time.run(Promise.all(Array.from({ length: MACHINES }, machine)))
  took.sort((one, other) => one - other)
  const requests = Object.entries(asked)
    .filter(([path]) => path.startsWith('/v3/'))
    .reduce((sum, [, count]) => sum + count, 0)
  const commands = took.length
  const counts = {
    scenario: `${MACHINES} machines, a virtual day`,
    seed,
    commands,
    refreshes,
    reuse,
    failures: failures.length,
    service_connections_per_refresh: Number(((asked['/oauth/token'] ?? 0) / refreshes).toFixed(2)),
    etcd_requests: requests,
    etcd_requests_per_command: Number((requests / commands).toFixed(3)),
    // Without a refresh, a command makes two: authenticate, and read.
    etcd_requests_more_per_refresh: Number(((requests - 2 * commands) / refreshes).toFixed(1)),
    transactions_per_refresh: Number(((asked['/v3/kv/txn'] ?? 0) / refreshes).toFixed(2)),
    median_ms: Math.round(took[Math.floor(commands / 2)] ?? 0),
    p99_ms: Math.round(took[Math.floor(commands * 0.99)] ?? 0),
    longest_ms: Math.round(took.at(-1) ?? 0),
  }
  process.stdout.write(`${JSON.stringify(counts)}\n`)
  expect(counts).toMatchObject({ reuse: 0, failures: 0 })
  expect(counts.longest_ms).toBeLessThan(10_000)
})
