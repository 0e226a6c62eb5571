import { randomBytes } from 'node:crypto'
import { existsSync, readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, onTestFinished } from 'vitest'
import type { Context, HttpTransport } from '../../src/context.ts'
import { createDnsNetwork } from '../../src/dns/wire/network.ts'
import type { Sandbox } from '../../src/sandbox/sandbox.ts'
import type { ProxySettings } from '../../src/service/proxy.ts'
import { createTransport } from '../../src/service/transport.ts'
import { profileFiles, tryReadSession } from '../../src/session/session-file.ts'
import { createIo } from '../../src/terminal/io.ts'
import {
  createFakeClock,
  createFakeContext,
  createFakeOutput,
  type FakeClock,
  type FakeContext,
  fakeSettings,
} from '../fake-context.ts'
import { run } from '../run.ts'
import { control as send } from '../sandbox/talk.ts'
import { expireAccessToken, newTokens, signInWith, withEffects } from '../session/sandbox-session.ts'

/** Creates a clock that skips sleeps of up to ten minutes. Other work takes real time. */
function createHastyClock(): FakeClock {
  let ahead = 0
  const clock = createFakeClock()
  const real = () => performance.timeOrigin + performance.now()
  return {
    ...clock,
    now: () => Math.floor(real() + ahead),
    monotonic: () => performance.now() + ahead,
    async sleep(ms, signal) {
      signal?.throwIfAborted()
      clock.slept.push(ms)
      // A longer sleep is the time limit for a user's action: it must only be aborted, never end.
      if (ms > 600_000) {
        return new Promise((_resolve, reject) => {
          signal?.addEventListener('abort', () => reject(signal.reason), { once: true })
        })
      }
      await new Promise((resolve) => setImmediate(resolve))
      signal?.throwIfAborted()
      ahead += ms
    },
  }
}

/** Creates a clock with real time and real sleeps. */
export function createRealClock(): FakeClock {
  return {
    ...createFakeClock(),
    now: () => Date.now(),
    monotonic: () => performance.now(),
    sleep: (ms, signal) => sleep(ms, undefined, signal === undefined ? {} : { signal }),
  }
}

export interface Ran {
  readonly words: readonly string[]
  readonly code: number
  readonly stdout: string
  readonly stderr: string
  readonly ms: number
}

export interface Client {
  readonly context: FakeContext
  /** Runs one command in this process, through the same `run` as the program. */
  run(words: readonly string[], terminal?: { columns: number }): Promise<Ran>
  signIn(): Promise<void>
  /** Makes the stored access token look expired. */
  expire(): void
  /** Returns the secrets that must never be printed: the client's current tokens and the API key. */
  secrets(): string[]
}

export interface ClientOptions {
  /** Base URL of the service. Default: the sandbox's. */
  readonly baseUrl?: string
  /** OAuth client id. Default: the sandbox's default client. */
  readonly clientId?: string
  readonly proxies?: ProxySettings
  /** Whether to send the sandbox's API key instead of a session's token. */
  readonly apiKey?: true
  /** Timeout of each HTTP exchange in milliseconds, instead of the program's own. */
  readonly timeLimitMs?: number
  /** Default: the clock that skips sleeps. Tests with DNS need a real clock, because DNS deadlines are sleeps. */
  readonly clock?: FakeClock
  readonly runInShell?: Context['runInShell']
}

/** Creates a client that runs in this process, with its own home directory and real HTTP, DNS and files. */
export function createClient(sandbox: Sandbox, options: ClientOptions = {}): Client {
  const transport = createTransport(options.proxies ?? {})
  onTestFinished(() => transport.close())
  const { timeLimitMs } = options
  const http: HttpTransport = {
    send: (request) => transport.send({ ...request, timeoutMs: timeLimitMs ?? request.timeoutMs }),
    close: () => transport.close(),
  }
  const baseUrl = options.baseUrl ?? sandbox.baseUrl
  const base = createFakeContext({
    ...(options.runInShell && { runInShell: options.runInShell }),
    clock: options.clock ?? createHastyClock(),
    http,
    environment: {
      settings: {
        base_url: baseUrl,
        client_id: options.clientId ?? sandbox.clientId,
        resolver: sandbox.dns,
        authoritative_port: sandbox.dns.split(':').at(-1) ?? '',
        store: 'file',
      },
      ...(options.apiKey ? { apiKey: sandbox.apiKey } : {}),
    },
  })
  const context = withEffects(base, {
    random: { bytes: (length) => randomBytes(length), fraction: Math.random },
    dns: createDnsNetwork(),
    // Stands in for the browser: the sandbox approves at once, and `fetch` follows the redirect to the callback listener.
    openBrowser: async (url) => {
      await fetch(url).then(
        (page) => page.arrayBuffer(),
        () => {},
      )
    },
  })
  const files = profileFiles(context, 'default')
  return {
    context,
    async run(words, terminal) {
      const stdout = createFakeOutput(terminal)
      const stderr = createFakeOutput(terminal)
      // stdin is a terminal only for a login, which opens a browser only for a user at a terminal.
      const isTTY = words[0] === 'login' && !words.includes('--with-api-key')
      const stdin = { ...context.stdin, isTTY: context.stdin.isTTY || isTTY }
      const began = performance.now()
      const code = await run(words, { ...context, stdin, stdout, stderr })
      return { words, code, stdout: stdout.text, stderr: stderr.text, ms: performance.now() - began }
    },
    async signIn() {
      const settings = await fakeSettings(context, { baseUrl, clientId: sandbox.clientId })
      await signInWith(createIo(context, settings), await newTokens(sandbox), 'file')
    },
    expire: () => expireAccessToken(files),
    secrets() {
      const found = [sandbox.apiKey]
      const session = tryReadSession(files)
      found.push(session?.refreshToken ?? '', session?.access?.value ?? '')
      return found.filter((secret) => secret !== '')
    },
  }
}

/** Lists the paths of all JSON files below a directory. */
export function filesBelow(directory: string): string[] {
  if (!existsSync(directory)) return []
  return readdirSync(directory, { recursive: true, encoding: 'utf8' })
    .map((name) => join(directory, name))
    .filter((path) => path.endsWith('.json') && statSync(path).isFile())
}

/** Checks a failure's output: one error, at most one hint, no stack trace or `undefined`, no harmful characters. */
export function expectCalmFailure(ran: Ran): void {
  const where = `${ran.words.join(' ')}\n${ran.stderr}`
  const lines = ran.stderr.split('\n')
  const errors = lines.filter((line) => line.startsWith('error: ') || line.startsWith('{"error":{'))
  expect(errors.length, where).toBe(ran.code === 0 ? 0 : 1)
  expect(lines.filter((line) => line.startsWith('hint: ')).length, where).toBeLessThan(2)
  expect(ran.stderr, where).not.toContain('this is a bug')
  expect(ran.stderr, where).not.toMatch(/^\s+at .+:\d+/m)
  expect(ran.stderr, where).not.toMatch(/\[object |\bundefined\b|\bNaN\b|Invalid Date/)
  expect(harmfulIn(ran.stdout + ran.stderr)).toEqual([])
  expect(ran.stderr.length, where).toBeLessThan(4000)
}

/** Ranges of code points that no output may contain, first to last. Tab (U+0009) and line feed (U+000A) are allowed. */
const HARMFUL: readonly (readonly [number, number, string])[] = [
  [0x00, 0x08, 'C0'],
  [0x0b, 0x1f, 'C0'],
  [0x7f, 0x9f, 'DEL or C1'],
  [0xad, 0xad, 'soft hyphen'],
  [0x34f, 0x34f, 'joiner'],
  [0x61c, 0x61c, 'bidi mark'],
  [0x115f, 0x1160, 'filler'],
  [0x17b4, 0x17b5, 'invisible vowel'],
  [0x180b, 0x180f, 'selector'],
  [0x200b, 0x200f, 'zero-width or bidi'],
  [0x2028, 0x202e, 'separator or bidi'],
  [0x2060, 0x206f, 'invisible'],
  [0x3164, 0x3164, 'filler'],
  [0xd800, 0xdfff, 'lone surrogate'],
  [0xfeff, 0xfeff, 'byte order mark'],
  [0xffa0, 0xffa0, 'filler'],
  [0xfff0, 0xfffb, 'annotation'],
  [0xe0000, 0xe0fff, 'tag'],
]

/** Finds the harmful characters of a text, each described as `name U+XXXX in "context"`. */
export function harmfulIn(text: string): string[] {
  const found: string[] = []
  let at = 0
  for (const character of text) {
    const code = character.codePointAt(0) ?? 0
    const range = HARMFUL.find(([first, last]) => code >= first && code <= last)
    if (range !== undefined) {
      const near = JSON.stringify(text.slice(Math.max(0, at - 20), at + 20))
      found.push(`${range[2]} U+${code.toString(16).toUpperCase()} in ${near}`)
    }
    at += character.length
  }
  return found
}

/** Sends a request to the sandbox's control API, and returns the parsed response. */
export async function control(
  sandbox: Sandbox,
  method: string,
  path: string,
  body?: unknown,
): Promise<unknown> {
  const answer = await send(sandbox, method, `/${path}`, body)
  if (answer.status >= 300) throw new Error(`${method} ${path}: ${answer.status}`)
  return answer.body
}
