import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { describe, expect, test } from 'vitest'
import { run } from '../../src/cli.ts'
import { type Context, type HttpRequest, TransportError } from '../../src/context.ts'
import { profileFiles } from '../../src/session/session-file.ts'
import { createIo } from '../../src/terminal/io.ts'
import { createFakeContext, fakeSettings, jsonResponse, textResponse } from '../fake-context.ts'
import { changeSession, signInWith, withEffects } from '../session/sandbox-session.ts'

const HOUR = 3_600_000
const BASE = 'http://127.0.0.1:1'
const TOKEN_SECONDS = 900

/** The memory in use after everything that nobody holds was let go, in MB. */
function memoryInUse(): number {
  setFlagsFromString('--expose_gc')
  const collect = runInNewContext('gc') as () => void
  collect()
  return process.memoryUsage().heapUsed / 1024 ** 2
}

interface Service {
  respond(request: HttpRequest): ReturnType<Context['http']['send']>
  readonly counts: { polls: number; refreshes: number; blips: number; reused: number; refused: number }
  /** The memory in use, by the hour. */
  readonly memory: number[]
}

/** A service on a virtual clock: tokens that end, blips of every kind, and a claim that completes after 20 hours. */
function createService(clock: { monotonic(): number }, answerAt: (hours: number) => object): Service {
  const counts = { polls: 0, refreshes: 0, blips: 0, reused: 0, refused: 0 }
  const memory: number[] = []
  let generation = 0
  let issuedAt = clock.monotonic()
  return {
    counts,
    memory,
    async respond({ url, headers, body }) {
      const now = clock.monotonic()
      if (url.pathname === '/oauth/token') {
        if (new URLSearchParams(body).get('refresh_token') !== `refresh-${generation}`) counts.reused += 1
        generation += 1
        issuedAt = now
        counts.refreshes += 1
        return jsonResponse(200, {
          access_token: `access-${generation}`,
          token_type: 'Bearer',
          expires_in: TOKEN_SECONDS,
          refresh_token: `refresh-${generation}`,
        })
      }
      if (
        headers['authorization'] !== `Bearer access-${generation}` ||
        now - issuedAt > TOKEN_SECONDS * 1000
      ) {
        counts.refused += 1
        return jsonResponse(401, { name: 'invalid_token' })
      }
      counts.polls += 1
      while (memory.length < now / HOUR) memory.push(memoryInUse())
      // A blip every hundred polls: each kind of it in turn, and once an outage of some minutes.
      if (counts.polls % 100 === 99 || (now > 7 * HOUR && now < 7 * HOUR + 5 * 60_000)) {
        const kinds = [
          () => Promise.reject(new TransportError('reset', 'maybe', 'the connection was closed')),
          () => Promise.reject(new TransportError('timeout', 'maybe', 'no complete answer')),
          () => Promise.reject(new TransportError('lookup', 'no', 'the name could not be looked up')),
          async () => textResponse(502, '<h1>Bad Gateway</h1>'),
          async () => jsonResponse(429, {}, { 'retry-after': '90' }),
          async () => textResponse(503, '', { 'retry-after': '9999999999' }),
          async () => textResponse(200, 'not JSON'),
        ]
        return (kinds[counts.blips++ % kinds.length] ?? kinds[0])?.() as Promise<never>
      }
      return jsonResponse(200, answerAt(now / HOUR))
    },
  }
}

const CLAIM = {
  object: 'domain_claim',
  id: 'claim-1',
  name: 'example.com',
  domain_id: 'd5f1a5a0-7c39-4a8e-9c1a-2f6b1f6f0c11',
  record: { type: 'TXT', name: 'example.com', value: 'prefix=token', ttl: 'Auto' },
  expires_at: '2026-11-27 12:00:00+00',
}

async function follow(words: readonly string[], answerAt: (hours: number) => object) {
  const base = createFakeContext({ environment: { settings: { base_url: BASE, client_id: 'client-1' } } })
  const service = createService(base.clock, answerAt)
  const context = withEffects(base, {
    random: { bytes: (length) => new Uint8Array(length).fill(9), fraction: () => 0.5 },
    http: { send: (request) => service.respond(request), close: async () => {} },
  })
  const settings = await fakeSettings(context, { baseUrl: BASE, clientId: 'client-1' })
  const tokens = {
    accessToken: 'access-0',
    refreshToken: 'refresh-0',
    expiresInSeconds: TOKEN_SECONDS,
    scope: undefined,
  }
  await signInWith(createIo(context, settings), tokens, 'file')
  // A minute of the first token is gone already.
  const files = profileFiles(context, 'default')
  changeSession(files, {
    access: {
      value: 'access-0',
      scope: null,
      lifetimeSeconds: 840,
      expiresAt: context.clock.now() + 840_000,
    },
  })
  const code = await run([...words, '--format', 'jsonl'], context)
  const events = context.stdout.text
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as { event: string })
  return { code, events, service, hours: context.clock.monotonic() / HOUR, stderr: context.stderr.text }
}

/** The memory of the last quarter is that of the first, apart from a few MB that a test runner breathes. */
function expectFlat(memory: readonly number[]): void {
  const mean = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0) / values.length
  const early = mean(memory.slice(2, 7))
  const late = mean(memory.slice(-5))
  console.log(`memory in use by the hour, MB: ${memory.map((value) => value.toFixed(1)).join(' ')}`)
  expect(late - early).toBeLessThan(6)
}

describe('20 simulated hours of watching, with short outages and expiring tokens', () => {
  test('a claim watch of 20 simulated hours ends when the claim is completed', async () => {
    const { code, events, service, hours, stderr } = await follow(
      ['claims', 'watch', CLAIM.domain_id],
      (passed) => ({
        ...CLAIM,
        status: passed < 12 ? 'pending' : passed < 20 ? 'verified' : 'completed',
      }),
    )
    expect(code, stderr).toBe(0)
    expect(hours).toBeGreaterThan(20)
    expect(hours).toBeLessThan(20.1)
    expect(events.at(-1)?.event).toBe('done')
    expect(events.filter(({ event }) => event === 'status')).toHaveLength(2)
    expect(events.filter(({ event }) => event === 'warning').length).toBe(service.counts.blips)
    // Every 15 minutes a new access token, each with the refresh token that was the newest.
    expect(service.counts).toMatchObject({ reused: 0, refused: 0 })
    expect(service.counts.refreshes).toBeGreaterThanOrEqual(80)
    expect(service.counts.refreshes).toBeLessThan(100)
    expect(service.counts.blips).toBeGreaterThan(20)
    // Half a minute apart: no hammering, however long it takes.
    expect(service.counts.polls).toBeLessThan(20 * 150)
    expectFlat(service.memory)
  })

  test('an import watch of 20 simulated hours ends when the import has failed', async () => {
    const { code, events, service, hours, stderr } = await follow(
      ['imports', 'watch', 'import-1'],
      (passed) => ({
        object: 'contact_import',
        id: 'import-1',
        status: passed < 20 ? 'in_progress' : 'failed',
        counts: { total: 1_000_000, created: Math.floor(passed * 1000), updated: 0, skipped: 0, failed: 0 },
      }),
    )
    expect(code, stderr).toBe(9)
    expect(hours).toBeGreaterThan(20)
    expect(events.at(-1)?.event).toBe('done')
    expect(service.counts).toMatchObject({ reused: 0, refused: 0 })
    expectFlat(service.memory)
  })

  test('a claim watch of 20 simulated hours ends with exit 9 at the expiry, even if the service never reports it', async () => {
    const { code, hours } = await follow(['claims', 'watch', CLAIM.domain_id], () => ({
      ...CLAIM,
      status: 'pending',
      expires_at: '2026-11-21 08:00:00+00',
    }))
    expect(code).toBe(9)
    expect(hours).toBeGreaterThan(20)
    expect(hours).toBeLessThan(20.2)
  })
})
