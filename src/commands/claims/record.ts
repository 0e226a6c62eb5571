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
import { CLAIM_ARGUMENT, defineCommand } from '../definition.ts'

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
  description: `Prints the TXT record that proves ownership, as it has to be added to DNS. On a terminal it shows what to type into a
provider's "host" field, after finding the zone in DNS; --provider prints what to paste or run instead.`,
  arguments: [CLAIM_ARGUMENT],
  options: [
    {
      flags: '--provider <name>',
      description: 'print what this provider or tool accepts',
      choices: PROVIDER_NAMES,
    },
    { flags: '--zone <zone>', description: 'the zone at the provider, instead of the one found in DNS' },
  ],
  formats: RECORD_FORMATS,
  examples: {
    'mailclaim claims record example.com': 'what to type, and where',
    'mailclaim claims record example.com --format value': 'only the value',
    'mailclaim claims record example.com --format zone': 'a line for a zone file',
    'mailclaim claims record example.com --provider route53': 'for the AWS command line',
  },
  exits: [Exit.notConfigured, Exit.notSignedIn, Exit.notFound, Exit.unavailable],
  async run({ arguments: [argument], options }, context, settings) {
    const claim = await knownClaim(argument, context, settings)
    const record = recordOf(claim)
    const own = { ...claim.record }
    const given = options.zone === undefined ? undefined : parseZone(options.zone, record)
    if (options.provider !== undefined) {
      if (settings.formatGiven) throw usageError("--provider and --format can't be used together")
      const zone = given ?? (await queryZone(record, context, settings))
      if (zone === undefined) throw zoneUnknown(record)
      return context.stdout.write(`${providerSnippet(options.provider, record, zone).replace(/\n$/, '')}\n`)
    }
    if (settings.format === 'value') return context.stdout.write(`${printable(record.value)}\n`)
    if (settings.format === 'zone') return context.stdout.write(`${zoneLine(record)}\n`)
    if (settings.format !== 'table') return writeObject(context, settings, own, COLUMNS)

    const zone = given ?? (await queryZone(record, context, settings))
    const host = zone === undefined ? undefined : relativeName(record.name, zone)
    await writeObject(
      context,
      settings,
      { ...own, ...(host === undefined ? {} : { host: `${host}   (in the zone ${zone})` }) },
      COLUMNS,
    )
    await hint(
      host === undefined
        ? 'in a provider\'s "host" or "name" field, type @ if the zone is the name itself, otherwise the part before the zone'
        : `type ${host} into the provider's "host" or "name" field, not the full name, unless it asks for that`,
      context,
      settings,
    )
  },
})

/** @throws CliError exit 2 if the record is not in the zone, even for a format without a host field. */
function parseZone(text: string, record: TxtRecord): string {
  const zone = text.trim().toLowerCase().replace(/\.$/, '')
  if (record.name === zone || record.name.endsWith(`.${zone}`)) return zone
  throw usageError(`--zone: ${record.name} is not in the zone ${JSON.stringify(text)}`)
}

async function queryZone(
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
  return new CliError('zone_unknown', Exit.unavailable, `couldn't find the zone of ${record.name} in DNS`, {
    hint: 'name it with --zone example.com',
  })
}

/** A value with control characters is printed as in a zone file, so that a terminal can't act on them. */
function printable(value: string): string {
  return /^[\x20-\x7e]*$/.test(value) ? value : quoteValue(value)
}
