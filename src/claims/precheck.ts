import type { CheckRequest } from '../dns/check.ts'
import type { CheckReport } from '../dns/diagnosis/report.ts'
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

/**
 * Whether the service may see a record that is not visible everywhere from here: a cache keeps it from the resolvers of
 * this machine only, and name servers that lag for long may lag for ever, while the service asks another one.
 *
 * @param isLongSince whether lagging name servers have been waited for.
 */
export function isWorthAsking(
  { verdict, findings }: Pick<CheckReport, 'verdict' | 'findings'>,
  isLongSince: boolean,
): boolean {
  return verdict === 'wait' && (isLongSince || findings.every(({ code }) => code !== 'partial_propagation'))
}
