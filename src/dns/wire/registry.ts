import { parse } from 'tldts'
import { countLabels } from './name.ts'

/** Parser options: names from DNS messages aren't URLs, and can have labels that host names can't. */
const OPTIONS = { extractHostname: false, detectIp: false, validateHostname: false } as const

/**
 * Whether names directly below `zone` are registered there: a top-level domain, or a registry on the Public Suffix List, such as
 * `co.uk`. The list's private section isn't used: `uk.com` is a company's zone.
 */
export function isRegistry(zone: string): boolean {
  return countLabels(zone) <= 1 || findPublicSuffix(zone) === zone
}

/** Returns the registry of a name by the Public Suffix List, such as `com` or `co.uk`; undefined for a private top-level domain. */
export function findPublicSuffix(name: string): string | undefined {
  const { publicSuffix, isIcann } = parse(name, OPTIONS)
  return isIcann === true && publicSuffix !== null ? publicSuffix : undefined
}

/**
 * Returns the domain that a name belongs to, as registered at a registry of the Public Suffix List; without one, its last two
 * labels.
 */
export function registeredDomainOf(name: string): string {
  const { domain } = parse(name, OPTIONS)
  const registry = findPublicSuffix(name) ?? '.'
  const below = name.split('.').slice(-Math.max(2, countLabels(registry) + 1))
  return domain !== null && countLabels(domain) > below.length ? domain : below.join('.')
}
