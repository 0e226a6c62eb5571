import type { Context, HttpRequest, HttpResponse } from '../../src/context.ts'
import { createFakeDns, type FakeReply } from '../dns/fake-dns.ts'
import { smallWorld } from '../dns/fake-internet.ts'
import { createVirtualClock } from '../dns/virtual-clock.ts'
import { createFakeClock, createFakeContext, createFakeOutput, jsonResponse } from '../fake-context.ts'
import { run } from '../run.ts'

export const VALUE = 'prefix=token'
const NOON = Date.UTC(2026, 10, 22, 12)

/** Returns a claim of example.com as the service sends it; `more` replaces fields. */
export const claimOf = (more: object = {}) => ({
  object: 'domain_claim',
  id: 'c1',
  name: 'example.com',
  status: 'pending',
  domain_id: 'd1',
  region: 'us-east-1',
  record: { type: 'TXT', name: 'example.com', value: VALUE, ttl: 'Auto' },
  created_at: '2026-11-22 11:00:00.0+00',
  expires_at: '2026-11-29 11:00:00.0+00',
  ...more,
})

/** Returns a 404 response of the service. */
export const GONE = () => jsonResponse(404, { name: 'not_found', message: 'Not found' })

export interface WorldOptions {
  /** Responds to a request to the service, such as `GET /domains/d1/claim`. */
  readonly respond?: (
    request: string,
    body: string | undefined,
  ) => object | Promise<HttpResponse> | HttpResponse
  /** The TXT values at example.com. */
  readonly txt?: () => readonly string[]
  readonly dns?: (asked: Parameters<ReturnType<typeof smallWorld>>[0]) => FakeReply
  readonly terminal?: { columns: number }
  readonly apiKey?: string | undefined
  readonly runInShell?: Context['runInShell']
}

/** Creates a machine with DNS and a service in memory, whose clock advances only when all other work is done. */
export function createWorld(options: WorldOptions = {}) {
  const { respond = () => claimOf(), txt = () => [VALUE], dns = smallWorld(txt) } = options
  const clock = { ...createFakeClock(), ...createVirtualClock() }
  const virtual = clock.now
  clock.now = () => NOON + virtual()
  const asked: string[] = []
  const fake = createFakeDns(dns, clock)
  const context = createFakeContext({
    clock,
    dns: fake,
    environment: {
      settings: { base_url: 'https://api.example.com', resolver: '192.0.2.53' },
      ...('apiKey' in options
        ? options.apiKey === undefined
          ? {}
          : { apiKey: options.apiKey }
        : { apiKey: 'key' }),
    },
    respond: async ({ method, url, body }: HttpRequest) => {
      const request = `${method} ${url.pathname}`
      asked.push(request)
      const answer = await respond(request, body)
      return 'headers' in answer ? (answer as HttpResponse) : jsonResponse(200, answer)
    },
    ...(options.terminal && { terminal: options.terminal }),
    ...(options.runInShell && { runInShell: options.runInShell }),
  })
  return {
    context,
    clock,
    /** Requests to the service, in order. */
    asked,
    /** DNS queries, in order. */
    questions: fake.asked,
    async run(...words: string[]) {
      const [stdout, stderr] = [createFakeOutput(options.terminal), createFakeOutput(options.terminal)]
      const code = await run(words, { ...context, stdout, stderr })
      return { code, stdout: stdout.text, stderr: stderr.text }
    },
  }
}

export const jsonLines = (text: string) =>
  text
    .trim()
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line))

/** Returns the error object from the last line of JSON on stderr. */
export const errorOf = ({ stderr }: { readonly stderr: string }) => jsonLines(stderr).at(-1)?.error
