import { isIP } from 'node:net'
import type { DnsAddress } from '../../context.ts'

/** The port of DNS, where none is given. */
export const DNS_PORT = 53

/** Shows an address as `--resolver` takes it; the usual port is left out. */
export function formatDnsAddress({ address, port }: DnsAddress): string {
  if (port === DNS_PORT) return address
  return address.includes(':') ? `[${address}]:${port}` : `${address}:${port}`
}

/** One spelling per address (RFC 5952), so that the same server learned twice is asked once. */
export function canonicalAddress(address: string): string {
  if (isIP(address) !== 6 || address.includes('%')) return address
  return new URL(`http://[${address}]/`).hostname.slice(1, -1)
}
