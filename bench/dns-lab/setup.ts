import type { Relay } from './relay.ts'
import type { ResolverKind } from './resolvers.ts'
import type { Zone } from './zone.ts'

/** The value that every set-up waits for, and one of an older claim. */
export const EXPECTED = 'mc-verify=Q7dX2kV9pLr4TzB8nW'
export const OLDER = 'mc-verify=A1b2C3d4E5f6G7h8J9'
export const TOKEN = EXPECTED.slice(EXPECTED.indexOf('=') + 1)
export const SPF = 'v=spf1 include:_spf.mail.net ~all'

/** The record itself, as a line of a master file. */
export const txt = (...values: readonly string[]) => values.map((value) => `@ TXT "${value}"`).join('\n')
export const RIGHT = txt(EXPECTED)

/** One way in which DNS can be set up, and the question that somebody has about it. */
export interface Setup {
  readonly id: string
  readonly what: string
  readonly zones: readonly Zone[]
  /** The name that is checked. */
  readonly name: string
  readonly value?: string
  /** Kinds, each started with a cold cache, or addresses; Unbound where not given. */
  readonly resolvers?: readonly (ResolverKind | { readonly at: string })[]
  /** Zones that the resolver asks elsewhere. */
  readonly stubs?: Readonly<Record<string, string>>
  /** The network sends every question to the first resolver. */
  readonly intercepted?: true
  /** The network lets nothing through but what goes to the first resolver. */
  readonly firewalled?: true
  /** What stands before the first resolver. */
  readonly router?: Relay
  /** What happened before the check, such as somebody's question that the resolver remembers. */
  readonly before?: (resolver: string) => Promise<void>
}
