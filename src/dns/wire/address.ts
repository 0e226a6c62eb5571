import { isIP } from 'node:net'
import type { DnsAddress } from '../../context.ts'

/** The default port of DNS. */
export const DNS_PORT = 53

/**
 * A recursive resolver: one that is asked over HTTPS (RFC 8484), or over UDP and TCP, and then over HTTPS as well, at `https`,
 * where those bring nothing.
 */
export type Resolver = URL | (DnsAddress & { readonly https?: URL })

/** Resolvers that work for everybody. */
export const PUBLIC_RESOLVERS: readonly Resolver[] = [
  ['1.1.1.1', 'cloudflare-dns.com'],
  ['8.8.8.8', 'dns.google'],
  ['9.9.9.9', 'dns.quad9.net'],
].map(([address = '', host]) => ({ address, port: DNS_PORT, https: new URL(`https://${host}/dns-query`) }))

/** A resolver as `--resolver` takes it, without the default port. */
export function formatDnsAddress(resolver: Resolver): string {
  if (resolver instanceof URL) return resolver.href
  const { address, port } = resolver
  if (port === DNS_PORT) return address
  return address.includes(':') ? `[${address}]:${port}` : `${address}:${port}`
}

/** One spelling per address (RFC 5952), so a server found twice is asked once. */
export function canonicalAddress(address: string): string {
  if (isIP(address) !== 6 || address.includes('%')) return address
  return new URL(`http://[${address}]/`).hostname.slice(1, -1)
}

export const isV6 = ({ address }: { readonly address: string | null }): boolean =>
  address?.includes(':') === true

/** Private networks (RFC 1918), those behind a carrier's translation (RFC 6598), and unique local addresses (RFC 4193). */
const PRIVATE = /^(?:10|192\.168|172\.(?:1[6-9]|2\d|3[01])|100\.(?:6[4-9]|[7-9]\d|1[01]\d|12[0-7]))\.|^f[cd]/

export const isPrivate = (address: string | null): boolean => address !== null && PRIVATE.test(address)

/** What no other machine can be reached at (RFC 1122 section 3.2.1.3), and what filters answer for a name they block. */
const OWN = /^(?:0|127)\.|^::1?$/

/** Whether a name server can have that address: on loopback only with another port, as private DNS in a test has. */
export function isServerAddress({ address, port }: DnsAddress): boolean {
  return address !== '0.0.0.0' && address !== '::' && (port !== DNS_PORT || !OWN.test(address))
}
