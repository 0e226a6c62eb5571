/** Who hosts DNS zones, by the ends of their name servers' names, as they document them. The first that matches counts. */
const HOSTS: readonly (readonly [servers: RegExp, name: string])[] = [
  [/\.ns\.cloudflare\.com$/, 'Cloudflare'],
  [/\.awsdns-\d+\.(?:com|net|org|co\.uk)$/, 'Amazon Route 53'],
  // Squarespace took over the customers of Google Domains, on the same servers.
  [/^ns-cloud-[a-z]\d\.googledomains\.com$/, 'Google Cloud DNS or Squarespace'],
  [/\.azure-dns\.(?:com|net|org|info)$/, 'Azure DNS'],
  [/\.domaincontrol\.com$/, 'GoDaddy'],
  [/\.registrar-servers\.com$/, 'Namecheap'],
  [/\.digitalocean\.com$/, 'DigitalOcean'],
  [/\.dnsimple\.com$|\.dnsimple-edge\.(?:net|org|io)$/, 'DNSimple'],
  // Netlify uses servers of NS1.
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

/** Who hosts a zone with these name servers: `Cloudflare`, `GoDaddy and Gandi`; null if their names don't tell. */
export function dnsHostOf(nameservers: readonly string[]): string | null {
  const found = nameservers.flatMap((server) => HOSTS.find(([servers]) => servers.test(server))?.[1] ?? [])
  return found.length === 0 ? null : [...new Set(found)].join(' and ')
}

/** The name servers of domains that nobody uses: for sale or, by the registrar, for expiry or a contact that wasn't confirmed. */
const UNUSED: readonly (readonly [servers: RegExp, use: 'parked' | 'suspended'])[] = [
  [/\.(?:above|afternic|bodis|cashparking|dan|internettraffic|parklogic|sedoparking)\.com$/, 'parked'],
  [/\.parkingcrew\.net$/, 'parked'],
  [/\.(?:pendingrenewaldeletion\.com|renewyourname\.net)$/, 'suspended'],
  [/^(?:failed-whois-verification|verify-contact-details)\.namecheap\.com$/, 'suspended'],
  [/^expire[a-z]*\d*\.|[.-](?:expired|suspended)[.-]/, 'suspended'],
]

/** What a domain with these name servers is used for, and the server that tells. */
export function useOf(nameservers: readonly string[]) {
  const found = UNUSED.flatMap(([servers, use]) =>
    nameservers.filter((server) => servers.test(server)).map((at) => ({ use, at })),
  )
  return found[0] ?? ({ use: 'active', at: null } as const)
}
