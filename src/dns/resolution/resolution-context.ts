import type { DnsAddress } from '../../context.ts'
import type { DnsEffects } from '../wire/effects.ts'

/** An address of a name server by a resolver, which may know it from a zone of its own. */
export interface AddressClaim {
  readonly host: string
  readonly server: DnsAddress
  readonly resolver: DnsAddress
}

export interface HostAddresses {
  readonly addresses: readonly DnsAddress[]
  /**
   * Why there is no address; `lookup-failed`: missing glue, name servers in a circle, a zone that is down; `filtered`:
   * resolvers give only addresses that no server can have.
   */
  readonly failure: 'no-address' | 'lookup-failed' | 'timeout' | 'filtered' | undefined
  /** What the resolvers gave, including addresses that no server can have. */
  readonly claims: readonly AddressClaim[]
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
  /** The addresses of a host from the servers of its own zone; none if they can't be found. */
  readonly walkToHost: (host: string) => Promise<readonly DnsAddress[]>
}
