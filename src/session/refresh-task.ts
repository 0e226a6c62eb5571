import type { Context } from '../context.ts'
import type { Settings } from '../settings/settings.ts'
import type { SessionContext } from './guard.ts'
import type { OpenSession, SessionStore, Snapshot } from './session-store.ts'

/** What a refresh takes from the context and the settings. */
export type RefreshContext = SessionContext &
  Pick<Context, 'program' | 'platform' | 'http' | 'prompts' | 'environment'>
export type RefreshSettings = Pick<
  Settings,
  | 'argv'
  | 'profile'
  | 'baseUrl'
  | 'clientId'
  | 'chosen'
  | 'httpTimeoutMs'
  | 'interactive'
  | 'quiet'
  | 'verbose'
  | 'colorOption'
>

export interface RenewOptions {
  /** `stale`: the access token ends soon. `refused`: the service refused it. `asked`: a person wants a new one. */
  readonly reason: 'stale' | 'refused' | 'asked'
  /** The access token that is stale or was refused. A different one in its place can be adopted. */
  readonly outdated?: string
  /** Narrows the new access token (interface 4.1); separated by spaces. */
  readonly scope?: string
  /** Sends a token whose last use has no known outcome: the person said so. */
  readonly retryInterrupted?: boolean
  /**
   * When nobody waits anymore, on `clock.monotonic()`. It bounds every wait before the token is sent; the answer to one that
   * was sent is always awaited.
   */
  readonly deadline?: number | undefined
}

/** What all steps of a refresh share. */
export interface RefreshTask {
  readonly context: RefreshContext
  readonly settings: RefreshSettings
  readonly options: RenewOptions
  readonly store: SessionStore
}

/** The same, once the token to send has been read. A journal in what was seen: a person wants it sent once more. */
export interface RefreshAttempt extends RefreshTask {
  readonly session: OpenSession
  readonly seen: Snapshot
}
