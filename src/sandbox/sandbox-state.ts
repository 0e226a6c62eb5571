import type { AccessTokens } from './access-tokens.ts'
import type { Authorization } from './authorization.ts'
import type { Claims } from './claims.ts'
import type { OAuthClient } from './clients.ts'
import type { DnsServer } from './dns-server.ts'
import type { Faults } from './faults.ts'
import type { Grants } from './grants.ts'
import type { Imports } from './imports.ts'
import type { RateLimit } from './rate-limit.ts'
import type { RequestLog } from './request-log.ts'
import type { SandboxRuntime } from './runtime.ts'
import type { VirtualClock } from './virtual-clock.ts'
import type { Zones } from './zones.ts'

/** Everything that the routes use. */
export interface SandboxState {
  readonly runtime: SandboxRuntime
  readonly clock: VirtualClock
  readonly startedAt: number
  readonly baseUrl: string
  readonly apiKey: string
  readonly clients: Map<string, OAuthClient>
  readonly authorization: Authorization
  readonly tokens: AccessTokens
  readonly grants: Grants
  readonly imports: Imports
  readonly claims: Claims
  readonly zones: Zones
  readonly dns: DnsServer
  readonly faults: Faults
  readonly requestLog: RequestLog
  readonly rateLimit: RateLimit
  /** Whether the record of each new claim is published at once. */
  readonly autoPublish: boolean
  readonly autoApprove: boolean
  /** Whether RFC 8414 metadata is published. */
  readonly metadata: boolean
  /** Whether the authorization response carries `iss` (RFC 9207). */
  readonly iss: boolean
}
