import type { Context } from '../context.ts'
import { readNewest } from '../credentials/secret-copies.ts'
import type { Credential } from '../service/authorizer.ts'
import type { Settings } from '../settings/settings.ts'
import { notSignedIn } from './messages.ts'
import { secretHome, sessionPaths } from './paths.ts'
import { readRecord, requireSameService } from './record.ts'

/**
 * The API key that `login --with-api-key` stored; undefined where the profile holds an OAuth session.
 *
 * @throws CliError `not_signed_in` and the store's own, exit 4.
 */
export async function storedApiKey(context: Context, settings: Settings): Promise<Credential | undefined> {
  const paths = sessionPaths(context, settings.profile.value)
  const record = await readRecord(paths)
  if (record === undefined) throw notSignedIn(settings.profile.value)
  if (record.kind === 'oauth') return undefined
  requireSameService(record, settings)
  const { value } = await readNewest(context, secretHome(paths, record))
  return {
    kind: 'api_key',
    value,
    description: `the stored API key of profile ${record.profile}`,
    store: record.store,
  }
}
