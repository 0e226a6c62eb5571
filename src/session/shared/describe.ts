import type { MemberStatus } from '../../credentials/etcd/client.ts'
import { CliError } from '../../errors.ts'
import type { Settings } from '../../settings/settings.ts'
import { formatTime } from '../../terminal/relative-time.ts'
import { isFresh, secondsLeft } from '../access-token.ts'
import { notSignedIn, sessionOver } from '../messages.ts'
import type { SignIn } from '../record.ts'
import { expiryOf } from '../refresh-token.ts'
import { requireSameService } from '../same-service.ts'
import { pendingFiles, readAndOffer } from './pending.ts'
import { tokenOf } from './store.ts'
import { isValue, type SharedContext, SharedVault } from './vault.ts'

/** What `auth status` and `doctor` say about etcd. */
export interface SharedDescription {
  readonly members: readonly MemberStatus[]
  /** Of the key; undefined if it can't be read, or nothing is there. */
  readonly revision: string | undefined
  readonly writtenBy: string | undefined
  readonly writtenAt: number | undefined
  /** Files with a session that etcd hasn't taken yet. */
  readonly pending: readonly string[]
}

interface Described {
  readonly profile: string
  readonly state:
    | 'none'
    | 'fine'
    | 'needs_refresh'
    | 'refreshing'
    | 'expired'
    | 'ended'
    | 'other_service'
    | 'other_client'
    | 'store_unavailable'
  readonly problem: CliError | undefined
  readonly doubt: string | undefined
  readonly record: SignIn | undefined
  readonly location: { readonly store: 'etcd'; readonly name: string } | undefined
  readonly shared: SharedDescription | undefined
  readonly accessToken:
    | { readonly secondsLeft: number; readonly scope: string | null; readonly narrowed: boolean }
    | undefined
  readonly renewedAt: number | undefined
  readonly refreshTokenExpiresAt: number | undefined
  readonly interruptedAt: number | undefined
}

/** Describes the session of the profile in etcd. */
export async function describeShared(
  context: SharedContext,
  settings: Pick<Settings, 'profile' | 'baseUrl' | 'clientId' | 'chosen'>,
): Promise<Described> {
  const nothing: Described = {
    profile: settings.profile.value,
    state: 'store_unavailable',
    problem: undefined,
    doubt: undefined,
    record: undefined,
    location: undefined,
    accessToken: undefined,
    renewedAt: undefined,
    refreshTokenExpiresAt: undefined,
    interruptedAt: undefined,
    shared: undefined,
  }
  let vault: SharedVault
  try {
    vault = new SharedVault(context, settings)
  } catch (error) {
    if (!(error instanceof CliError)) throw error
    return { ...nothing, problem: error }
  }
  const location = { store: 'etcd', name: vault.access.key } as const
  const describeMembers = async () => ({
    members: await vault.client.status(),
    revision: undefined,
    writtenBy: undefined,
    writtenAt: undefined,
    pending: pendingFiles(vault),
  })
  try {
    const found = await readAndOffer(context, vault)
    const shared = await describeMembers()
    if (!isValue(found))
      return { ...nothing, shared, location, state: 'none', problem: notSignedIn(settings) }
    const { record, secret, journal, host, writtenAt } = found.contents
    const token = tokenOf(found, context.clock)
    const described = {
      ...nothing,
      record,
      location,
      renewedAt: secret.issuedAt,
      refreshTokenExpiresAt: expiryOf(secret.issuedAt),
      shared: { ...shared, revision: found.revision, writtenBy: host, writtenAt },
      accessToken: token && {
        secondsLeft: secondsLeft(token, context.clock),
        scope: token.scope,
        narrowed: token.narrowed,
      },
    }
    if (record.ended !== null) {
      const state = record.ended.cause === 'expired' ? 'expired' : 'ended'
      return { ...described, state, problem: sessionOver(record) }
    }
    try {
      requireSameService(record, settings)
    } catch (error) {
      if (!(error instanceof CliError)) throw error
      const state = error.code === 'session_of_another_client' ? 'other_client' : 'other_service'
      return { ...described, state, problem: error }
    }
    if (journal !== null) {
      const doubt = `${host} has been renewing the session since ${formatTime(journal.sentAt)}, by its clock; if this stays so for more than a minute, that refresh was interrupted, and has no known outcome`
      return { ...described, state: 'refreshing', interruptedAt: journal.sentAt, doubt }
    }
    const isGood = token !== undefined && isFresh(token, context.clock)
    return { ...described, state: isGood ? 'fine' : 'needs_refresh' }
  } catch (error) {
    if (!(error instanceof CliError)) throw error
    return { ...nothing, location, shared: await describeMembers(), problem: error }
  }
}
