import { setMaxListeners } from 'node:events'
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { onTestFinished } from 'vitest'
import type {
  Clock,
  Context,
  HttpRequest,
  HttpResponse,
  Keychain,
  KeychainRequest,
  KeychainResult,
  OutputStream,
} from '../src/context.ts'
import { InterruptedError } from '../src/errors.ts'
import { type GivenOptions, resolveSettings, type Settings } from '../src/settings/settings.ts'

/** A clock that stands still until a test advances it, or until a sleep, which advances it at once and returns. */
export interface FakeClock extends Clock {
  /** Rings all pending alarms, whatever their time. */
  ring(): void
  /** Advances wall clock and monotonic clock; rings no alarm. */
  advance(ms: number): void
  /** Sets the wall clock (milliseconds since 1970) but not the monotonic clock, as a user or NTP does. */
  setWall(ms: number): void
  /** Durations of the sleeps in milliseconds, in order. */
  readonly slept: number[]
}

export function createFakeClock(start = Date.parse('2026-11-20T12:00:00Z')): FakeClock {
  let wall = start
  let passed = 0
  const slept: number[] = []
  const alarms = new Set<() => void>()
  return {
    slept,
    alarm(_ms, ring) {
      alarms.add(ring)
      return () => alarms.delete(ring)
    },
    ring() {
      const due = [...alarms]
      alarms.clear()
      for (const alarm of due) alarm()
    },
    now: () => wall,
    monotonic: () => passed,
    advance(ms) {
      wall += ms
      passed += ms
    },
    setWall(ms) {
      wall = ms
    },
    async sleep(ms, signal) {
      signal?.throwIfAborted()
      slept.push(ms)
      // Let pending callbacks run, as they would during a real sleep.
      await new Promise((resolve) => setImmediate(resolve))
      signal?.throwIfAborted()
      wall += ms
      passed += ms
    },
  }
}

export interface FakeOutput extends OutputStream {
  readonly text: string
}

export function createFakeOutput(terminal?: { columns: number }): FakeOutput {
  let text = ''
  return {
    isTTY: terminal !== undefined,
    columns: terminal?.columns,
    get text() {
      return text
    },
    async write(piece) {
      text += piece
    },
  }
}

export interface FakeContext extends Context {
  readonly stdout: FakeOutput
  readonly stderr: FakeOutput
  readonly clock: FakeClock
  readonly stdin: { readonly isTTY: boolean; readonly stream: PassThrough }
  /** HTTP requests sent so far, in order; empty if the test gives its own `http`. */
  readonly requests: HttpRequest[]
  /** URLs opened in a browser so far, in order. */
  readonly opened: string[]
  interrupt(signal?: 'SIGINT' | 'SIGTERM'): void
}

export interface FakeContextOptions {
  /** Home directory; by default a new directory that is removed when the test ends. */
  home?: string
  /** Makes all standard streams a terminal of this width; by default, they are pipes. */
  terminal?: { columns: number }
  environment?: Partial<Context['environment']>
  /** Returns the response to each HTTP request; by default, a request rejects with an error. */
  respond?: (request: HttpRequest) => HttpResponse | Promise<HttpResponse>
  http?: Context['http']
  dns?: Context['dns']
  prompts?: Partial<Context['prompts']>
  runInShell?: Context['runInShell']
  keychain?: Context['keychain']
  clock?: FakeClock
}

/** Returns the parent of temporary directories: in memory if possible, because fsync on a busy disk takes most of a test's time. */
const temporary = () => (existsSync('/dev/shm') ? '/dev/shm' : tmpdir())

/**
 * Creates a context in which only the files are real. HTTP requests, DNS queries, shell commands and prompts for which no option is
 * given reject with an error.
 */
export function createFakeContext(options: FakeContextOptions = {}): FakeContext {
  const home = options.home ?? mkdtempSync(join(temporary(), 'mailclaim-test-'))
  if (options.home === undefined) onTestFinished(() => rmSync(home, { recursive: true, force: true }))
  const interrupts = new AbortController()
  setMaxListeners(0, interrupts.signal)
  const requests: HttpRequest[] = []
  const opened: string[] = []
  const unexpected = (what: string) => async (): Promise<never> => {
    throw new Error(`the test did not expect ${what}`)
  }
  return {
    installation: {
      version: '0.0.0-test',
      host: 'build-1',
      schemas: '/schemas',
    },
    environment: { settings: {}, noColor: false, ci: false, ssh: false, ...options.environment },
    directories: { config: join(home, 'config'), state: join(home, 'state') },
    platform: 'linux',
    stdin: { isTTY: options.terminal !== undefined, stream: new PassThrough() },
    stdout: createFakeOutput(options.terminal),
    stderr: createFakeOutput(options.terminal),
    clock: options.clock ?? createFakeClock(),
    random: { bytes: (length) => new Uint8Array(length).fill(7), fraction: () => 1 },
    http: options.http ?? {
      send: async (request) => {
        requests.push(request)
        if (options.respond === undefined)
          throw new Error(`the test did not expect ${request.method} ${request.url}`)
        return options.respond(request)
      },
      close: async () => {},
    },
    dns: options.dns ?? {
      udp: unexpected('a DNS question'),
      tcp: unexpected('a DNS question'),
      systemResolvers: async () => [],
    },
    openBrowser: async (url) => {
      opened.push(url)
    },
    runInShell: options.runInShell ?? unexpected('a program'),
    prompts: {
      input: unexpected('a question'),
      password: unexpected('a question for a secret'),
      confirm: unexpected('a yes-or-no question'),
      select: unexpected('a choice'),
      ...options.prompts,
    },
    keychain: options.keychain ?? createFakeKeychain(),
    interrupts: { signal: interrupts.signal, shield: (work) => work() },
    requests,
    opened,
    interrupt: (signal = 'SIGINT') => interrupts.abort(new InterruptedError(signal)),
  }
}

export interface FakeKeychain extends Keychain {
  /** Stored secrets by account. */
  readonly items: Map<string, string>
  readonly calls: KeychainRequest[]
  /** Failure of all later calls. In a `locked` keychain, as on Linux, items seem absent, and only `set` fails. */
  trouble: 'none' | 'locked' | Extract<KeychainResult, { ok: false }>['reason']
}

/** Creates a keychain in memory that fails as `trouble` says. */
export function createFakeKeychain(): FakeKeychain {
  const items = new Map<string, string>()
  const calls: KeychainRequest[] = []
  return {
    items,
    calls,
    trouble: 'none',
    async call(request) {
      calls.push(request)
      if (this.trouble === 'locked') {
        if (request.operation === 'get') return { ok: true, value: null }
        if (request.operation === 'delete') return { ok: true, value: false }
      }
      if (this.trouble !== 'none') return { ok: false, reason: this.trouble, detail: '' }
      switch (request.operation) {
        case 'get':
          return { ok: true, value: items.get(request.account) ?? null }
        case 'set':
          items.set(request.account, request.secret ?? '')
          return { ok: true, value: true }
        case 'delete':
          return { ok: true, value: items.delete(request.account) }
      }
    },
  }
}

export function jsonResponse(
  status: number,
  body: unknown,
  headers: Record<string, string> = {},
): HttpResponse {
  return textResponse(status, JSON.stringify(body), { 'content-type': 'application/json', ...headers })
}

export function textResponse(
  status: number,
  body: string,
  headers: Record<string, string> = {},
): HttpResponse {
  return { status, headers, text: body }
}

/** Resolves settings from these options; the base URL is `http://127.0.0.1:1` by default, and the client id `client-1`. */
export function fakeSettings(
  context: Context,
  options: GivenOptions = {},
  argv: readonly string[] = [],
): Promise<Settings> {
  return resolveSettings({ baseUrl: 'http://127.0.0.1:1', clientId: 'client-1', ...options }, argv, context)
}
