import { type ClaimReader, createClaimReader } from '../../claims/current-claim.ts'
import { claimToUse, outdatedWarning } from '../../claims/known-claim.ts'
import { asArgument, completedText, stateOf } from '../../claims/lifecycle.ts'
import { doubtOf } from '../../claims/many/done-claim.ts'
import { quoteValue, RECORD_FORMATS, recordOf, type TxtRecord, zoneLine } from '../../claims/record.ts'
import { findPlace, hostText } from '../../claims/record-place.ts'
import {
  type ExistingTxtSet,
  OTHER_PROVIDER_NAMES,
  PROVIDER_NAMES,
  type ProviderName,
  providerSnippet,
  replacesRecordSet,
} from '../../claims/record-providers.ts'
import type { Context } from '../../context.ts'
import { observeTxtSet, type TxtSet } from '../../dns/observation/observe-txt-set.ts'
import { dnsEffects } from '../../dns/wire/effects.ts'
import { CliError, Exit, usageError } from '../../errors.ts'
import type { DomainClaim } from '../../service/types.ts'
import type { Settings } from '../../settings/settings.ts'
import type { Column } from '../../terminal/columns.ts'
import { addressesIn, withLinks } from '../../terminal/hyperlinks.ts'
import { hint, warn } from '../../terminal/notices.ts'
import { writeObject } from '../../terminal/output.ts'
import { withProgress } from '../../terminal/progress.ts'
import { CLAIM_ARGUMENTS, defineCommand, SERVICE_EXITS } from '../definition.ts'
import { ERROR_FIELDS, isMany, MANY_OPTIONS, type ManyFlags, runForAll } from './many.ts'

interface Flags extends ManyFlags {
  readonly provider?: ProviderName
  readonly zone?: string
  readonly onlyNew?: true
}

/** The fields of a claim's record. */
const RECORD_FIELDS = ['type', 'name', 'value', 'ttl'] as const

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
provider's "host" field, after finding the zone in DNS; --provider prints what to paste or run instead. If applying that
replaces all TXT values of the name, it contains those in DNS too, such as SPF; if they can't be seen, it ends with exit 8.

Of a claim that has ended (expired, superseded, canceled or failed), it prints nothing and ends with exit 9: nobody checks that
record anymore. "mailclaim claims get" still shows it. A blocked claim can go on, so its record is printed.

If this machine last saw the claim more than a minute ago, the service is asked first. Where that isn't possible, such as
without an account, the record is printed as last seen, with a warning.`,
  arguments: [CLAIM_ARGUMENTS],
  options: [
    {
      flags: '--provider <name>',
      description: 'print what this provider or tool accepts',
      choices: PROVIDER_NAMES,
      conflicts: ['--format', '--json', '--fields'],
    },
    { flags: '--zone <zone>', description: 'the zone at the provider, instead of the one found in DNS' },
    {
      flags: '--only-new',
      description: 'leave out the TXT values that are in DNS; applying it may delete them',
      needs: '--provider',
    },
    ...MANY_OPTIONS,
  ],
  output: {
    schema: 'record',
    fields: [...RECORD_FIELDS, ...ERROR_FIELDS],
    columns: COLUMNS,
    formats: RECORD_FORMATS,
  },
  examples: {
    'mailclaim claims record example.com': 'what to type, and where',
    'mailclaim claims record example.com --format value': 'only the value',
    'mailclaim claims record example.com --format zone': 'a line for a zone file',
    'mailclaim claims record example.com --provider route53': 'for the AWS command line',
    'mailclaim claims record --all --format zone': 'of all open claims, for zone files',
  },
  exits: [...SERVICE_EXITS, Exit.notYet, Exit.negativeEnd],
  account: 'sometimes',
  async run({ arguments: domains, options }, io) {
    const [context, settings] = [io, io.settings]
    if (isMany(domains, options)) return recordMany(domains, options, context, settings)
    const [argument] = domains
    const seen = await claimToUse(argument, createClaimReader(context, settings), context, settings)
    const { claim } = seen
    const outdated = outdatedWarning(seen, context)
    if (outdated !== undefined) await warn(outdated, context, settings)
    if (stateOf(claim).phase === 'completed') await warn(completedText(claim), context, settings)
    const record = recordOf(claim)
    const own = { ...claim.record }
    const given = options.zone === undefined ? undefined : parseZone(options.zone, record)
    const text = await textOf(claim, options, false, context, settings)
    if (text !== undefined) return context.stdout.write(text)
    if (settings.format === 'value') return context.stdout.write(`${printable(record.value)}\n`)
    if (settings.format !== 'table') return writeObject(context, settings, own, COLUMNS)

    const place = await findPlace(record.name, context, settings, given)
    await writeObject(context, settings, { ...own, host: hostText(place) }, COLUMNS)
    if (place !== undefined)
      await hint(
        `${place.dnsHost === undefined ? '' : `add it at ${place.dnsHost}; `}type ${place.host} into the provider's "host" or "name" field, not the full name, unless it asks for that`,
        { ...context, stderr: withLinks(context.stderr, addressesIn(place.dnsHost), context.environment) },
        settings,
      )
  },
})

/** Prints the records of several claims. */
async function recordMany(
  domains: readonly string[],
  options: Flags,
  context: Context,
  settings: Settings,
): Promise<void> {
  const alone =
    options.zone === undefined ? (settings.format === 'value' ? '--format value' : undefined) : '--zone'
  if (alone !== undefined)
    throw usageError(`${alone} is for one claim`, 'for several: --format tsv, zone or jsonl')
  let latest: ClaimReader | undefined
  await runForAll(
    domains,
    options,
    {
      command: 'claims record',
      columns: [...COLUMNS, { field: 'error.message', title: 'Problem', only: 'programs' }],
      rowsForPeople: true,
      isText: options.provider !== undefined || settings.format === 'zone',
      resumes: false,
      waits: false,
      takesIds: true,
      notDone: 'have no record to print',
      async perform({ domain }, { context, settings }) {
        latest ??= createClaimReader(context, settings)
        const seen = await claimToUse(domain, latest, context, settings)
        const { claim } = seen
        const doubt = doubtOf(seen)
        const deletes =
          options.onlyNew && options.provider !== undefined && replacesRecordSet(options.provider)
        const done = {
          label: claim.status ?? 'no status',
          item: { ...claim.record },
          ...doubt,
          warning:
            doubt?.warning ??
            (stateOf(claim).phase === 'completed'
              ? 'completed claims are among them, which no longer need their records'
              : undefined) ??
            (deletes
              ? 'applying this may delete the other TXT values at these names, such as SPF: add them first'
              : undefined),
        }
        const text = await textOf(claim, options, true, context, settings)
        if (text !== undefined) return { ...done, text }
        if (settings.format !== 'table') return done
        const place = await findPlace(recordOf(claim).name, context, settings)
        return { ...done, item: { ...claim.record, host: place?.host } }
      },
    },
    context,
    settings,
  )
}

/** What a provider or a zone file accepts; undefined if that is not what was asked for. */
async function textOf(
  claim: DomainClaim,
  options: Flags,
  isOneOfSeveral: boolean,
  context: Context,
  settings: Settings,
): Promise<string | undefined> {
  const record = recordOf(claim)
  const given = options.zone === undefined ? undefined : parseZone(options.zone, record)
  if (options.provider === undefined) return settings.format === 'zone' ? `${zoneLine(record)}\n` : undefined
  const { provider, onlyNew } = options
  const replaces = replacesRecordSet(provider)
  const find = replaces && !onlyNew ? zoneWithValues : zoneAlone
  const { zone, existing } = await find(claim, given, context, settings)
  if (replaces && existing === undefined)
    await warn(
      `applying this may delete the other TXT values at ${record.name}, such as SPF: add them first`,
      context,
      settings,
    )
  return `${providerSnippet(provider, record, { zone, isOneOfSeveral }, existing)}\n`
}

interface FoundZone {
  /** The zone that contains the record's name. */
  readonly zone: string
  /** What is at that name; undefined if nobody looked. */
  readonly existing: ExistingTxtSet | undefined
}

/** @throws CliError `zone_unknown`, exit 7 */
async function zoneAlone(
  claim: DomainClaim,
  given: string | undefined,
  context: Context,
  settings: Settings,
): Promise<FoundZone> {
  const record = recordOf(claim)
  const place = await findPlace(record.name, context, settings, given)
  if (place === undefined) throw zoneUnknown(record)
  return { zone: place.zone, existing: undefined }
}

/** @throws CliError `values_unknown`, exit 8; `usage`, exit 2, for another zone than in DNS */
async function zoneWithValues(
  claim: DomainClaim,
  given: string | undefined,
  context: Context,
  settings: Settings,
): Promise<FoundZone> {
  const record = recordOf(claim)
  const seen = await queryTxtSet(record, context, settings)
  if (seen.kind === 'unseen') throw valuesUnknown(claim, seen, given ?? seen.zone)
  // DNS shows the values of another zone than the one that the snippet changes.
  if (given !== undefined && given !== seen.zone)
    throw usageError(
      `--zone: ${JSON.stringify(given)} is not the zone of ${record.name}: in DNS, it is in ${seen.zone}`,
      'leave --zone out; or to print the new value alone, for the zone that you named, add --only-new',
    )
  return { zone: seen.zone, existing: seen }
}

function queryTxtSet({ name }: TxtRecord, context: Context, settings: Settings): Promise<TxtSet> {
  const { resolvers = 'system', authoritativePort } = settings
  return withProgress(
    `querying the name servers of ${name}`,
    () => observeTxtSet(name, { resolvers, authoritativePort }, dnsEffects(context)),
    context,
    settings,
  )
}

function valuesUnknown(
  claim: DomainClaim,
  { reason, isAlias, particulars }: Extract<TxtSet, { kind: 'unseen' }>,
  zone: string | undefined,
): CliError {
  const check = `mailclaim claims check${asArgument(claim)}`
  return new CliError(
    'values_unknown',
    Exit.notYet,
    `couldn't see which TXT values ${recordOf(claim).name} has: ${reason}`,
    {
      hint: isAlias
        ? `no TXT record can be added beside an alias; to see what to do: ${check}`
        : `to see what each server answers: ${check}; to print the new value alone: add ${zone === undefined ? '--zone and ' : ''}--only-new`,
      particulars,
    },
  )
}

/** @throws CliError exit 2 if the record is not in the zone, even for a format without a host field. */
function parseZone(text: string, record: TxtRecord): string {
  const zone = text.trim().toLowerCase().replace(/\.$/, '')
  if (record.name === zone || record.name.endsWith(`.${zone}`)) return zone
  throw usageError(`--zone: ${record.name} is not in the zone ${JSON.stringify(text)}`)
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
