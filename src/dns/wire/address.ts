import { isIP } from 'node:net'
import type { DnsServerAddress } from '../../context.ts'

export const DNS_PORT = 53

/**
 * A DNS server to query: a URL for DNS over HTTPS (RFC 8484), or an address for UDP and TCP. `https`: fallback if UDP brings no
 * response.
 */
export type DnsServer = URL | (DnsServerAddress & { readonly https?: URL })

/** Resolvers that `--public-resolvers` adds: Cloudflare, Google and Quad9. */
export const PUBLIC_RESOLVERS: readonly DnsServer[] = [
  ['1.1.1.1', 'cloudflare-dns.com'],
  ['8.8.8.8', 'dns.google'],
  ['9.9.9.9', 'dns.quad9.net'],
].map(([address = '', host]) => ({ address, port: DNS_PORT, https: new URL(`https://${host}/dns-query`) }))

/** Formats a resolver as `--resolver` takes it, such as `9.9.9.9`, `[2620:fe::9]:5353` or a URL. */
export function formatResolver(resolver: DnsServer): string {
  if (resolver instanceof URL) return resolver.href
  const { address, port } = resolver
  if (port === DNS_PORT) return address
  return address.includes(':') ? `[${address}]:${port}` : `${address}:${port}`
}

/**
 * Converts an IPv6 address to the spelling of URLs, so that a server with two spellings is queried once. Returns an address with a
 * scope (`%eth0`) and any other text unchanged.
 */
export function canonicalizeAddress(address: string): string {
  if (isIP(address) !== 6 || address.includes('%')) return address
  return new URL(`http://[${address}]/`).hostname.slice(1, -1)
}

/** Whether a server's address is an IPv6 address; false if the server has none. */
export const hasIpv6Address = ({ address }: { readonly address: string | null }): boolean =>
  address?.includes(':') === true

/** Matches a private address: RFC 1918, carrier-grade NAT (RFC 6598), or IPv6 unique local (RFC 4193). */
const PRIVATE = /^(?:10|192\.168|172\.(?:1[6-9]|2\d|3[01])|100\.(?:6[4-9]|[7-9]\d|1[01]\d|12[0-7]))\.|^f[cd]/

/** Whether an address belongs to a private network; loopback and link-local addresses don't, and neither does null. */
export const isPrivateAddress = (address: string | null): boolean => address !== null && PRIVATE.test(address)

/**
 * Matches an address of this host (RFC 1122 section 3.2.1.3: 0.0.0.0/8 and loopback), which DNS filters return for blocked names.
 */
const THIS_HOST = /^(?:0|127)\.|^::1?$/

/**
 * Whether a name server can have this address: not the unspecified address nor, on port 53, one of this host; test servers on this
 * machine use other ports.
 */
export function canBeNameServerAddress({ address, port }: DnsServerAddress): boolean {
  return address !== '0.0.0.0' && address !== '::' && (port !== DNS_PORT || !THIS_HOST.test(address))
}
