import type { Clock, Context, DnsNetwork, Random } from '../../context.ts'

/** The effects that DNS queries need. */
export interface DnsEffects {
  readonly clock: Clock
  readonly random: Random
  readonly dns: DnsNetwork
  readonly signal: AbortSignal
}

export function dnsEffects({
  clock,
  random,
  dns,
  interrupts,
}: Pick<Context, 'clock' | 'random' | 'dns' | 'interrupts'>): DnsEffects {
  return { clock, random, dns, signal: interrupts.signal }
}
