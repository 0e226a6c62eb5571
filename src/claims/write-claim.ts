import { CliError } from '../errors.ts'
import type { DomainClaim } from '../service/types.ts'
import type { Settings } from '../settings/settings.ts'
import { addressesIn, withLinks } from '../terminal/hyperlinks.ts'
import { warn } from '../terminal/notices.ts'
import { type OutputContext, type OutputSettings, writeObject } from '../terminal/output.ts'
import { CLAIM_COLUMNS } from './columns.ts'
import { stateOf } from './lifecycle.ts'
import type { DnsSettings } from './precheck.ts'
import { recordOf } from './record.ts'
import type { PlaceContext } from './record-place.ts'

/**
 * Writes a claim to stdout. People see the record as long as it's needed, with the host to type at a DNS provider, for which
 * DNS is searched; a record that isn't the claim's to ask for is left out, with a warning.
 */
export async function writeClaim(
  claim: DomainClaim,
  context: OutputContext & PlaceContext,
  settings: OutputSettings & DnsSettings & Pick<Settings, 'fields'>,
): Promise<void> {
  if (settings.format !== 'table' || settings.fields !== undefined)
    return writeObject(context, settings, claim, CLAIM_COLUMNS)
  const withoutRecord = CLAIM_COLUMNS.filter(({ field }) => field !== 'record')
  const { phase } = stateOf(claim)
  const name = claim.record?.value ? (claim.record.name ?? claim.name) : undefined
  if (!name || phase === 'completed' || phase === 'ended')
    return writeObject(context, settings, claim, withoutRecord)
  const problem = recordProblem(claim)
  if (problem !== undefined) {
    await warn(`the claim's record isn't shown: ${problem}`, context, settings)
    return writeObject(context, settings, claim, withoutRecord)
  }
  // Most of what searches DNS is loaded for this alone.
  const { findPlace, hostText } = await import('./record-place.ts')
  const place = await findPlace(name, context, settings)
  const where = [
    { field: 'record_host', title: 'Host', value: () => hostText(place) },
    { field: 'dns_host', title: 'DNS host', value: () => place?.dnsHost },
  ].slice(0, place?.dnsHost === undefined ? 1 : 2)
  const columns = CLAIM_COLUMNS.flatMap((column) => (column.field === 'record' ? [...where, column] : column))
  const stdout = withLinks(context.stdout, addressesIn(place?.dnsHost), context.environment)
  await writeObject({ ...context, stdout }, settings, claim, columns)
}

function recordProblem(claim: DomainClaim): string | undefined {
  try {
    recordOf(claim)
    return undefined
  } catch (error) {
    if (error instanceof CliError) return error.message
    throw error
  }
}
