import type { DnsAddress } from '../../context.ts'
import type { DnsEffects } from '../wire/effects.ts'

export interface HostAddresses {
  readonly addresses: readonly DnsAddress[]
  /** Why there is no address; `lookup-failed`: missing glue, name servers in a circle, a zone that is down. */
  readonly failure: 'no-address' | 'lookup-failed' | 'timeout' | undefined
  /** The target if the host is an alias. */
  readonly alias?: string | undefined
}

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
