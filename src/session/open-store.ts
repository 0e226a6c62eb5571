import type { Settings } from '../settings/settings.ts'
import { localStore } from './local-store.ts'
import type { RefreshContext } from './refresh-task.ts'
import type { SessionStore } from './session-store.ts'

/** The store that the profile's session is in. */
export async function openStore(
  context: RefreshContext,
  settings: Pick<Settings, 'profile' | 'chosen'>,
): Promise<SessionStore> {
  return localStore(context, settings)
}
