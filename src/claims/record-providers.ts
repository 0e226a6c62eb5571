import { relativeName } from '../dns/wire/name.ts'
import { CliError, Exit } from '../errors.ts'
import { posixQuote } from '../shell-quote.ts'
import { DEFAULT_TTL, quoteValue, quoteValueOctal, type TxtRecord } from './record.ts'

/**
 * What to run or send to add the record; ends without a line break.
 *
 * @param zone the zone that contains the name, without trailing dot
 */
type Snippet = (record: TxtRecord, zone: string) => string

/** Replacing a record set would delete SPF and other services' proofs at the same name. */
const KEEP_OTHER_VALUES =
  'If this name has other TXT records (such as SPF), list them here too: the record set is replaced as a whole.'

/** The values of `--provider`. To add one, add an entry. */
const PROVIDERS = {
  cloudflare: (record) => {
    const body = {
      type: 'TXT',
      name: record.name,
      // 1 means "automatic".
      ttl: record.ttl ?? 1,
      content: quoteValue(record.value),
    }
    return [
      '# CLOUDFLARE_ZONE_ID is on the overview page of the zone. The token needs the permission DNS Edit.',
      // Arguments can be read by other users.
      `printf 'Authorization: Bearer %s' "$CLOUDFLARE_API_TOKEN" |`,
      'curl --fail-with-body -X POST "https://api.cloudflare.com/client/v4/zones/$CLOUDFLARE_ZONE_ID/dns_records" \\',
      '  -H @- -H "Content-Type: application/json" \\',
      `  --data ${posixQuote(JSON.stringify(body))}`,
    ].join('\n')
  },

  route53: (record) => {
    const batch = {
      // At most 256 characters.
      Comment: KEEP_OTHER_VALUES,
      Changes: [
        {
          Action: 'UPSERT',
          ResourceRecordSet: {
            Name: `${record.name}.`,
            Type: 'TXT',
            TTL: ttlOf(record),
            ResourceRecords: [{ Value: quoteValueOctal(record.value) }],
          },
        },
      ],
    }
    return JSON.stringify(batch, null, 2)
  },

  'google-cloud-dns': (record, zone) =>
    [
      `# MANAGED_ZONE is the name of the managed zone for ${zone}. If the record set exists, use update instead of create`,
      '# and list its other values too, in one --rrdatas with a custom separator: gcloud topic escaping.',
      `gcloud dns record-sets create ${posixQuote(`${record.name}.`)} --zone="$MANAGED_ZONE" --type=TXT --ttl=${ttlOf(record)} \\`,
      `  --rrdatas=${posixQuote(gcloudList(quoteValue(record.value)))}`,
    ].join('\n'),

  'azure-dns': (record, zone) =>
    [
      '# Adds to the record set: existing TXT records stay.',
      `az network dns record-set txt add-record --resource-group "$RESOURCE_GROUP" --zone-name=${posixQuote(zone)} \\`,
      `  --record-set-name=${posixQuote(relativeName(record.name, zone))} \\`,
      // az itself splits values longer than 255 characters.
      `  --value=${posixQuote(azureValue(record.value))}`,
    ].join('\n'),

  // RFC 2136
  nsupdate: (record, zone) =>
    [
      `zone ${zone}.`,
      `update add ${record.name}. ${ttlOf(record)} IN TXT ${quoteValue(record.value)}`,
      'send',
    ].join('\n'),

  // With the provider hashicorp/dns, which puts the text between quotation marks.
  terraform: (record, zone) => {
    const host = relativeName(record.name, zone)
    const text = quoteValue(record.value).slice(1, -1)
    return [
      `# ${KEEP_OTHER_VALUES}`,
      'resource "dns_txt_record_set" "domain_claim" {',
      `  zone = ${terraformString(`${zone}.`)}`,
      ...(host === '@' ? [] : [`  name = ${terraformString(host)}`]),
      `  txt  = [${terraformString(text)}]`,
      `  ttl  = ${ttlOf(record)}`,
      '}',
    ].join('\n')
  },
} as const satisfies Readonly<Record<string, Snippet>>

export type ProviderName = keyof typeof PROVIDERS

export const PROVIDER_NAMES = Object.keys(PROVIDERS) as readonly ProviderName[]

/**
 * What to run or send to add the record, ready to paste: quoted, and split if longer than 255 bytes, as the provider
 * requires. Nothing in it acts on a terminal, and no tool takes part of the record for an option, a file or an expression.
 *
 * @param zone the zone that contains the name, without trailing dot
 * @throws CliError `value_unusable`, exit 7, if the tool can't express the value
 */
export function providerSnippet(provider: ProviderName, record: TxtRecord, zone: string): string {
  return PROVIDERS[provider](record, zone)
}

function ttlOf({ ttl = DEFAULT_TTL }: TxtRecord): number {
  return ttl
}

/** A list of one value for gcloud, which splits at commas unless the list begins with another separator. */
function gcloudList(value: string): string {
  if (!value.includes(',') && !value.startsWith('^')) return value
  let separator = [':', ';', '|', '~', '#'].find((candidate) => !value.includes(candidate)) ?? '@'
  while (value.includes(separator)) separator += '@'
  return `^${separator}^${value}`
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
    { hint: 'add the record in the Azure portal; to see it: mailclaim claims record' },
  )
}

/**
 * A quoted template of Terraform's language, in which `${` and `%{` begin an expression that can read files. Doubling the
 * sign, the usual escape, fails after another such sign.
 */
function terraformString(text: string): string {
  return JSON.stringify(text).replaceAll('${', '\\u0024{').replaceAll('%{', '\\u0025{')
}
