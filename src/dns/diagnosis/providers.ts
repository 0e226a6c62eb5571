/** The providers by the names of their name servers, as they document them. */
const PROVIDERS: readonly (readonly [RegExp, string])[] = [
  [/\.ns\.cloudflare\.com$/, 'Cloudflare'],
  [/\.awsdns-\d+\.(?:com|net|org|co\.uk)$/, 'Amazon Route 53'],
  [/^ns-cloud-[a-z]\d\.googledomains\.com$/, 'Google Cloud DNS'],
  [/\.azure-dns\.(?:com|net|org|info)$/, 'Azure DNS'],
  [/\.domaincontrol\.com$/, 'GoDaddy'],
  [/\.registrar-servers\.com$/, 'Namecheap'],
  [/\.digitalocean\.com$/, 'DigitalOcean'],
  [/\.dnsimple\.com$|\.dnsimple-edge\.(?:net|org|io)$/, 'DNSimple'],
  [/\.nsone\.net$/, 'NS1'],
  [/\.ultradns\.(?:com|net|org|biz|info|co\.uk)$/, 'UltraDNS'],
  [/\.dnsmadeeasy\.com$/, 'DNS Made Easy'],
  [/\.vercel-dns\.com$/, 'Vercel'],
  [/^dns\d\.p\d+\.nsone\.net$/, 'Netlify or NS1'],
  [/\.wixdns\.net$/, 'Wix'],
  [/\.squarespacedns\.com$/, 'Squarespace'],
  [/\.wordpress\.com$/, 'WordPress.com'],
  [/\.hover\.com$/, 'Hover'],
  [/\.gandi\.net$/, 'Gandi'],
  [/\.ovh\.net$|\.anycast\.me$/, 'OVHcloud'],
  [/\.ui-dns\.(?:com|de|org|biz)$/, 'IONOS'],
  [/\.hetzner\.(?:com|de)$|\.first-ns\.de$|\.second-ns\.(?:com|de)$/, 'Hetzner'],
  [/\.porkbun\.com$/, 'Porkbun'],
  [/\.name\.com$/, 'Name.com'],
  [/\.linode\.com$/, 'Akamai (Linode)'],
  [/\.akam\.net$/, 'Akamai'],
  [/\.he\.net$/, 'Hurricane Electric'],
  [/\.hostinger\.com$|\.dns-parking\.com$/, 'Hostinger'],
  [/\.bluehost\.com$/, 'Bluehost'],
  [/\.dreamhost\.com$/, 'DreamHost'],
  [/\.transip\.(?:nl|net|eu)$/, 'TransIP'],
  [/\.inwx\.(?:de|eu|net)$/, 'INWX'],
  [/\.strato\.(?:de|net)$|\.rzone\.de$/, 'STRATO'],
  [/\.yandexcloud\.net$|\.yandex\.net$/, 'Yandex'],
  [/\.alidns\.com$|\.hichina\.com$/, 'Alibaba Cloud DNS'],
  [/\.dnspod\.net$/, 'DNSPod'],
]

/** The known providers of these name servers, each once. */
export function providersOf(hosts: readonly string[]): string[] {
  const found = hosts.flatMap((host) => {
    const known = PROVIDERS.find(([pattern]) => pattern.test(host))
    return known === undefined ? [] : [known[1]]
  })
  return [...new Set(found)]
}
