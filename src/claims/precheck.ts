import type { CheckRequest } from '../dns/check.ts'
import type { Settings } from '../settings/settings.ts'

/** What DNS is asked about a record, from where the settings say. */
export function checkRequest(record: { name: string; value: string }, settings: Settings): CheckRequest {
  return {
    name: record.name,
    expected: record.value,
    resolvers: settings.resolvers ?? 'system',
    authoritativePort: settings.authoritativePort,
    publicResolvers: false,
  }
}
