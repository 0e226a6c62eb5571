import type { Observation } from '../observation/observations.ts'

/** The servers in a message: `ns1.example.com (192.0.2.1), …`. */
export function listServers(servers: readonly Observation[]): string {
  return servers.map(({ host, server }) => serverText(host, server?.address)).join(', ')
}

/** One of them: `ns1.example.com (192.0.2.1)`, or the host alone without an address. */
export function serverText(host: string, address?: string | null): string {
  return address ? `${host} (${address})` : host
}

/** The servers in the JSON report. */
export function serverEvidence(servers: readonly Observation[]) {
  return servers.map((server) => ({
    host: server.host,
    address: server.server?.address ?? null,
    outcome: server.outcome,
    rcode: server.rcode ?? null,
    authoritative: server.authoritative,
    ms: server.ms,
  }))
}
