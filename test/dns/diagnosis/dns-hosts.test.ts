import { describe, expect, test } from 'vitest'
import { dnsHostsOf, dnsHostText } from '../../../src/dns/diagnosis/dns-hosts.ts'

const SERVERS: readonly (readonly [server: string, name: string])[] = [
  ['ada.ns.cloudflare.com', 'Cloudflare'],
  ['ns-42.awsdns-05.com', 'Amazon Route 53'],
  ['ns-1234.awsdns-26.co.uk', 'Amazon Route 53'],
  ['ns-cloud-a1.googledomains.com', 'Google Cloud DNS or Squarespace'],
  ['ns1-03.azure-dns.com', 'Azure DNS'],
  ['ns1.digitalocean.com', 'DigitalOcean'],
  ['helium.ns.hetzner.de', 'Hetzner'],
  ['ns1.first-ns.de', 'Hetzner Robot'],
  ['ns51.domaincontrol.com', 'GoDaddy'],
  ['dns1.registrar-servers.com', 'Namecheap'],
  ['ns-12-a.gandi.net', 'Gandi'],
  ['dns200.anycast.me', 'OVHcloud'],
  ['ns1023.ui-dns.biz', 'IONOS'],
  ['curitiba.ns.porkbun.com', 'Porkbun'],
  ['ns1.dnsimple.com', 'DNSimple'],
  ['dns1.p05.nsone.net', 'Netlify or NS1'],
  ['ns1.example.nsone.net', 'NS1'],
  ['ns1.p23.dynect.net', 'Oracle Dyn'],
  ['ns1.vercel-dns.com', 'Vercel'],
  ['connect1.squarespacedns.com', 'Squarespace'],
  ['ns10.wixdns.net', 'Wix'],
  ['ns1.linode.com', 'Akamai (Linode)'],
  ['ns1.vultr.com', 'Vultr'],
  ['ns1abc.name.com', 'Name.com'],
  ['ns1.hover.com', 'Hover'],
  ['ns1.bluehost.com', 'Bluehost'],
  ['docks07.rzone.de', 'STRATO'],
  ['ns.inwx.de', 'INWX'],
  ['ns1.desec.io', 'deSEC'],
  ['ns0.dnsmadeeasy.com', 'DNS Made Easy'],
  ['dns1.easydns.com', 'easyDNS'],
  ['a1-67.akam.net', 'Akamai'],
  ['pdns1.ultradns.net', 'UltraDNS'],
  ['dns9.hichina.com', 'Alibaba Cloud DNS'],
  ['root-dns.netcup.net', 'netcup'],
]

describe('the DNS host', () => {
  test.each(SERVERS)('of %s is %s, with the address of its page', (server, name) => {
    const [host, ...others] = dnsHostsOf('shop.example', [server])
    expect(others).toEqual([])
    expect(host?.name).toBe(name)
    for (const address of host?.page.split(' or ') ?? []) expect(new URL(address).protocol).toBe('https:')
  })

  test('is named once for all its servers, with the zone in the address', () => {
    const servers = ['ns51.domaincontrol.com', 'ns52.domaincontrol.com', 'ns1.hover.com']
    expect(dnsHostText(dnsHostsOf('shop.example', servers))).toBe(
      'GoDaddy (https://dcc.godaddy.com/control/dnsmanagement?domainName=shop.example) and Hover (https://www.hover.com/control_panel/domain/shop.example/dns)',
    )
  })

  test.each(['ns1.shop.example', 'cloudflare.com.evil.example', 'ns.cloudflare.com.', 'notgandi.net'])(
    'of %s is not known',
    (server) => {
      expect(dnsHostText(dnsHostsOf('shop.example', [server]))).toBeUndefined()
    },
  )
})
