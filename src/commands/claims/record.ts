import { knownClaim } from '../../claims/known-claim.ts'
import { quoteValue, RECORD_FORMATS, recordOf, type TxtRecord, zoneLine } from '../../claims/record.ts'
import { PROVIDER_NAMES, type ProviderName, providerSnippet } from '../../claims/record-providers.ts'
import type { Context } from '../../context.ts'
import { findZone } from '../../dns/resolution/find-zone.ts'
import { dnsEffects } from '../../dns/wire/effects.ts'
import { relativeName } from '../../dns/wire/name.ts'
import { CliError, Exit, usageError } from '../../errors.ts'
import type { Settings } from '../../settings/settings.ts'
import type { Column } from '../../terminal/columns.ts'
import { hint } from '../../terminal/notices.ts'
import { writeObject } from '../../terminal/output.ts'
import { defineCommand } from '../definition.ts'
import { CLAIM_ARGUMENT } from './argument.ts'

interface Flags {
  readonly provider?: ProviderName
  readonly zone?: string
}

const ZONE_TIMEOUT_MS = 4000

const COLUMNS: readonly Column[] = [
  { field: 'type' },
  {
    field: 'host',
    title: 'Host',
    kind: 'id',
    only: 'people',
    value: (record) => (record as { host?: string }).host,
  },
  { field: 'name', title: 'Full name', kind: 'id' },
  { field: 'value', kind: 'id', paint: (_value, palette) => palette.strong },
  { field: 'ttl', title: 'TTL' },
]

export const command = defineCommand<Flags>({
  description: `Prints the TXT record that proves ownership, as it has to be added to DNS. The card says what to type into a provider's
"host" field, found by asking DNS which zone holds the name; --provider prints what to paste or to run instead.`,
  arguments: [CLAIM_ARGUMENT],
  options: [
    { flags: '--provider <name>', says: 'ready to paste for this provider or tool', choices: PROVIDER_NAMES },
    { flags: '--zone <zone>', says: 'the zone at the provider, instead of asking DNS for it' },
  ],
  formats: RECORD_FORMATS,
  examples: [
    { command: 'mailclaim claims record example.com', says: 'what to type where' },
    { command: 'mailclaim claims record example.com --format value', says: 'the value alone' },
    { command: 'mailclaim claims record example.com --format zone', says: 'a line for a zone file' },
    { command: 'mailclaim claims record example.com --provider route53', says: 'for the AWS command line' },
  ],
  exits: [Exit.notConfigured, Exit.notSignedIn, Exit.notFound, Exit.unavailable],
  async run({ arguments: [argument], options }, context, settings) {
    const claim = await knownClaim(argument, context, settings)
    const record = recordOf(claim)
    const own = { ...claim.record }
    const given = options.zone === undefined ? undefined : zoneGiven(options.zone, record)
    if (options.provider !== undefined) {
      if (settings.formatGiven) throw usageError('--provider and --format exclude each other')
      const zone = given ?? (await askForZone(record, context, settings))
      if (zone === undefined) throw zoneUnknown(record)
      return context.stdout.write(`${providerSnippet(options.provider, record, zone).replace(/\n$/, '')}\n`)
    }
    if (settings.format === 'value') return context.stdout.write(`${printable(record.value)}\n`)
    if (settings.format === 'zone') return context.stdout.write(`${zoneLine(record)}\n`)
    if (settings.format !== 'table') return writeObject(context, settings, own, COLUMNS)

    const zone = given ?? (await askForZone(record, context, settings))
    const host = zone === undefined ? undefined : relativeName(record.name, zone)
    await writeObject(
      context,
      settings,
      { ...own, ...(host === undefined ? {} : { host: `${host}   (in the zone ${zone})` }) },
      COLUMNS,
    )
    await hint(
      host === undefined
        ? 'in a provider\'s "host" or "name" field, type @ where the zone is the name itself, else the part before the zone'
        : `type ${host} into the provider's "host" or "name" field, not the full name, unless it asks for that`,
      context,
      settings,
    )
  },
})

/** @throws CliError exit 2, also where the format shows no host field: a zone that is none is a mistake anywhere. */
function zoneGiven(text: string, record: TxtRecord): string {
  const zone = text.trim().toLowerCase().replace(/\.$/, '')
  if (record.name === zone || record.name.endsWith(`.${zone}`)) return zone
  throw usageError(`--zone: ${record.name} is not in the zone ${JSON.stringify(text)}`)
}

async function askForZone(
  record: TxtRecord,
  context: Context,
  settings: Settings,
): Promise<string | undefined> {
  return findZone(
    record.name,
    {
      resolvers: settings.resolvers ?? 'system',
      authoritativePort: settings.authoritativePort,
      timeoutMs: ZONE_TIMEOUT_MS,
    },
    dnsEffects(context),
  )
}

function zoneUnknown(record: TxtRecord): CliError {
  return new CliError('zone_unknown', Exit.unavailable, `DNS did not say which zone holds ${record.name}`, {
    hint: 'name it with --zone example.com',
  })
}

/** A value is `prefix=token`; one with control characters is shown as a zone file would, so that none is acted on. */
function printable(value: string): string {
  return /^[\x20-\x7e]*$/.test(value) ? value : quoteValue(value)
}
