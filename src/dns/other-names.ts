import type { DnsServerAddress } from '../context.ts'
import { type CheckRun, isFromZone } from './locate.ts'
import type { OtherNameWithTxt } from './observations.ts'
import { queryDns } from './wire/ask.ts'
import { canQueryName, isWithin } from './wire/name.ts'
import { haveSameValues, readTxtAnswer } from './wire/txt-answer.ts'

/** Maximum milliseconds for a TXT query about a name other than the checked name. */
const SERVER_MS = 2500

/**
 * Lists names where records often end up by mistake, in the order in which findings prefer them. Many mistakes come from DNS
 * providers that append the zone to the typed host: a full name is then doubled, a first label repeated.
 */
function listCandidateNames(
  zone: string,
  { name, expected }: CheckRun,
): readonly (readonly [kind: OtherNameWithTxt['kind'], name: string])[] {
  const [first = ''] = name.split('.')
  const parent = name.slice(first.length + 1)
  const prefix = /^_*([a-z0-9_-]{1,40})=/i.exec(expected ?? '')?.[1]?.toLowerCase() ?? 'mailclaim'
  // First the value's prefix as a label, then well-known labels, which users put before the name by habit.
  const labels = [`_${prefix}`, prefix, '_mailclaim', '_dmarc', '_vercel', '_acme-challenge']
  const candidates = [
    ['used', `*.${name}`],
    ['used', `*.${parent}`],
    ['used', `*.${zone}`],
    ['doubled', `${name}.${zone}`],
    ['doubled', `${name}.${name}`],
    ['wrong', `${first}.${name}`],
    ['wrong', `@.${name}`],
    ['wrong', `@.${zone}`],
    ['wrong', name.replace(/(^|\.)_+/g, '$1')],
    ['wrong', `www.${name}`],
    // The zone's parent inserted before the zone: in the zone `example.com`, `sub.com.example.com` for `sub.example.com`.
    ['wrong', `${name.slice(0, -zone.length)}${zone.slice(zone.indexOf('.') + 1)}.${zone}`],
    ...labels.flatMap((label) => [name, zone].map((owner) => ['wrong', `${label}.${owner}`] as const)),
    ['used', parent],
    ['used', zone],
  ] as const
  const names = candidates.map(([, candidate]) => candidate)
  return candidates.filter(([, at], n) => at !== name && isWithin(at, zone) && names.indexOf(at) === n)
}

/**
 * Looks, at one authoritative server, for TXT records at names other than the checked name, and for a wildcard that covers the
 * checked name. A wildcard doesn't reach below an existing name (RFC 4592 section 3.3.1). So if a random label below the checked
 * name gets the wildcard's answer, the checked name doesn't exist, and the wildcard covers it.
 */
export async function findTxtAtOtherNames(server: DnsServerAddress, zone: string, check: CheckRun) {
  const { name } = check
  const txtAt = async (owner: string) => {
    if (!canQueryName(owner)) return undefined
    const message = await queryDns(server, { name: owner, type: 'TXT' }, check, SERVER_MS)
    return message && isFromZone(message, zone) ? readTxtAnswer(message, owner) : undefined
  }
  // Random label that nobody has published, so records at it come from a wildcard.
  const unused = `mc-${Buffer.from(check.effects.random.bytes(8)).toString('hex')}`
  const [beside, below, above, ...found] = await Promise.all([
    txtAt(`${unused}.${name === zone ? name : name.slice(name.indexOf('.') + 1)}`),
    txtAt(`${unused}.${name}`),
    txtAt(`${unused}.${zone}`),
    ...listCandidateNames(zone, check).map(async ([kind, at]) => {
      const answer = await txtAt(at)
      return { name: at, kind, values: answer?.aliases.length === 0 ? answer.values : [] }
    }),
  ])
  const values = beside?.values ?? []
  const isWild = values.length > 0 || (beside?.aliases.length ?? 0) > 0
  const coversName =
    name !== zone &&
    below !== undefined &&
    below.aliases[0] === beside?.aliases[0] &&
    haveSameValues(below.values, values)
  // A wildcard gives its values at nonexistent names, so a name of the kind `doubled` or `wrong` with exactly these values counts
  // as nonexistent.
  const isFromWildcard = (one: (typeof found)[number]) =>
    one.kind !== 'used' &&
    [beside, below, above].some((wild) => wild !== undefined && haveSameValues(one.values, wild.values))
  return {
    candidates: found.filter((one) => one.values.length > 0 && !isFromWildcard(one)),
    wildcard: isWild && coversName ? values : null,
  }
}
