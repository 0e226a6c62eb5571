import { CliError, Exit } from '../../errors.ts'
import { removeDurable } from '../../storage/durable-file.ts'
import { signedOutFormat } from '../../storage/file-formats.ts'
import { pendingFiles } from './pending.ts'
import {
  baseOf,
  isSignedOut,
  perhaps,
  type SharedContext,
  type SharedSettings,
  SharedVault,
} from './vault.ts'

/**
 * Replaces the session in etcd by a note that every machine is signed out. It takes no key: what can't be decrypted can be
 * replaced.
 *
 * @returns whether there was one.
 * @throws CliError `store_unavailable`, exit 7; `store_refused`, exit 4.
 */
export async function forgetShared(context: SharedContext, settings: SharedSettings): Promise<boolean> {
  const vault = new SharedVault(context, settings)
  const { client, access } = vault
  const signedOut = signedOutFormat.text({
    signedOut: vault.newWriter(),
    host: context.program.host || 'unknown',
    at: context.clock.now(),
  })
  for (let wasThere = false; ; ) {
    const answer = await client.read(access.key, isSignedOut)
    const { found, cluster } = answer
    const isThere = found !== undefined && !isSignedOut(found.text)
    wasThere ||= isThere
    // Either somebody else has changed it, or the answer to the first try was lost.
    if (isThere) {
      const replacing = client.replace(access.key, baseOf(answer), signedOut)
      if (!(await replacing.catch(perhaps('removed', settings.profile.value))).succeeded) continue
    }
    for (const path of pendingFiles(vault, cluster)) removeDurable(path)
    vault.forget(cluster)
    return wasThere
  }
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
