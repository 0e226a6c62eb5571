import { setMaxListeners } from 'node:events'
import type { DnsRequest } from '../../src/context.ts'
import { checkDns, collectDnsObservations, type DnsCheckRequest } from '../../src/dns/check.ts'
import type { DnsEffects } from '../../src/dns/wire/ask.ts'
import { parseResolver } from '../../src/settings/addresses.ts'
import { type Asked, createFakeDns, type FakeReply } from './fake-dns.ts'
import { RESOLVER } from './fake-internet.ts'
import { createVirtualClock } from './virtual-clock.ts'

/** Duration of each query in milliseconds of virtual time. */
export const ROUND_MS = 100

/** Creates effects in virtual time, where each query takes `roundMs`; `asked` lists the queries sent. */
export function timedEffects(
  respond: (asked: Asked) => FakeReply,
  roundMs = ROUND_MS,
): {
  effects: DnsEffects
  asked: readonly Asked[]
} {
  const clock = createVirtualClock()
  const dns = createFakeDns(respond, clock, [])
  const { signal } = new AbortController()
  // Disable Node's warning about more than 10 listeners: dozens of queries listen to the signal at once.
  setMaxListeners(0, signal)
  const slow =
    <Server>(send: (exchange: DnsRequest<Server>) => Promise<Uint8Array>) =>
    async (exchange: DnsRequest<Server>) => {
      await clock.sleep(roundMs, exchange.signal)
      return await send(exchange)
    }
  return {
    asked: dns.asked,
    effects: {
      clock,
      dns: { ...dns, udp: slow(dns.udp), tcp: slow(dns.tcp), https: slow(dns.https) },
      random: { bytes: (length) => new Uint8Array(length).fill(3), fraction: () => 0 },
      signal,
    },
  }
}

interface TimedCheckOptions {
  readonly name?: string
  readonly expected?: string | null
  /** Addresses or HTTPS URLs of the resolvers. */
  readonly resolvers?: readonly string[]
  readonly publicResolvers?: boolean
  readonly roundMs?: number
}

/** Calls `run` with a check's request and effects in virtual time: by default, for `prefix=token` at `example.com`. */
async function timed<T>(
  run: (request: DnsCheckRequest, effects: DnsEffects) => Promise<T>,
  respond: (asked: Asked) => FakeReply,
  {
    name = 'example.com',
    expected = 'prefix=token',
    resolvers = [RESOLVER],
    publicResolvers = false,
    roundMs,
  }: TimedCheckOptions,
): Promise<{ result: T; ms: number; asked: readonly Asked[] }> {
  const { effects, asked } = timedEffects(respond, roundMs)
  const result = await run(
    {
      name,
      expected,
      resolvers: resolvers.map((text) => parseResolver(text, 'resolver')),
      authoritativePort: 53,
      publicResolvers,
    },
    effects,
  )
  return { result, ms: effects.clock.monotonic(), asked }
}

/** Collects the observations of a check in virtual time, without deriving findings. */
export async function timedObserve(respond: (asked: Asked) => FakeReply, options: TimedCheckOptions = {}) {
  const { result: seen, ms, asked } = await timed(collectDnsObservations, respond, options)
  return { seen, outcomes: seen.servers.map(({ host, outcome }) => `${host} ${outcome}`), ms, asked }
}

/** Runs a complete check in virtual time. */
export async function timedCheck(respond: (asked: Asked) => FakeReply, options: TimedCheckOptions = {}) {
  const { result: report, ms, asked } = await timed(checkDns, respond, options)
  return { report, ms, asked }
}
