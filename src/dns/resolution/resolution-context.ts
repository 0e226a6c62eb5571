import type { DnsAddress } from '../../context.ts'
import type { DnsEffects } from '../wire/effects.ts'
import type { HostAddresses } from './host-addresses.ts'
import { findHostAddresses } from './host-walk.ts'

/** Who is asked, and until when: what everything goes by that finds a zone or a host. */
export interface ResolutionContext {
  readonly resolvers: readonly DnsAddress[]
  readonly authoritativePort: number
  /** When all of it has to be over, on `clock.monotonic()`. */
  readonly deadline: number
  readonly effects: DnsEffects
  /** The resolvers that have answered: they are alive, so that it is worth to wait for them. */
  readonly heard: Set<DnsAddress>
  /** Addresses of a name server host; each host is looked up once a check. */
  readonly resolveHost: (host: string) => Promise<HostAddresses>
}

/** A context that remembers which hosts it has looked up. */
export function createResolutionContext(
  options: Omit<ResolutionContext, 'resolveHost' | 'heard'>,
): ResolutionContext {
  const heard = new Set<DnsAddress>()
  const hosts = new Map<string, Promise<HostAddresses>>()
  const resolveHost = (host: string): Promise<HostAddresses> => {
    const running = hosts.get(host) ?? findHostAddresses(host, context)
    // Whoever waits for it sees a rejection; where nobody waits any more, it does not matter.
    running.catch(() => undefined)
    hosts.set(host, running)
    return running
  }
  const context = { ...options, heard, resolveHost }
  return context
}
