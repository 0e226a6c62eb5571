import type { DnsAddress } from '../../context.ts'
import type { DnsEffects } from '../wire/effects.ts'
import type { HostAddresses } from './host-addresses.ts'
import { findHostAddresses } from './host-walk.ts'

/** What the search for zones and hosts needs: whom to ask, and until when. */
export interface ResolutionContext {
  readonly resolvers: readonly DnsAddress[]
  readonly authoritativePort: number
  /** On `clock.monotonic()`. */
  readonly deadline: number
  readonly effects: DnsEffects
  /** The resolvers that have answered, which makes them worth waiting for. */
  readonly responsive: Set<DnsAddress>
  /** The addresses of a name server host; each host is looked up once per check. */
  readonly resolveHost: (host: string) => Promise<HostAddresses>
}

export function createResolutionContext(
  options: Omit<ResolutionContext, 'resolveHost' | 'responsive'>,
): ResolutionContext {
  const responsive = new Set<DnsAddress>()
  const hosts = new Map<string, Promise<HostAddresses>>()
  const resolveHost = (host: string): Promise<HostAddresses> => {
    const running = hosts.get(host) ?? findHostAddresses(host, context)
    // Callers that still wait see the rejection.
    running.catch(() => undefined)
    hosts.set(host, running)
    return running
  }
  const context = { ...options, responsive, resolveHost }
  return context
}
