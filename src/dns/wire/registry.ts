import { parse } from 'tldts'
import { countLabels } from './name.ts'

/** Options of tldts for names from DNS messages, which aren't URLs, and can have labels that host names can't. */
const OPTIONS = { extractHostname: false, detectIp: false, validateHostname: false } as const

/**
 * Whether names directly below `zone` are registered there: the root, a top-level domain, or a public suffix such as `co.uk`
 * (Public Suffix List, ICANN section). The list's private section isn't used: `uk.com` is a company's zone.
 */
export function isRegistryZone(zone: string): boolean {
  return countLabels(zone) <= 1 || findPublicSuffix(zone) === zone
}

/** Returns a name's public suffix (Public Suffix List, ICANN section), such as `co.uk`; undefined if the list has none for it. */
export function findPublicSuffix(name: string): string | undefined {
  const { publicSuffix, isIcann } = parse(name, OPTIONS)
  return isIcann === true && publicSuffix !== null ? publicSuffix : undefined
}

/**
 * Returns the registrable domain of a name: its public suffix and the label before the suffix, if any (`example.co.uk`). Without a
 * public suffix, the last two labels.
 */
export function registrableDomainOf(name: string): string {
  const labels = name.split('.')
  return labels.slice(-Math.max(2, countLabels(findPublicSuffix(name) ?? '.') + 1)).join('.')
}
