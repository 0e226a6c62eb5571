import { execFile } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { DnsServerAddress } from '../../../src/context.ts'
import { checkDns, type DnsCheckRequest } from '../../../src/dns/check.ts'
import { type CheckReportJson, toReportJson } from '../../../src/dns/report.ts'
import { realEffects } from '../real-effects.ts'
import { knotBasics } from './knot-config.ts'
import {
  freePort,
  type ServerProcess,
  SYSTEM_ENVIRONMENT,
  startProcess,
  untilAnswering,
} from './processes.ts'
import { delegation, HOSTS, type Holder, type TestZone, zoneFile } from './zone-file.ts'

const PARENT = '127.0.53.1'
const UNBOUND = '127.0.53.53'

/** A small DNS on loopback: a registry for `test.`, two authoritative servers, and a recursive resolver. */
export interface ServerNetwork {
  readonly port: number
  readonly unbound: DnsServerAddress
  check(name: string, expected: string | null, options?: Partial<DnsCheckRequest>): Promise<CheckReportJson>
  /** Changes a zone of the running server `a` in one transaction of knotc, by commands such as `zone-set`. */
  change(domain: string, ...commands: readonly (readonly string[])[]): Promise<void>
  stop(): Promise<void>
}

export async function startServerNetwork(zones: readonly TestZone[]): Promise<ServerNetwork> {
  const directory = mkdtempSync(join(tmpdir(), 'mailclaim-dns-'))
  const stops: (() => Promise<void>)[] = [async () => rmSync(directory, { recursive: true, force: true })]
  const stop = async () => {
    while (stops.length > 0) await stops.pop()?.()
  }
  try {
    return await build(directory, zones, stops, stop)
  } catch (error) {
    await stop()
    throw error
  }
}

async function build(
  directory: string,
  zones: readonly TestZone[],
  stops: (() => Promise<void>)[],
  stop: () => Promise<void>,
): Promise<ServerNetwork> {
  const port = await freePort([PARENT, UNBOUND, ...Object.values(HOSTS)])
  const run = (command: string, args: readonly string[]): ServerProcess => {
    const server = startProcess(command, args)
    stops.push(() => server.stop())
    return server
  }
  const writeFile = (name: string, text: string): string => {
    const path = join(directory, name)
    writeFileSync(path, text)
    return path
  }
  const configOf = (id: string) => join(directory, `knot-${id}.conf`)
  const startKnot = async (
    id: string,
    addresses: readonly [string, ...string[]],
    served: readonly {
      readonly domain: string
      readonly text: string
      readonly signed?: boolean | undefined
    }[],
  ) => {
    const rundir = join(directory, id)
    mkdirSync(rundir)
    const lines = served.flatMap(({ domain, text, signed }) => [
      `  - domain: ${domain}`,
      `    file: ${writeFile(`${domain}.${id}`, text)}`,
      '    zonefile-sync: -1',
      ...(signed ? ['    dnssec-signing: on'] : []),
    ])
    const listen = addresses.map((address) => `${address}@${port}`)
    writeFileSync(configOf(id), [...knotBasics(listen, rundir), 'zone:', ...lines, ''].join('\n'))
    await untilAnswering(addresses[0], port, served[0]?.domain ?? '', run('knotd', ['-c', configOf(id)]))
  }
  const heldBy = (holder: Holder) =>
    zones
      .filter((zone) => zone.on[holder] !== undefined)
      .map((zone) => ({ domain: zone.domain, text: zoneFile(zone, holder), signed: zone.signed }))
  const registry = [
    '$ORIGIN test.',
    '$TTL 3600',
    '@ 3600 SOA ns.registry hostmaster 1 7200 900 86400 900',
    '@ NS ns.registry',
    `ns.registry A ${PARENT}`,
    ...zones.filter((zone) => !zone.undelegated).map(delegation),
    '',
  ].join('\n')
  await Promise.all([
    startKnot('registry', [PARENT], [{ domain: 'test', text: registry }]),
    startKnot('a', [HOSTS.a, '::1'], heldBy('a')),
    startKnot('b', [HOSTS.b], heldBy('b')),
  ])

  const anchors = await Promise.all(
    zones.filter((zone) => zone.signed).map((zone) => signedAnchor(configOf('a'), zone.domain)),
  )
  const config = unboundConfig(port, zones, anchors.flat())
  const resolver = run('unbound', ['-d', '-c', writeFile('unbound.conf', config)])
  await untilAnswering(UNBOUND, port, zones[0]?.domain ?? '', resolver)

  const unbound = { address: UNBOUND, port }
  return {
    port,
    unbound,
    check: async (name, expected, options) => {
      const request = {
        name,
        expected,
        resolvers: [unbound],
        authoritativePort: port,
        publicResolvers: false,
      }
      return toReportJson(await checkDns({ ...request, ...options }, realEffects()))
    },
    change: async (domain, ...commands) => {
      const knotc = (...args: readonly string[]) => runKnot('knotc', ['-c', configOf('a'), ...args])
      await knotc('zone-begin', domain)
      for (const command of commands) await knotc(...command)
      await knotc('zone-commit', domain)
    },
    stop,
  }
}

const execute = promisify(execFile)
async function runKnot(command: string, args: readonly string[]): Promise<string> {
  const { stdout } = await execute(command, [...args], { env: SYSTEM_ENVIRONMENT })
  return stdout
}

/** Reads the DS records of a zone that Knot signs, as trust anchors. */
async function signedAnchor(config: string, domain: string): Promise<string[]> {
  const stdout = await runKnot('keymgr', ['-c', config, `${domain}.`, 'ds'])
  return stdout.split('\n').filter((line) => line.includes(' DS '))
}

/** Creates the configuration of Unbound, with a stub for each zone, because delegations have no ports. */
function unboundConfig(port: number, zones: readonly TestZone[], anchors: readonly string[]): string {
  const stub = (domain: string, address: string) => [
    'stub-zone:',
    `  name: "${domain}"`,
    `  stub-addr: ${address}@${port}`,
  ]
  const addressOf = ({ on }: TestZone) => HOSTS[on.a === undefined ? 'b' : 'a']
  return [
    'server:',
    `  interface: ${UNBOUND}@${port}`,
    '  chroot: ""',
    '  username: ""',
    '  pidfile: ""',
    '  use-syslog: no',
    '  verbosity: 1',
    '  num-threads: 1',
    '  do-ip6: no',
    '  do-not-query-localhost: no',
    '  access-control: 127.0.0.0/8 allow',
    '  module-config: "validator iterator"',
    '  local-zone: "test." nodefault',
    ...anchors.map((anchor) => `  trust-anchor: "${anchor}"`),
    'remote-control:',
    '  control-enable: no',
    ...stub('test', PARENT),
    ...zones.flatMap((zone) => stub(zone.domain, addressOf(zone))),
    '',
  ].join('\n')
}
