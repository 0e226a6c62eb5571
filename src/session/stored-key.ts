import type { Context } from '../context.ts'
import { readNewest } from '../credentials/secret-copies.ts'
import type { Credential } from '../service/authorizer.ts'
import type { Settings } from '../settings/settings.ts'
import type { SessionPaths } from './paths.ts'
import type { ApiKeyRecord } from './record.ts'
import { requireSameService } from './same-service.ts'
import { secretStorage } from './secret-storage.ts'

/** The API key that `login --with-api-key` stored. */
export async function storedKey(
  context: Pick<Context, 'keychain' | 'stdin' | 'stderr'>,
  settings: Pick<Settings, 'baseUrl' | 'clientId' | 'profile'>,
  paths: SessionPaths,
  record: ApiKeyRecord,
): Promise<Credential> {
  requireSameService(record, settings)
  const { value } = await readNewest(context, secretStorage(paths, record))
  return {
    kind: 'api_key',
    value,
    description: `the stored API key of profile ${record.profile}`,
    store: record.store,
  }
}
