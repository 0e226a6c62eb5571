/** A company that hosts DNS zones, with where its customers edit their records. */
export interface DnsHost {
  readonly name: string
  /** The address of the page, or several with "or" between them if the name servers don't tell which. */
  readonly page: string
}

/**
 * The DNS hosts by the names of their name servers, as they document them, each with the page on which records are edited;
 * `{zone}` in it stands for the zone. To add one, add an entry. The first that matches counts.
 */
const DNS_HOSTS: readonly (readonly [servers: RegExp, name: string, page: string])[] = [
  [/\.ns\.cloudflare\.com$/, 'Cloudflare', 'https://dash.cloudflare.com/?to=/:account/{zone}/dns/records'],
  [
    /\.awsdns-\d+\.(?:com|net|org|co\.uk)$/,
    'Amazon Route 53',
    'https://console.aws.amazon.com/route53/v2/hostedzones',
  ],
  // Squarespace took over the customers of Google Domains, on the same servers.
  [
    /^ns-cloud-[a-z]\d\.googledomains\.com$/,
    'Google Cloud DNS or Squarespace',
    'https://console.cloud.google.com/net-services/dns/zones or https://account.squarespace.com/domains',
  ],
  [
    /\.azure-dns\.(?:com|net|org|info)$/,
    'Azure DNS',
    'https://portal.azure.com/#browse/Microsoft.Network%2FdnsZones',
  ],
  [/\.domaincontrol\.com$/, 'GoDaddy', 'https://dcc.godaddy.com/control/dnsmanagement?domainName={zone}'],
  [
    /\.registrar-servers\.com$/,
    'Namecheap',
    'https://ap.www.namecheap.com/Domains/DomainControlPanel/{zone}/advancedns',
  ],
  [/\.digitalocean\.com$/, 'DigitalOcean', 'https://cloud.digitalocean.com/networking/domains/{zone}'],
  [/\.dnsimple\.com$|\.dnsimple-edge\.(?:net|org|io)$/, 'DNSimple', 'https://dnsimple.com/dashboard'],
  // Netlify uses servers of NS1.
  [/^dns\d\.p\d+\.nsone\.net$/, 'Netlify or NS1', 'https://app.netlify.com/ or https://my.nsone.net/'],
  [/\.nsone\.net$/, 'NS1', 'https://my.nsone.net/'],
  [/\.dynect\.net$/, 'Oracle Dyn', 'https://manage.dynect.net/'],
  [/\.ultradns\.(?:com|net|org|biz|info|co\.uk)$/, 'UltraDNS', 'https://portal.ultradns.com/'],
  [/\.dnsmadeeasy\.com$/, 'DNS Made Easy', 'https://cp.dnsmadeeasy.com/'],
  [/\.easydns\.(?:com|net|org|info)$/, 'easyDNS', 'https://cp.easydns.com/'],
  [/\.cloudns\.(?:com|net|uk)$/, 'ClouDNS', 'https://www.cloudns.net/main/'],
  [/\.desec\.(?:io|org)$/, 'deSEC', 'https://desec.io/domains'],
  [/\.bunny\.net$/, 'bunny.net', 'https://dash.bunny.net/dns'],
  [/\.vercel-dns\.com$/, 'Vercel', 'https://vercel.com/dashboard/domains'],
  [/\.wixdns\.net$/, 'Wix', 'https://manage.wix.com/account/domains'],
  [/\.squarespacedns\.com$/, 'Squarespace', 'https://account.squarespace.com/domains'],
  [/\.wordpress\.com$/, 'WordPress.com', 'https://wordpress.com/domains/manage'],
  [/\.hover\.com$/, 'Hover', 'https://www.hover.com/control_panel/domain/{zone}/dns'],
  [/\.gandi\.net$/, 'Gandi', 'https://admin.gandi.net/domain'],
  [/\.ovh\.net$|\.anycast\.me$/, 'OVHcloud', 'https://www.ovh.com/manager/#/web/domain'],
  [/\.ui-dns\.(?:com|de|org|biz)$/, 'IONOS', 'https://my.ionos.com/domains'],
  [/\.first-ns\.de$|\.second-ns\.(?:com|de)$/, 'Hetzner Robot', 'https://robot.hetzner.com/dns'],
  [/\.hetzner\.(?:com|de)$/, 'Hetzner', 'https://console.hetzner.com/'],
  [/\.porkbun\.com$/, 'Porkbun', 'https://porkbun.com/account/domainsSpeedy'],
  [/\.name\.com$/, 'Name.com', 'https://www.name.com/account/domain'],
  [/\.dynadot\.com$/, 'Dynadot', 'https://www.dynadot.com/account/domain/name/list.html'],
  [/\.worldnic\.com$/, 'Network Solutions', 'https://www.networksolutions.com/my-account/'],
  [/\.linode\.com$/, 'Akamai (Linode)', 'https://cloud.linode.com/domains'],
  [/\.akam\.net$/, 'Akamai', 'https://control.akamai.com/'],
  [/\.vultr\.com$/, 'Vultr', 'https://my.vultr.com/dns/'],
  [/\.scw\.cloud$/, 'Scaleway', 'https://console.scaleway.com/domains'],
  [/\.he\.net$/, 'Hurricane Electric', 'https://dns.he.net/'],
  [/\.hostinger\.com$|\.dns-parking\.com$/, 'Hostinger', 'https://hpanel.hostinger.com/'],
  [/\.bluehost\.com$/, 'Bluehost', 'https://my.bluehost.com/'],
  [/\.dreamhost\.com$/, 'DreamHost', 'https://panel.dreamhost.com/'],
  [/\.siteground\.net$/, 'SiteGround', 'https://my.siteground.com/'],
  [/\.transip\.(?:nl|net|eu)$/, 'TransIP', 'https://www.transip.nl/cp/'],
  [/\.inwx\.(?:de|eu|net)$/, 'INWX', 'https://www.inwx.com/en/nameserver'],
  [/\.strato\.(?:de|net)$|\.rzone\.de$/, 'STRATO', 'https://www.strato.de/apps/CustomerService'],
  [/\.root-dns\.netcup\.net$|^root-dns\.netcup\.net$/, 'netcup', 'https://www.customercontrolpanel.de/'],
  [/\.infomaniak\.(?:ch|com)$/, 'Infomaniak', 'https://manager.infomaniak.com/'],
  [/\.loopia\.se$/, 'Loopia', 'https://customerzone.loopia.com/'],
  [/\.one\.com$/, 'one.com', 'https://www.one.com/admin/'],
  [/\.yandexcloud\.net$|\.yandex\.net$/, 'Yandex', 'https://console.yandex.cloud/'],
  [/\.alidns\.com$|\.hichina\.com$/, 'Alibaba Cloud DNS', 'https://dns.console.aliyun.com/'],
  [/\.dnspod\.net$/, 'DNSPod', 'https://console.dnspod.cn/'],
]

/** The known hosts of these name servers, each once. */
export function dnsHostsOf(zone: string, nameservers: readonly string[]): DnsHost[] {
  const found = nameservers.flatMap((server) =>
    DNS_HOSTS.filter(([servers]) => servers.test(server)).slice(0, 1),
  )
  return [...new Set(found)].map(([, name, page]) => ({
    name,
    page: page.replaceAll('{zone}', encodeURIComponent(zone)),
  }))
}

/** Where to edit a record: `Cloudflare (https://…)`; undefined without a known host. */
export function dnsHostText(hosts: readonly DnsHost[]): string | undefined {
  return hosts.length === 0 ? undefined : hosts.map(({ name, page }) => `${name} (${page})`).join(' and ')
}
