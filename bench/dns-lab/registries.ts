import { ROOT, TLD_A, TLD_B } from './network.ts'
import type { Relay } from './relay.ts'
import { relay } from './relay.ts'
import { type Hosts, type Zone, zone } from './zone.ts'

const both = (apex: string): Hosts => ({ [`a.nic.${apex}.`]: [TLD_A], [`b.nic.${apex}.`]: [TLD_B] })

function registry(apex: string, more: Partial<Zone> = {}): Zone {
  return zone(apex, '', { at: ['tldA', 'tldB'], ns: both(apex), minimum: 900, ...more })
}

/** Switches between two states of a registry: before and after a change of name servers. */
export const switchedRegistry: Relay = relay({ upstream: TLD_A })

/** The root, top-level domains, and registries below them, some of which are separate zones, as in reality. */
export const REGISTRIES: readonly Zone[] = [
  zone('.', '', {
    at: ['root'],
    ns: { 'a.root-servers.': [ROOT[0]], 'b.root-servers.': [ROOT[1]] },
    signed: {},
    minimum: 86_400,
  }),
  registry('com', { signed: { nsec3: 'opt-out' } }),
  registry('net', { signed: { nsec3: 'opt-out' } }),
  registry('org', { signed: { algorithm: 'RSASHA256', nsec3: 'plain' } }),
  registry('dev', { signed: {} }),
  registry('de', { signed: { algorithm: 'RSASHA256', nsec3: 'opt-out' } }),
  registry('me', { signed: {} }),
  registry('io', { signed: { nsec3: 'opt-out' } }),
  registry('uk', { signed: {} }),
  registry('co.uk', { signed: { nsec3: 'opt-out' } }),
  registry('jp', { signed: {} }),
  registry('au'),
  registry('com.au'),
  registry('us'),
  registry('br'),
  registry('com.br', { signed: {} }),
  registry('xn--p1ai', { signed: {} }),
  // Registries with faults and peculiarities.
  registry('slow', {
    ns: {
      'a.nic.slow.': [relay({ upstream: TLD_A, delayMs: 250 }).address],
      'b.nic.slow.': [relay({ upstream: TLD_B, delayMs: 250 }).address],
    },
  }),
  registry('moving', { ns: { 'a.nic.moving.': [switchedRegistry.address] } }),
]
