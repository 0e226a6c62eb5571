import type { Relay } from './relay.ts'
import type { ResolverKind } from './resolvers.ts'
import type { Zone } from './zone.ts'

/** The value that every setup expects, and one from an older claim. */
export const EXPECTED = 'mc-verify=Q7dX2kV9pLr4TzB8nW'
export const OLDER = 'mc-verify=A1b2C3d4E5f6G7h8J9'
export const TOKEN = EXPECTED.slice(EXPECTED.indexOf('=') + 1)
export const SPF = 'v=spf1 include:_spf.mail.net ~all'

/** The record itself, as a line of a zone file. */
export const txt = (...values: readonly string[]) => values.map((value) => `@ TXT "${value}"`).join('\n')
export const RIGHT = txt(EXPECTED)

/** One DNS setup, and how it is checked. */
export interface Setup {
  readonly id: string
  readonly what: string
  readonly zones: readonly Zone[]
  /** The name to check. */
  readonly name: string
  readonly value?: string
  /** Kinds, each started with a cold cache, or addresses; Unbound by default. */
  readonly resolvers?: readonly (ResolverKind | { readonly at: string })[]
  /** Zones for which the resolver uses other servers. */
  readonly stubs?: Readonly<Record<string, string>>
  /** The network redirects all queries to the first resolver. */
  readonly intercepted?: true
  /** The network drops all queries except those to the first resolver. */
  readonly firewalled?: true
  /** A relay in front of the first resolver. */
  readonly router?: Relay
  /** What happened before the check, such as a query whose answer the resolver has cached. */
  readonly before?: (resolver: string) => Promise<void>
}
