import { CliError, Exit } from '../../errors.ts'
import { removeDurable } from '../../storage/durable-file.ts'
import { pendingFiles } from './pending.ts'
import { type SharedContext, type SharedSettings, SharedVault } from './vault.ts'

/**
 * Removes the session from etcd, and with it that of every machine. It takes no key: what can't be decrypted can be removed.
 *
 * @returns whether there was one.
 * @throws CliError `store_unavailable`, exit 7; `store_refused`, exit 4.
 */
export async function forgetShared(context: SharedContext, settings: SharedSettings): Promise<boolean> {
  const vault = new SharedVault(context, settings)
  const { client, access } = vault
  for (let wasThere = false; ; ) {
    const { found, cluster } = await client.read(access.key)
    wasThere ||= found !== undefined
    // Either somebody else has changed it, or the answer to the first try was lost.
    if (found !== undefined && !(await client.replace(access.key, found.revision, undefined)).succeeded)
      continue
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
