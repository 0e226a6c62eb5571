import { setMaxListeners } from 'node:events'
import packet from 'dns-packet'
import { checkDns, observe } from '../../src/dns/check.ts'
import type { Observations } from '../../src/dns/observations.ts'
import type { CheckReport } from '../../src/dns/report.ts'
import type { DnsEffects } from '../../src/dns/wire/ask.ts'
import { type Asked, createFakeDns, type FakeReply } from './fake-dns.ts'
import { RESOLVER } from './fake-internet.ts'
import { createVirtualClock } from './virtual-clock.ts'

/** How long each query takes, in milliseconds of virtual time. */
export const ROUND_MS = 100

/** Effects in virtual time, where every query takes `roundMs`, and the queries sent. */
export function timedEffects(
  respond: (asked: Asked) => FakeReply,
  roundMs: (server: string, name: string, type: string) => number = () => ROUND_MS,
): {
  effects: DnsEffects
  asked: readonly Asked[]
} {
  const clock = createVirtualClock()
  const dns = createFakeDns(respond, clock, [])
  const { signal } = new AbortController()
  // Dozens of queries listen to it.
  setMaxListeners(0, signal)
  const slow =
    (transport: 'udp' | 'tcp'): (typeof dns)['udp'] =>
    async (exchange) => {
      const [question] = packet.decode(Buffer.from(exchange.message)).questions ?? []
      const ms = roundMs(exchange.server.address, question?.name ?? '', question?.type ?? '')
      await clock.sleep(ms, exchange.signal)
      return await dns[transport](exchange)
    }
  return {
    asked: dns.asked,
    effects: {
      clock,
      dns: { ...dns, udp: slow('udp'), tcp: slow('tcp') },
      random: { bytes: (length) => new Uint8Array(length).fill(3), fraction: () => 0 },
      signal,
    },
  }
}

interface TimedCheckOptions {
  readonly name?: string
  readonly expected?: string | null
  readonly resolvers?: readonly string[]
  readonly roundMs?: Parameters<typeof timedEffects>[1]
}

/** What a check sees in virtual time of the name and its record: by default, of `prefix=token` at `example.com`. */
export async function timedObserve(
  respond: (asked: Asked) => FakeReply,
  {
    name = 'example.com',
    expected = 'prefix=token',
    resolvers = [RESOLVER],
    roundMs,
  }: TimedCheckOptions = {},
): Promise<{ seen: Observations; outcomes: readonly string[]; ms: number; asked: readonly Asked[] }> {
  const { effects, asked } = timedEffects(respond, roundMs)
  const seen = await observe(
    {
      name,
      expected,
      resolvers: resolvers.map((address) => ({ address, port: 53 })),
      authoritativePort: 53,
      publicResolvers: false,
    },
    effects,
  )
  const outcomes = seen.servers.map(({ host, outcome }) => `${host} ${outcome}`)
  return { seen, outcomes, ms: effects.clock.monotonic(), asked }
}

/** Checks in virtual time whether the name has the record: by default, whether `example.com` has `prefix=token`. */
export async function timedCheck(
  respond: (asked: Asked) => FakeReply,
  {
    name = 'example.com',
    expected = 'prefix=token',
    resolvers = [RESOLVER],
    roundMs,
  }: TimedCheckOptions = {},
): Promise<{ report: CheckReport; ms: number; asked: readonly Asked[] }> {
  const { effects, asked } = timedEffects(respond, roundMs)
  const report = await checkDns(
    {
      name,
      expected,
      resolvers: resolvers.map((address) => ({ address, port: 53 })),
      authoritativePort: 53,
      publicResolvers: false,
    },
    effects,
  )
  return { report, ms: effects.clock.monotonic(), asked }
}
