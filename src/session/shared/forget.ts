import type { EtcdAnswer } from '../../credentials/etcd/client.ts'
import { CliError, Exit } from '../../errors.ts'
import { removeDurable } from '../../storage/durable-file.ts'
import { signedOutFormat } from '../../storage/file-formats.ts'
import { perhapsSignedInAgain } from '../messages.ts'
import { pendingFiles } from './pending.ts'
import { baseOf, failedTo, isSession, isSignedOut, type SharedContext, type SharedVault } from './vault.ts'

/**
 * Replaces the session in etcd by a note that every machine is signed out. It takes no key: what can't be decrypted can be
 * replaced. Another machine may sign in again meanwhile, and that session stays, with what this machine keeps for it.
 *
 * @returns whether there was one.
 * @throws CliError `store_unavailable`, exit 7: also if the members belong to several clusters; `session_busy`, exit 7;
 *   `store_refused`, exit 4; `cannot_write`, exit 1.
 */
export async function forgetShared(context: SharedContext, vault: SharedVault): Promise<boolean> {
  const { client, access, paths } = vault
  let answer: EtcdAnswer = await client.read(access.key, isSignedOut)
  await client.requireOneCluster()
  const wasThere = isSession(answer)
  const known = await vault.recall(answer.cluster)
  const session = await vault.sessionIn(answer)
  const signedOut = signedOutFormat.text({
    signedOut: vault.newWriter(),
    host: vault.host,
    at: vault.signInTime({ signedInAt: context.clock.now() }),
  })
  // Before the session is replaced: none of a later one is among them.
  const files = pendingFiles(vault)
  let note = answer.found?.text
  while (isSession(answer)) {
    const replacing = client.replace(access.key, baseOf(answer), signedOut)
    const replaced = await replacing.catch(failedTo('removed', paths.profile))
    note = replaced.succeeded ? signedOut : replaced.found?.text
    if (replaced.succeeded) break
    const current = await vault.sessionIn(replaced)
    // A try without an answer may have removed the session. Whatever isn't certainly the same one is left alone.
    const isSame = current === session && (current !== undefined || !replaced.isRepeated)
    if (isSession(replaced) && !isSame) throw perhapsSignedInAgain(paths.profile)
    answer = replaced
  }
  await vault.rememberLogout(answer.cluster, note, known)
  // Other prefixes and clusters may have a profile of the same name, and theirs may be the only copy of a refresh token.
  for (const { path, cluster } of files) if (cluster === answer.cluster) removeDurable(path)
  return wasThere
}

/** Somebody has to say that every machine is meant. */
export function needsConsent(profile: string): CliError {
  return new CliError(
    'logout_not_confirmed',
    Exit.usage,
    `the session of profile ${profile} is in etcd: signing out ends it for every machine that uses it, so it has to be confirmed`,
    { hint: 'add --yes; to stop using it on this machine alone: mailclaim config unset store' },
  )
}
