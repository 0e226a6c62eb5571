import { groupByOutcome, type ZoneObservations } from '../observation/observations.ts'
import { isRegistry, registeredDomain } from '../resolution/registry.ts'
import { dnsHostsOf } from './dns-hosts.ts'
import type { Finding } from './finding.ts'
import { aliasCause } from './findings-alias.ts'
import { zoneNotDelegated } from './findings-delegation.ts'
import { differingServers } from './findings-propagation.ts'

/** What to know about the TXT values at a name if no value is expected: where they come from, and who hosts the zone. */
export function zoneFindings(observations: ZoneObservations): Finding[] {
  const { undelegated, servers } = observations
  if (undelegated !== undefined) return [zoneNotDelegated(observations, undelegated)]
  const isEmpty = groupByOutcome(servers).withoutRecord.every(({ values }) => values.length === 0)
  const registry = isEmpty ? registryFinding(observations) : undefined
  if (registry !== undefined) return [registry]
  const differing = differingServers(observations)
  const { withoutRecord } = groupByOutcome(servers)
  // Without an answer nothing says who hosts the zone; with different ones, there is more than one place to edit.
  const hint = differing === undefined && withoutRecord.length > 0 ? providerHint(observations) : undefined
  return [differing, aliasCause(observations), hint].filter((finding) => finding !== undefined)
}

/** The name is, or is directly in, a zone that only its registry can change; undefined if it isn't. */
export function registryFinding({ name, zone, servers }: ZoneObservations): Finding | undefined {
  if (isRegistry(name)) return registryName(name)
  // Only the registry's own answer shows that it doesn't delegate the domain.
  const isAnswered = groupByOutcome(servers).withoutRecord.length > 0
  return isAnswered && isRegistry(zone) && name !== zone ? undelegatedDomain(name, zone) : undefined
}

/** Only the registry can edit that zone; the user probably means a domain below it. */
function registryName(name: string): Finding {
  return {
    code: 'domain_not_found',
    severity: 'error',
    message: `${name} isn't a registered domain but a registry's zone: only the registry can change records there`,
    fix: `Check your registered domain instead, such as example.${name}`,
    details: { domain: name, said_by: name },
  }
}

/** Some registries answer for domains without a delegation, with a wildcard or leftover addresses, instead of NXDOMAIN. */
function undelegatedDomain(name: string, zone: string): Finding {
  const domain = registeredDomain(name, zone)
  return {
    code: 'domain_not_found',
    severity: 'error',
    message: `The domain ${domain} has no name servers of its own: the registry (${zone}) answers for it`,
    fix: `Check the spelling of ${domain}. If it's right, the domain isn't registered, has expired, or has no name servers set at the registrar`,
    details: { domain, said_by: zone },
  }
}

/** Many missing records were added at a provider that doesn't host the zone. */
export function providerHint({ zone, servers }: ZoneObservations): Finding {
  const hosts = [...new Set(servers.map((server) => server.host))]
  const known = dnsHostsOf(zone, hosts)
  const providers = known.map(({ name }) => name)
  const pages = known.map(({ page }) => page)
  const host = known.length > 0 ? providers.join(' and ') : hosts.join(', ')
  return {
    code: 'wrong_provider_hint',
    severity: 'info',
    message: `The zone ${zone} is hosted by ${host}${providers.length > 0 ? ` (${hosts.join(', ')})` : ''}`,
    fix: `Edit the record there${known.length > 0 ? ` (${pages.join(' and ')})` : ''}. Records added anywhere else (at the registrar, at the web host) have no effect`,
    details: { zone, providers, ...(pages.length > 0 ? { pages } : {}), nameservers: hosts },
  }
}
