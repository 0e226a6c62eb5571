import { parse } from 'tldts'
import { labelCount } from '../wire/name.ts'

/** Names from DNS messages aren't URLs, and may have labels that host names can't have. */
const OPTIONS = { extractHostname: false, detectIp: false, validateHostname: false } as const

/**
 * Whether names directly below `zone` are registered there: a top-level domain, or a registry on the Public Suffix List,
 * such as `co.uk`. The list's private part doesn't count: `uk.com` is a company's zone.
 */
export function isRegistry(zone: string): boolean {
  if (labelCount(zone) === 1) return zone !== '.'
  const { publicSuffix, isIcann } = parse(zone, OPTIONS)
  return isIcann === true && publicSuffix === zone
}

/** Whether the zone is a company's that gives names below it to anyone (the list's private part), such as `uk.com`. */
export function isPrivateRegistry(zone: string): boolean {
  const { publicSuffix, isPrivate } = parse(zone, { ...OPTIONS, allowPrivateDomains: true })
  return isPrivate === true && publicSuffix === zone
}

/** The domain to register for a name below a registry's zone; `co.jp` is a part of the zone `jp`. */
export function registeredDomain(name: string, zone: string): string {
  const belowZone = name
    .split('.')
    .slice(-Math.max(2, labelCount(zone) + 1))
    .join('.')
  const { domain } = parse(name, OPTIONS)
  return domain !== null && labelCount(domain) > labelCount(belowZone) ? domain : belowZone
}
