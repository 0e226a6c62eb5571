import type { Settings } from '../settings/settings.ts'
import { isShared } from '../settings/shared-store.ts'
import { localStore } from './local-store.ts'
import type { RefreshContext } from './refresh-task.ts'
import type { SessionStore } from './session-store.ts'

/** The store that the session of the profile is in. @throws CliError `store_not_configured`, exit 3. */
export async function openStore(
  context: RefreshContext,
  settings: Pick<Settings, 'profile' | 'chosen'>,
): Promise<SessionStore> {
  if (!isShared(settings)) return localStore(context, settings)
  const { SharedStore } = await import('./shared/store.ts')
  return new SharedStore(context, settings)
}
