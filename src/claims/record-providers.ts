import { relativeName } from '../dns/wire/name.ts'
import { CliError, Exit } from '../errors.ts'
import { posixQuote } from '../shell-quote.ts'
import { quoteValue, quoteValueOctal, type TxtRecord, USUAL_TTL } from './record.ts'

/** A way to add the record by a tool instead of by hand. */
interface Provider {
  readonly title: string
  /** @param zone the zone that holds the name, without trailing dot */
  readonly snippet: (record: TxtRecord, zone: string) => string
}

/**
 * Text as a quoted template of Terraform's language, in which `${` and `%{` begin an expression that can read files. The
 * usual escape, the sign twice, is read differently where another such sign stands in front.
 */
function terraformString(text: string): string {
  return JSON.stringify(text).replaceAll('${', '\\u0024{').replaceAll('%{', '\\u0025{')
}

const ttlOf = (record: TxtRecord) => record.ttl ?? USUAL_TTL

/** Replacing a set would delete SPF and other services' proofs at the same name. */
const KEEP =
  'TXT records that are at this name already (SPF, say) have to be listed as well: the set is replaced as a whole.'

const cloudflare: Provider = {
  title: 'Cloudflare API',
  snippet: (record) => {
    const body = {
      type: 'TXT',
      name: record.name,
      // 1 stands for "automatic".
      ttl: record.ttl ?? 1,
      content: quoteValue(record.value),
    }
    return [
      '# CLOUDFLARE_ZONE_ID is on the overview page of the zone. The token needs the permission DNS Edit.',
      'curl --fail-with-body -X POST "https://api.cloudflare.com/client/v4/zones/$CLOUDFLARE_ZONE_ID/dns_records" \\',
      '  -H "Authorization: Bearer $CLOUDFLARE_API_TOKEN" -H "Content-Type: application/json" \\',
      `  --data ${posixQuote(JSON.stringify(body))}`,
    ].join('\n')
  },
}

const route53: Provider = {
  title: 'Amazon Route 53 change batch',
  snippet: (record) => {
    const batch = {
      // Route 53 takes 256 characters here.
      Comment: KEEP,
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
}

const googleCloudDns: Provider = {
  title: 'Google Cloud DNS',
  snippet: (record, zone) =>
    [
      `# MANAGED_ZONE is the name of the managed zone of ${zone}. Where the set exists already, use update and list`,
      '# its other values as well, in one --rrdatas with a separator of its own: gcloud topic escaping.',
      `gcloud dns record-sets create ${posixQuote(`${record.name}.`)} --zone="$MANAGED_ZONE" --type=TXT --ttl=${ttlOf(record)} \\`,
      `  --rrdatas=${posixQuote(listOfOne(quoteValue(record.value)))}`,
    ].join('\n'),
}

/** gcloud takes commas for separators unless another one is named in front (gcloud topic escaping). */
function listOfOne(text: string): string {
  if (!text.includes(',') && !text.startsWith('^')) return text
  let separator = [':', ';', '|', '~', '#'].find((candidate) => !text.includes(candidate)) ?? '@'
  while (text.includes(separator)) separator += '@'
  return `^${separator}^${text}`
}

const azure: Provider = {
  title: 'Azure DNS',
  snippet: (record, zone) =>
    [
      '# Adds to the set: TXT records that are there already stay.',
      `az network dns record-set txt add-record --resource-group "$RESOURCE_GROUP" --zone-name=${posixQuote(zone)} \\`,
      `  --record-set-name=${posixQuote(relativeName(record.name, zone))} \\`,
      // az splits what is longer than 255 characters by itself.
      `  --value=${posixQuote(azureValue(record.value))}`,
    ].join('\n'),
}

/**
 * az has no escape for control characters, and replaces an argument that begins with "@", or whose first "=" is followed
 * by one, by the content of that file. Behind `--value=` the second cannot happen.
 *
 * @throws CliError exit 7
 */
function azureValue(value: string): string {
  if (/^[\x20-\x3f\x41-\x7e][\x20-\x7e]*$/.test(value)) return value
  throw new CliError(
    'value_unusable',
    Exit.unavailable,
    `the Azure CLI cannot be given the value ${JSON.stringify(value.slice(0, 300))}: it is not plain ASCII, or begins with "@", which names a file`,
    { hint: 'add the record in the Azure portal; mailclaim claims record shows it' },
  )
}

const nsupdate: Provider = {
  title: 'nsupdate (RFC 2136)',
  snippet: (record, zone) =>
    [
      `zone ${zone}.`,
      `update add ${record.name}. ${ttlOf(record)} IN TXT ${quoteValue(record.value)}`,
      'send',
    ].join('\n'),
}

const terraform: Provider = {
  title: 'Terraform (provider hashicorp/dns)',
  snippet: (record, zone) => {
    const host = relativeName(record.name, zone)
    // The provider puts the text between quotation marks: what is inside has to be escaped for it as well.
    const text = quoteValue(record.value).slice(1, -1)
    return [
      `# ${KEEP}`,
      'resource "dns_txt_record_set" "domain_claim" {',
      `  zone = ${terraformString(`${zone}.`)}`,
      ...(host === '@' ? [] : [`  name = ${terraformString(host)}`]),
      `  txt  = [${terraformString(text)}]`,
      `  ttl  = ${ttlOf(record)}`,
      '}',
    ].join('\n')
  },
}

const PROVIDERS = {
  cloudflare,
  route53,
  'google-cloud-dns': googleCloudDns,
  'azure-dns': azure,
  nsupdate,
  terraform,
} as const satisfies Readonly<Record<string, Provider>>

export type ProviderName = keyof typeof PROVIDERS

/** What `--provider` takes. */
export const PROVIDER_NAMES = Object.keys(PROVIDERS) as readonly ProviderName[]

/**
 * What to run or to send to add the record, ready to paste; quoted and, beyond 255 bytes, split as the provider wants it.
 * No character in it acts on a terminal, and no tool takes a part of the record for an option, a file or an expression.
 *
 * @param zone the zone that holds the name, without trailing dot
 * @throws CliError `value_unusable`, exit 7, where the tool has no way to be given that value.
 */
export function providerSnippet(provider: ProviderName, record: TxtRecord, zone: string): string {
  return PROVIDERS[provider].snippet(record, zone)
}
