/** Patterns for host names of name servers, each with the DNS provider to which a match belongs. */
const HOSTS: readonly (readonly [servers: RegExp, name: string])[] = [
  [/\.ns\.cloudflare\.com$/, 'Cloudflare'],
  [/\.awsdns-\d+\.(?:com|net|org|co\.uk)$/, 'Amazon Route 53'],
  // Google Domains' customers moved to Squarespace and kept these name servers, so name both companies.
  [/^ns-cloud-[a-z]\d\.googledomains\.com$/, 'Google Cloud DNS or Squarespace'],
  [/\.azure-dns\.(?:com|net|org|info)$/, 'Azure DNS'],
  [/\.domaincontrol\.com$/, 'GoDaddy'],
  [/\.registrar-servers\.com$/, 'Namecheap'],
  [/\.digitalocean\.com$/, 'DigitalOcean'],
  [/\.dnsimple\.com$|\.dnsimple-edge\.(?:net|org|io)$/, 'DNSimple'],
  // Netlify hosts its customers' zones at NS1, so name both companies.
  [/\.nsone\.net$/, 'NS1 or Netlify'],
  [/\.dnsmadeeasy\.com$/, 'DNS Made Easy'],
  [/\.vercel-dns\.com$/, 'Vercel'],
  [/\.wixdns\.net$/, 'Wix'],
  [/\.squarespacedns\.com$/, 'Squarespace'],
  [/\.gandi\.net$/, 'Gandi'],
  [/\.ovh\.net$|\.anycast\.me$/, 'OVHcloud'],
  [/\.ui-dns\.(?:com|de|org|biz)$/, 'IONOS'],
  [/\.hetzner\.(?:com|de)$|\.(?:first|second)-ns\.(?:com|de)$/, 'Hetzner'],
  [/\.porkbun\.com$/, 'Porkbun'],
  [/\.linode\.com$/, 'Akamai (Linode)'],
  [/\.hostinger\.com$|\.dns-parking\.com$/, 'Hostinger'],
]

/** Returns the DNS providers of name servers, such as `Cloudflare` or `GoDaddy and Gandi`; null if no provider is known. */
export function formatDnsProviders(nameservers: readonly string[]): string | null {
  const found = nameservers.flatMap((server) => HOSTS.find(([servers]) => servers.test(server))?.[1] ?? [])
  return found.length === 0 ? null : [...new Set(found)].join(' and ')
}

/**
 * Patterns for host names of name servers. A match shows that a domain on that server is parked (unused or for sale), or
 * suspended by its registrar, for example after it has expired.
 */
const UNUSED: readonly (readonly [servers: RegExp, use: 'parked' | 'suspended'])[] = [
  [/\.(?:above|afternic|bodis|cashparking|dan|internettraffic|parklogic|sedoparking)\.com$/, 'parked'],
  [/\.parkingcrew\.net$/, 'parked'],
  [/\.(?:pendingrenewaldeletion\.com|renewyourname\.net)$/, 'suspended'],
  [/^(?:failed-whois-verification|verify-contact-details)\.namecheap\.com$/, 'suspended'],
  [/^expire[a-z]*\d*\.|[.-](?:expired|suspended)[.-]/, 'suspended'],
]

/**
 * Detects by its name servers whether a domain is parked, suspended or, without a sign of either, `active`. `at`: the name server
 * that shows this; null if active.
 */
export function detectDomainUse(nameservers: readonly string[]) {
  const found = UNUSED.flatMap(([servers, use]) =>
    nameservers.filter((server) => servers.test(server)).map((at) => ({ use, at })),
  )
  return found[0] ?? ({ use: 'active', at: null } as const)
}
