import { execFileSync } from 'node:child_process'

/** All addresses are in the range of RFC 2544, which has no route outside the laboratory. */
export const ROOT = ['198.18.0.1', '198.18.0.2'] as const
/** Registries: NSD and Knot. */
export const TLD_A = '198.18.1.1'
export const TLD_B = '198.18.1.2'
/** Authoritative servers of domains; each has more addresses, for zones with many name servers. */
export const KNOT = '198.18.2.1'
export const NSD = '198.18.3.1'
export const BIND = '198.18.4.1'
/** An authoritative server inside a company, without a delegation. */
export const INTERNAL = '198.18.5.1'
/** Nothing listens here: the kernel reports a closed port. */
export const CLOSED = '198.18.8.1'
/** An address without a route. */
export const UNROUTED = '203.0.113.7'

export const KNOT_6 = '2001:db8:2::1'
export const NSD_6 = '2001:db8:3::1'
/** An IPv6 address without a route. */
export const UNROUTED_6 = '2001:db8:ffff::1'

/** The user that the program runs as, by which the firewall recognizes its packets. */
export const PROGRAM_USER = 42_42

const PATH = `${process.env['PATH'] ?? ''}:/usr/sbin:/sbin:/usr/local/sbin`
export const SYSTEM_ENV = { ...process.env, PATH }

export function run(command: string, args: readonly string[], input?: string): string {
  return execFileSync(command, [...args], {
    env: SYSTEM_ENV,
    encoding: 'utf8',
    stdio: ['pipe', 'pipe', 'pipe'],
    ...(input === undefined ? {} : { input }),
  })
}

/** Brings up loopback with all addresses in use. */
export function openNetwork(): void {
  run('ip', ['link', 'set', 'lo', 'up'])
  run('ip', ['address', 'add', '198.18.255.1/15', 'dev', 'lo'])
  // BIND only listens on configured interface addresses.
  for (let host = 1; host <= 4; host += 1) run('ip', ['address', 'add', `198.18.4.${host}/32`, 'dev', 'lo'])
  for (const address of [KNOT_6, NSD_6]) run('ip', ['address', 'add', `${address}/128`, 'dev', 'lo'])
  const chains = [
    'chain portal { type nat hook output priority -100; }',
    'chain wall { type filter hook output priority 0; }',
  ]
  run('nft', ['-f', '-'], `table ip lab {\n${chains.join('\n')}\n}\n`)
}

/** Redirects all DNS queries of the program to one address, as captive portals and some providers do. */
export function intercept(to: string): () => void {
  return rules('portal', to, `dnat to ${to}`)
}

/** Drops all DNS queries of the program except those to one address. */
export function wallOff(to: string): () => void {
  return rules('wall', to, 'drop')
}

function rules(chain: 'portal' | 'wall', to: string, action: string): () => void {
  const rule = (transport: string) =>
    `add rule ip lab ${chain} meta skuid ${PROGRAM_USER} ip daddr != ${to} ${transport} dport 53 ${action}\n`
  run('nft', ['-f', '-'], rule('udp') + rule('tcp'))
  return () => void run('nft', ['flush', 'chain', 'ip', 'lab', chain])
}
