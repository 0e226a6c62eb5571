import { parse } from 'tldts'
import { labelCount } from '../wire/name.ts'

/** Names out of DNS messages: they are no URLs, and may have labels that no host name has. */
const OPTIONS = { extractHostname: false, detectIp: false, validateHostname: false } as const

/**
 * Whether names directly below `zone` are registered there: a top-level domain, or what the Public Suffix List has among
 * the registries of one, such as `co.uk`. Its private part is left out: who runs `uk.com` is a company with a zone.
 */
export function isRegistry(zone: string): boolean {
  if (labelCount(zone) === 1) return zone !== '.'
  const { publicSuffix, isIcann } = parse(zone, OPTIONS)
  return isIcann === true && publicSuffix === zone
}

/** Whether the zone is a company's, below which it lets everybody have names (the list's private part): `uk.com`. */
export function isPrivateRegistry(zone: string): boolean {
  const { publicSuffix, isPrivate } = parse(zone, { ...OPTIONS, allowPrivateDomains: true })
  return isPrivate === true && publicSuffix === zone
}

/** The domain that is, or is not, registered below a registry's zone; `co.jp` is a part of the zone `jp`. */
export function registeredDomain(name: string, zone: string): string {
  const belowZone = name
    .split('.')
    .slice(-Math.max(2, labelCount(zone) + 1))
    .join('.')
  const { domain } = parse(name, OPTIONS)
  return domain !== null && labelCount(domain) > labelCount(belowZone) ? domain : belowZone
}
