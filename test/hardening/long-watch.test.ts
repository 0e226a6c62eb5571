import { expect, test } from 'vitest'
import { type Context, type HttpRequest, TransportError } from '../../src/context.ts'
import { profileFiles } from '../../src/session/session-file.ts'
import { createIo } from '../../src/terminal/io.ts'
import { createFakeContext, fakeSettings, jsonResponse, textResponse } from '../fake-context.ts'
import { run } from '../run.ts'
import { changeSession, signInWith, withEffects } from '../session/sandbox-session.ts'

const HOUR = 3_600_000
const BASE = 'http://127.0.0.1:1'
const TOKEN_SECONDS = 900

interface Service {
  respond(request: HttpRequest): ReturnType<Context['http']['send']>
  readonly counts: { polls: number; refreshes: number; blips: number; reused: number; refused: number }
}

/** Creates a service on a virtual clock, with expiring tokens, transient errors, and a response that depends on the time. */
function createService(clock: { monotonic(): number }, answerAt: (hours: number) => object): Service {
  const counts = { polls: 0, refreshes: 0, blips: 0, reused: 0, refused: 0 }
  let generation = 0
  let issuedAt = clock.monotonic()
  return {
    counts,
    async respond({ url, headers, body, beforeSend }) {
      const now = clock.monotonic()
      if (url.pathname === '/oauth/token') {
        beforeSend?.()
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
      // Fail every fiftieth poll, with each kind of transient error in turn, and all polls during an outage of five minutes.
      if (counts.polls % 50 === 49 || (now > 2 * HOUR && now < 2 * HOUR + 5 * 60_000)) {
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
  // Let the first token expire after 840 s, as if it had been issued a minute ago.
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

test.each<[string, readonly string[], (hours: number) => object, number]>([
  [
    'a claim watch ends when the claim is completed',
    ['claims', 'watch', CLAIM.domain_id],
    (passed) => ({ ...CLAIM, status: passed < 3 ? 'pending' : passed < 5 ? 'verified' : 'completed' }),
    0,
  ],
  [
    'an import watch ends when the import has failed',
    ['imports', 'watch', 'import-1'],
    (passed) => ({ id: 'import-1', status: passed < 5 ? 'in_progress' : 'failed', counts: { total: 9 } }),
    9,
  ],
])('in 5 simulated hours with outages and expiring tokens, %s', async (_what, words, answerAt, exit) => {
  const { code, events, service, hours, stderr } = await follow(words, answerAt)
  expect(code, stderr).toBe(exit)
  expect(hours).toBeGreaterThan(5)
  expect(hours).toBeLessThan(5.1)
  expect(events.at(-1)?.event).toBe('done')
  expect(events.filter(({ event }) => event === 'warning').length).toBe(service.counts.blips)
  // A renewal every 15 minutes, each with the newest refresh token, and no request with an expired access token.
  expect(service.counts).toMatchObject({ reused: 0, refused: 0 })
  expect(service.counts.refreshes).toBeGreaterThanOrEqual(20)
  expect(service.counts.refreshes).toBeLessThan(26)
  expect(service.counts.blips).toBeGreaterThan(10)
  // At most one poll per ten seconds.
  expect(service.counts.polls).toBeLessThan(5 * 380)
})
