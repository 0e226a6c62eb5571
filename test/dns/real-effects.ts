import { randomBytes } from 'node:crypto'
import type { DnsEffects } from '../../src/dns/wire/ask.ts'
import { exchangeDnsOverHttps } from '../../src/dns/wire/https.ts'
import { createDnsNetwork } from '../../src/dns/wire/network.ts'
import { createTransport } from '../../src/service/transport.ts'

/** Creates effects with real sockets and real time, for tests against servers on loopback. */
export function realEffects(
  signal: AbortSignal = new AbortController().signal,
  http = createTransport({}),
): DnsEffects {
  return {
    signal,
    dns: { ...createDnsNetwork(), https: (exchange) => exchangeDnsOverHttps(exchange, http) },
    random: { bytes: (length) => randomBytes(length), fraction: () => Math.random() },
    clock: {
      now: () => Date.now(),
      monotonic: () => performance.now(),
      alarm: () => () => {},
      sleep: (ms, until) =>
        new Promise((resolve, reject) => {
          if (until?.aborted) return reject(until.reason)
          const abort = () => {
            clearTimeout(timer)
            reject(until?.reason)
          }
          const timer = setTimeout(() => {
            until?.removeEventListener('abort', abort)
            resolve()
          }, ms)
          until?.addEventListener('abort', abort, { once: true })
        }),
    },
  }
}
