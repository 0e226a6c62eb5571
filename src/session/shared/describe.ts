import { CliError } from '../../errors.ts'
import type { Settings } from '../../settings/settings.ts'
import { formatTime } from '../../terminal/relative-time.ts'
import { isFresh } from '../access-token.ts'
import { dates, describeToken, type SessionDescription, STATE_BY_CODE, UNKNOWN } from '../description.ts'
import { notSignedIn, removedForAll, sessionOver } from '../messages.ts'
import { requireSameService } from '../same-service.ts'
import { pendingFiles, readAndOffer } from './pending.ts'
import { tokenOf } from './store.ts'
import { isValue, type SharedContext, SharedVault } from './vault.ts'

/** Describes the session of the profile in etcd. */
export async function describeShared(
  context: SharedContext,
  settings: Pick<Settings, 'profile' | 'baseUrl' | 'clientId' | 'chosen'>,
): Promise<Omit<SessionDescription, 'apiKeyActive' | 'apiKeyProblem'>> {
  const nothing = {
    ...UNKNOWN,
    profile: settings.profile.value,
    state: 'store_unavailable',
    problem: undefined,
    record: undefined,
    accessToken: undefined,
    shared: undefined,
  } as const
  let vault: SharedVault
  try {
    vault = new SharedVault(context, settings)
  } catch (error) {
    if (!(error instanceof CliError)) throw error
    return { ...nothing, problem: error }
  }
  const location = { store: 'etcd', name: vault.access.key } as const
  const describeMembers = async (cluster?: string) => {
    const files = pendingFiles(vault)
    const own = files.filter((file) => cluster === undefined || [undefined, cluster].includes(file.cluster))
    return {
      members: await vault.client.status(),
      revision: undefined,
      writtenBy: undefined,
      writtenAt: undefined,
      pending: own.map(({ path }) => path),
      pendingElsewhere: files.filter((file) => !own.includes(file)).map(({ path }) => path),
    }
  }
  try {
    const { found, blocked } = await readAndOffer(context, vault)
    const shared = await describeMembers(found.cluster)
    if (!isValue(found)) {
      const { signedOut } = found
      const problem =
        signedOut === undefined ? notSignedIn(settings) : removedForAll(settings.profile.value, signedOut)
      return { ...nothing, shared, location, state: 'none', problem }
    }
    const { record, secret, journal, host: writtenBy, writtenAt } = found.contents
    const token = tokenOf(found, context.clock)
    const described = {
      ...nothing,
      record,
      location,
      ...dates(secret.issuedAt),
      shared: { ...shared, revision: found.revision, writtenBy, writtenAt },
      accessToken: token && describeToken(token, context.clock),
    }
    if (record.ended !== null) {
      const state = record.ended.cause === 'expired' ? 'expired' : 'ended'
      return { ...described, state, problem: sessionOver(record) }
    }
    try {
      requireSameService(record, settings)
    } catch (error) {
      if (!(error instanceof CliError)) throw error
      return { ...described, state: STATE_BY_CODE[error.code] ?? 'other_service', problem: error }
    }
    if (blocked !== undefined) return { ...described, problem: blocked }
    if (journal !== null) {
      const doubt = `${journal.host ?? 'a machine'} has been renewing the session since ${formatTime(journal.sentAt)}, by its clock; if this stays so for more than a minute, that refresh was interrupted, and has no known outcome`
      return { ...described, state: 'refreshing', interruptedAt: journal.sentAt, doubt }
    }
    const isGood = token !== undefined && isFresh(token, context.clock)
    return { ...described, state: isGood ? 'fine' : 'needs_refresh' }
  } catch (error) {
    if (!(error instanceof CliError)) throw error
    return { ...nothing, location, shared: await describeMembers(), problem: error }
  }
}
