import { CliError, Exit } from '../../errors.ts'
import { addProfileFlag } from '../../settings/profiles.ts'
import type { Io } from '../../terminal/io.ts'
import { notSignedInError, sessionOverError } from '../messages.ts'
import { hasEnoughLifetime, type Session } from '../session-file.ts'
import type { SignInSteps, SignOutResult } from '../sign-in.ts'
import { readCachedSession, removeCachedSession, removeLocalEtcdFiles, writeCachedSession } from './local.ts'
import {
  BEST_EFFORT_ETCD_TIMEOUT_MS,
  createHexId,
  deliverOutcomesAndRead,
  type EtcdStore,
  findSessionAwaitingEtcd,
  openEtcdStore,
  unknownRefreshOutcomeError,
} from './store.ts'
import { sealSession } from './value.ts'

/** Milliseconds that one write of a login or logout to etcd may take. */
const WRITE_LIMIT_MS = 30_000

/**
 * Tests before a login that etcd answers, its user may read the profile's etcd key, and an encryption key is set.
 *
 * @returns `complete`: stores the session of the login in etcd; `reserve`, `discard`: do nothing
 * @throws CliError as `openEtcdStore`, and as `read` of the etcd client
 */
export async function prepareEtcdSignIn(io: Io): Promise<SignInSteps> {
  const store = openEtcdStore(io)
  await store.etcd.read()
  return {
    reserve() {},
    discard() {},
    async complete({ secret, ...signIn }) {
      const { profile } = store.files
      const now = io.clock.now()
      const made = { id: createHexId(io, 6), generation: 1, signedInAt: now, issuedAt: now }
      const session: Session = { ...signIn, ...made, profile, store: 'etcd' }
      await io.interrupts.shield(() => overwriteSession(store, { ...session, refreshToken: secret }))
      // Remove outcome files (`pending.…`): they belong to the former sign-in, which etcd no longer holds.
      removeLocalEtcdFiles(store.files)
      await writeCachedSession(store.files, session)
      return session
    },
  }
}

/**
 * Writes a session to etcd, whatever etcd holds: another sign-in, or a value of another encryption key.
 *
 * @throws CliError as `swap` of the etcd client; after `unreachable`, the session may be stored
 */
async function overwriteSession({ etcd, access }: EtcdStore, session: Session): Promise<void> {
  const sealed = await sealSession({ session, marker: null }, access)
  let found = await etcd.read()
  try {
    for (let isDone = false; !isDone; )
      ({ isDone, found } = await etcd.swap(found?.revision ?? '0', sealed, WRITE_LIMIT_MS))
  } catch (error) {
    if (!(error instanceof CliError) || error.exit !== Exit.unavailable) throw error
    throw error.with({
      message: `the sign-in may not be stored: ${error.message}`,
      hint: `sign in again unless this shows the session: ${addProfileFlag('mailclaim auth status', session.profile)}`,
    })
  }
}

/**
 * Ends the session in etcd for all machines, by removing its tokens; another machine may use its cached access token until that
 * expires. Keeps the ended session in etcd: without it, an outcome file (`pending.…`) with new tokens would be kept instead of
 * dropped.
 *
 * @throws CliError as `openEtcdStore`, `EtcdStore.read` and `swap`
 */
export async function endEtcdSession(io: Io, profile: string): Promise<SignOutResult> {
  const store = openEtcdStore(io)
  removeCachedSession(store.files)
  return io.interrupts.shield(async () => {
    let found = await store.read()
    const session = found?.session
    const wasSignedIn = found !== undefined && found.session.ended === undefined
    while (found !== undefined && found.session.ended === undefined) {
      const { refreshToken: _removed, access: _former, ...rest } = found.session
      const ended = { at: io.clock.now(), why: `signed out on ${io.installation.host}` }
      const next = { session: { ...rest, ended }, marker: null }
      found = (await store.swap(found.revision, next, WRITE_LIMIT_MS)).found
    }
    removeLocalEtcdFiles(store.files)
    return { profile, wasSignedIn, session, problem: undefined }
  })
}

/**
 * Returns the session in etcd with its state. If etcd doesn't answer soon, returns the session in an outcome file (`pending.…`)
 * or the cached session instead, if its access token is valid.
 *
 * @throws CliError the reason why the session can't be used; without a valid access token on this machine, also etcd's error
 */
export async function readEtcdSessionWithState(io: Io) {
  const store = openEtcdStore(io, BEST_EFFORT_ETCD_TIMEOUT_MS)
  const isGood = (session: Session | undefined) => hasEnoughLifetime(session?.access, io.clock.now())
  const found = await deliverOutcomesAndRead(store).catch(async (error: unknown) => {
    if (!(error instanceof CliError) || error.exit !== Exit.unavailable) throw error
    const held = await findSessionAwaitingEtcd(store)
    if (held !== undefined)
      await io.warn('this machine holds the new token, and its next command brings it to etcd')
    const kept = held ?? readCachedSession(store.files)
    if (kept === undefined || !isGood(kept)) throw error
    await io.warn(`${error.message}; this machine's access token is still good`)
    return { session: kept, marker: null }
  })
  if (found === undefined) throw notSignedInError(store.files.profile)
  const { session, marker } = found
  if (session.ended !== undefined) throw sessionOverError(session.profile, session.ended.why)
  if (marker?.unknown) throw unknownRefreshOutcomeError(store, marker)
  const usable = isGood(session) ? 'active' : 'needs_refresh'
  return { state: marker === null ? usable : 'refreshing', session } as const
}
