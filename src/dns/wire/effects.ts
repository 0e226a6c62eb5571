import type { Clock, Context, DnsNetwork, Random } from '../../context.ts'

/** The effects that asking DNS takes. */
export interface DnsEffects {
  readonly clock: Clock
  readonly random: Random
  readonly dns: DnsNetwork
  readonly signal: AbortSignal
}

/** The part of the context that DNS takes. */
export function dnsEffects(context: Pick<Context, 'clock' | 'random' | 'dns' | 'interrupts'>): DnsEffects {
  const { clock, random, dns, interrupts } = context
  return { clock, random, dns, signal: interrupts.signal }
}
