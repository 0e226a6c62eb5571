import type { Clock } from '../context.ts'
import type { MemberStatus } from '../credentials/etcd/client.ts'
import type { CliError } from '../errors.ts'
import type { StoreKind } from '../settings/table.ts'
import { type AccessToken, secondsLeft } from './access-token.ts'
import type { SessionRecord, SignIn } from './record.ts'
import { expiryOf } from './refresh-token.ts'

/**
 * `fine`: the access token can be used. `needs_refresh`: the next command renews it. `refreshing`: another process has
 * sent the refresh token and waits for the answer. `interrupted`: a refresh has no known outcome. `expired`: the refresh token is certainly older than 60 days. `ended`:
 * the service refused the session. `other_service`, `other_client`: the settings name another one than the session's, so it isn't
 * used. `store_unavailable`: the secret can't be read. `unusable`: the record is damaged.
 */
export type SessionState =
  | 'none'
  | 'fine'
  | 'needs_refresh'
  | 'refreshing'
  | 'interrupted'
  | 'expired'
  | 'ended'
  | 'other_service'
  | 'other_client'
  | 'store_unavailable'
  | 'unusable'

/** What this machine knows about the credential of a profile, without the secret. */
export interface SessionDescription {
  readonly profile: string
  /** Whether commands use the API key in the environment instead. */
  readonly apiKeyActive: boolean
  /** Why the API key in the environment can't be used. */
  readonly apiKeyProblem: CliError | undefined
  readonly state: SessionState
  /** Why it can't be used, for every state except `fine`, `needs_refresh`, and `refreshing`. */
  readonly problem: CliError | undefined
  /** Why the next renewal may fail, if the state is `needs_refresh`. */
  readonly doubt: string | undefined
  readonly record: SessionRecord | SignIn | undefined
  /** Where the secret lives. */
  readonly location: { readonly store: StoreKind; readonly name: string } | undefined
  /** What is known about etcd, if the session is there. */
  readonly shared: SharedDescription | undefined
  readonly accessToken: TokenDescription | undefined
  /** Wall-clock milliseconds of the receipt of the refresh token; undefined for an API key, and if it can't be read. */
  readonly renewedAt: number | undefined
  /** Wall-clock milliseconds at which the refresh token expires; undefined as above. */
  readonly refreshTokenExpiresAt: number | undefined
  /** Wall-clock milliseconds of the refresh that has no known outcome. */
  readonly interruptedAt: number | undefined
}

/** What `auth status` and `doctor` say about etcd. */
export interface SharedDescription {
  readonly members: readonly MemberStatus[]
  /** Of the key; undefined if it can't be read, or nothing is there. */
  readonly revision: string | undefined
  readonly writtenBy: string | undefined
  readonly writtenAt: number | undefined
  /** Files with a session that etcd hasn't taken yet. */
  readonly pending: readonly string[]
  /** Such files for another cluster, which this one never takes. */
  readonly pendingElsewhere: readonly string[]
}

/** What is known about an access token, without the secret. */
export interface TokenDescription {
  /** 0 or less if it has expired. */
  readonly secondsLeft: number
  readonly scope: string | null
  readonly narrowed: boolean
}

export function describeToken(token: AccessToken, clock: Clock): TokenDescription {
  return { secondsLeft: secondsLeft(token, clock), scope: token.scope, narrowed: token.narrowed }
}

/** When a refresh token was received, and when it expires. */
export function dates(renewedAt: number): Pick<SessionDescription, 'renewedAt' | 'refreshTokenExpiresAt'> {
  return { renewedAt, refreshTokenExpiresAt: expiryOf(renewedAt) }
}

/** What a description says of a session that can't be read. */
export const UNKNOWN = {
  doubt: undefined,
  location: undefined,
  renewedAt: undefined,
  refreshTokenExpiresAt: undefined,
  interruptedAt: undefined,
} as const

/** Why a session isn't used although it can be read, by the code of the error. */
export const STATE_BY_CODE: Readonly<Record<string, 'other_service' | 'other_client'>> = {
  session_of_another_service: 'other_service',
  session_of_another_client: 'other_client',
}
