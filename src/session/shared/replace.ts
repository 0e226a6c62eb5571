import { CliError } from '../../errors.ts'
import { perhapsReplaced, removedForAll } from '../messages.ts'
import type { SessionValue } from '../session-store.ts'
import { contentsOf } from './store.ts'
import {
  type Base,
  baseOf,
  failedTo,
  isSignedOut,
  isValue,
  type Replaced,
  type SharedContext,
  type SharedSettings,
  type SharedValue,
  SharedVault,
} from './vault.ts'

/**
 * Proves, before a person is sent to the browser, that etcd answers, as one cluster, lets this user write, has room, and that the
 * key decrypts what is there.
 *
 * @returns where to store the session: no other cluster is taken for this one.
 * @throws CliError as `SharedVault.read`, and `EtcdClient.proveWritable`.
 */
export async function proveShared(context: SharedContext, settings: SharedSettings): Promise<SharedVault> {
  const vault = new SharedVault(context, settings)
  // Before etcd is asked.
  vault.keys
  await readReplaceable(vault)
  await vault.client.requireOneCluster()
  await vault.client.proveWritable(vault.access.key)
  return vault
}

/**
 * Makes a new sign-in the session of the whole fleet. Of two logins at once, one whole session is left. What this machine keeps
 * for the session before is removed when the new one is read.
 *
 * @throws CliError as `SharedVault.replace`.
 */
export async function replaceShared(
  vault: SharedVault,
  session: Omit<SessionValue, 'journal'>,
): Promise<void> {
  const { profile } = session.record
  const read = () => readReplaceable(vault).catch(failedTo('stored', profile))
  let base: SharedValue | Base = await read()
  for (;;) {
    const record = { ...session.record, signedInAt: vault.signInTime(session.record) }
    const next = contentsOf({ ...session, record, journal: undefined })
    const replacing = vault.replace(base, next, vault.newWriter())
    const replaced: Replaced = await replacing.catch(failedTo('stored', profile))
    if (replaced.kind === 'done') return
    const { current } = replaced
    const id = current?.contents.record.id
    // The answer was lost, and other machines have used the session since.
    if (id === session.record.id) return
    // Its first refresh token may be used up by now. What it has replaced doesn't come back: it has not replaced that.
    const isUnchanged = isValue(base) && id === base.contents.record.id
    if (replaced.isRepeated && !isUnchanged) throw perhapsReplaced(session.record)
    base = current ?? (await read())
  }
}

/** What a sign-in replaces: also a value that must not be used anymore, but never one of another key. */
async function readReplaceable(vault: SharedVault): Promise<Base> {
  try {
    return await vault.read()
  } catch (error) {
    const isReplaceable =
      error instanceof CliError && ['store_value_unusable', 'store_restored'].includes(error.code)
    if (!isReplaceable) throw error
    return baseOf(await vault.client.read(vault.access.key, isSignedOut))
  }
}

/**
 * Encrypts the session with the first of the keys.
 *
 * @returns false if nobody has signed in.
 * @throws CliError `not_signed_in`, exit 4, if somebody has signed out; as `SharedVault.replace`.
 */
export async function sealAgain(vault: SharedVault): Promise<boolean> {
  let current = await vault.read()
  await vault.client.requireOneCluster()
  while (isValue(current)) {
    const replaced = await vault.replace(current, current.contents, vault.newWriter())
    if (replaced.kind === 'done') return true
    current = await vault.read()
  }
  if (current.signedOut !== undefined) throw removedForAll(vault.paths.profile, current.signedOut)
  return false
}
