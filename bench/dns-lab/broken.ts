import { ALIASES, NAMES, REGISTRY_NAMES } from './broken-names.ts'
import { CACHES, DNSSEC, NETWORKS } from './broken-network.ts'
import { DELEGATIONS, SERVERS } from './broken-servers.ts'
import { VALUES } from './broken-values.ts'
import type { Broken } from './truth.ts'

/** The setups that don't work, each with its truth. */
export const BROKEN: readonly Broken[] = [
  ...VALUES,
  ...NAMES,
  ...ALIASES,
  ...REGISTRY_NAMES,
  ...DELEGATIONS,
  ...SERVERS,
  ...CACHES,
  ...NETWORKS,
  ...DNSSEC,
]
