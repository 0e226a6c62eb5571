import type { TxtSet } from '../dns/observation/observe-txt-set.ts'
import { relativeName } from '../dns/wire/name.ts'
import { hasText } from '../dns/wire/txt-answer.ts'
import { CliError, Exit } from '../errors.ts'
import type { OtherNames } from '../settings/parse-value.ts'
import { posixQuote } from '../shell-quote.ts'
import { DEFAULT_TTL, octal, quoteStrings, quoteValue, splitValue, type TxtRecord } from './record.ts'

/** The whole TXT set of a name, with the new value in it. */
interface RecordSet {
  readonly name: string
  /** Seconds. */
  readonly ttl: number
  /** The strings of each value. */
  readonly values: readonly (readonly Uint8Array[])[]
  /** What is in DNS now; undefined if that isn't known, and `values` is the new value alone. */
  readonly existing: ExistingTxtSet | undefined
}

export type ExistingTxtSet = Pick<Extract<TxtSet, { kind: 'seen' }>, 'values' | 'ttl'>

/** Where a snippet adds its record. */
interface Target {
  /** The zone that contains the name, without trailing dot. */
  readonly zone: string
  /** Whether it is printed among snippets that may be for other zones. */
  readonly isOneOfSeveral: boolean
}

/**
 * Makes what to run or send; ends without a line break. Applying a snippet of `replace` deletes every value of the name that
 * isn't in it, such as SPF and the proofs of other services; one of `add` leaves them alone.
 */
type Provider = {
  /** What else people call it, in lowercase. */
  readonly otherNames?: readonly string[]
} & (
  | { readonly add: (record: TxtRecord, target: Target) => string }
  | { readonly replace: (set: RecordSet, target: Target) => string }
)

/** The values of `--provider`. To add one, add an entry. */
const PROVIDERS = {
  cloudflare: {
    add: (record, target) => {
      const id = zoneVariable('CLOUDFLARE_ZONE_ID', target)
      const body = {
        type: 'TXT',
        name: record.name,
        // 1 means "automatic".
        ttl: record.ttl ?? 1,
        content: quoteValue(record.value),
      }
      return [
        `# ${id} is on the overview page of the zone ${target.zone}. The token needs the permission DNS Edit.`,
        // Arguments can be read by other users.
        `printf 'Authorization: Bearer %s' "$CLOUDFLARE_API_TOKEN" |`,
        `curl --fail-with-body -X POST "https://api.cloudflare.com/client/v4/zones/$${id}/dns_records" \\`,
        '  -H @- -H "Content-Type: application/json" \\',
        `  --data ${posixQuote(JSON.stringify(body))}`,
      ].join('\n')
    },
  },

  route53: {
    otherNames: ['aws', 'amazon'],
    replace: (set, { isOneOfSeveral }) => {
      const batch = {
        // At most 256 characters.
        Comment: completeness(set),
        Changes: [
          {
            Action: 'UPSERT',
            ResourceRecordSet: {
              Name: `${set.name}.`,
              Type: 'TXT',
              TTL: set.ttl,
              ResourceRecords: set.values.map((strings) => ({ Value: quoteStrings(strings, octal) })),
            },
          },
        ],
      }
      // Each change goes to its own hosted zone, so of several each is a line.
      return isOneOfSeveral ? JSON.stringify(batch) : JSON.stringify(batch, null, 2)
    },
  },

  'google-cloud-dns': {
    otherNames: ['gcp', 'cloud-dns'],
    // To create a set that exists, or update one that doesn't, is an error.
    replace: (set, target) => {
      const managedZone = zoneVariable('MANAGED_ZONE', target)
      const verb = set.existing?.values.length ? 'update' : 'create'
      return [
        `# ${managedZone} is the name of the managed zone for ${target.zone}.`,
        set.existing === undefined
          ? '# If the record set exists, use update instead of create, and list its other values too: gcloud topic escaping.'
          : `# ${completeness(set)}`,
        `gcloud dns record-sets ${verb} ${posixQuote(`${set.name}.`)} --zone="$${managedZone}" --type=TXT --ttl=${set.ttl} \\`,
        `  --rrdatas=${posixQuote(gcloudList(set.values.map((strings) => quoteStrings(strings))))}`,
      ].join('\n')
    },
  },

  'azure-dns': {
    otherNames: ['microsoft'],
    add: (record, { zone }) =>
      [
        '# Adds to the record set: existing TXT records stay.',
        `az network dns record-set txt add-record --resource-group "$RESOURCE_GROUP" --zone-name=${posixQuote(zone)} \\`,
        `  --record-set-name=${posixQuote(relativeName(record.name, zone))} \\`,
        // az itself splits values longer than 255 characters.
        `  --value=${posixQuote(azureValue(record.value))}`,
      ].join('\n'),
  },

  // RFC 2136
  nsupdate: {
    otherNames: ['rfc2136', 'bind'],
    add: (record, { zone }) =>
      [
        `zone ${zone}.`,
        `update add ${record.name}. ${record.ttl ?? DEFAULT_TTL} IN TXT ${quoteValue(record.value)}`,
        'send',
      ].join('\n'),
  },

  // With the provider hashicorp/dns, which puts the text between quotation marks.
  terraform: {
    otherNames: ['hcl', 'opentofu'],
    replace: (set, { zone }) => {
      const host = relativeName(set.name, zone)
      const texts = set.values.map((strings) => terraformString(quoteStrings(strings).slice(1, -1)))
      return [
        `# ${completeness(set)}`,
        `resource "dns_txt_record_set" "domain_claim_${set.name.replaceAll('.', '_')}" {`,
        `  zone = ${terraformString(`${zone}.`)}`,
        ...(host === '@' ? [] : [`  name = ${terraformString(host)}`]),
        `  txt  = [${texts.join(', ')}]`,
        `  ttl  = ${set.ttl}`,
        '}',
      ].join('\n')
    },
  },
} as const satisfies Readonly<Record<string, Provider>>

export type ProviderName = keyof typeof PROVIDERS

export const PROVIDER_NAMES = Object.keys(PROVIDERS) as readonly ProviderName[]

/** What else people call a provider, by its name. */
export const OTHER_PROVIDER_NAMES: OtherNames = Object.fromEntries(
  Object.entries<Provider>(PROVIDERS).map(([name, { otherNames = [] }]) => [name, otherNames]),
)

/** Whether applying the snippet deletes the TXT values of the name that aren't in it. */
export function replacesRecordSet(provider: ProviderName): boolean {
  return 'replace' in PROVIDERS[provider]
}

/**
 * What to run or send to add the record, ready to paste: quoted, and split if longer than 255 bytes, as the provider
 * requires. Nothing in it acts on a terminal, and no tool takes part of the record for an option, a file or an expression.
 *
 * @param target the zone that contains the name
 * @param existing the TXT set in DNS, which snippets that replace the set keep, with its TTL; undefined if it isn't known
 * @throws CliError `value_unusable`, exit 7, if the tool can't express the value
 */
export function providerSnippet(
  name: ProviderName,
  record: TxtRecord,
  target: Target,
  existing?: ExistingTxtSet,
): string {
  const provider: Provider = PROVIDERS[name]
  return 'add' in provider
    ? provider.add(record, target)
    : provider.replace(recordSetWith(record, existing), target)
}

/**
 * The environment variable that identifies the zone at its provider. Among several snippets each zone has its own, so that
 * no record goes to another's zone: host names have no underscore, and no hyphen at the end of a label.
 */
function zoneVariable(name: string, { zone, isOneOfSeveral }: Target): string {
  return isOneOfSeveral ? `${name}_${zone.replaceAll('-', '__').replaceAll('.', '_').toUpperCase()}` : name
}

/** The existing values exactly as they are, and the new one unless it is among them. */
export function recordSetWith(
  { name, value, ttl }: TxtRecord,
  existing: ExistingTxtSet | undefined,
): RecordSet {
  const kept = existing?.values ?? []
  return {
    name,
    // A TTL of 0 forbids caching; it's often an invalid one (RFC 2181 section 8), so it isn't copied.
    ttl: (kept.length > 0 && existing?.ttl) || ttl || DEFAULT_TTL,
    values: [...kept.map(({ strings }) => strings), ...(hasText(kept, value) ? [] : [splitValue(value)])],
    existing,
  }
}

/** A remark on which values the snippet contains. */
function completeness({ existing }: RecordSet): string {
  return existing === undefined
    ? 'If this name has other TXT records (such as SPF), list them here too: the record set is replaced as a whole.'
    : 'Keeps the TXT records that were in DNS when this was made: the record set is replaced as a whole.'
}

/** A list for gcloud, which splits at commas unless the list begins with another separator. */
function gcloudList(values: readonly string[]): string {
  const text = values.join(' ')
  if (!text.includes(',')) return values.join(',')
  let separator = [':', ';', '|', '~', '#'].find((candidate) => !text.includes(candidate)) ?? '@'
  while (text.includes(separator)) separator += '@'
  return `^${separator}^${values.join(separator)}`
}

/**
 * az can't escape control characters, and replaces an argument that begins with "@", or has one after its first "=", by
 * the content of that file. After `--value=` only the first can happen.
 *
 * @throws CliError exit 7
 */
function azureValue(value: string): string {
  if (/^[\x20-\x3f\x41-\x7e][\x20-\x7e]*$/.test(value)) return value
  throw new CliError(
    'value_unusable',
    Exit.unavailable,
    `the Azure CLI can't take the value ${JSON.stringify(value.slice(0, 300))}: it is not plain ASCII, or begins with "@", which means a file`,
    { hint: 'add the record in the Azure portal; for what to type, run this command without --provider' },
  )
}

/**
 * A quoted template of Terraform's language, in which `${` and `%{` begin an expression that can read files. Doubling the
 * sign, the usual escape, fails after another such sign.
 */
function terraformString(text: string): string {
  return JSON.stringify(text).replaceAll('${', '\\u0024{').replaceAll('%{', '\\u0025{')
}
