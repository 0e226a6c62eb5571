import { execFile } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir, userInfo } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { DnsAddress } from '../../../src/context.ts'
import { type CheckRequest, checkDns } from '../../../src/dns/old-check.ts'
import type { CheckReportJson } from '../../../src/dns/diagnosis/report.ts'
import { reportJson } from '../../../src/dns/diagnosis/report-json.ts'
import type { DnsEffects } from '../../../src/dns/wire/effects.ts'
import { realEffects } from '../real-effects.ts'
import { knotBasics } from './knot-config.ts'
import {
  freePort,
  type ServerProcess,
  SYSTEM_ENVIRONMENT,
  startProcess,
  untilAnswering,
} from './processes.ts'
import {
  addCname,
  clearAuthority,
  dropDo,
  dropEdns,
  failEdns,
  noiseOf,
  type Relay,
  refuseEdns,
  refuseTxt,
  startRelay,
  stripTxt,
} from './relay.ts'
import { delegation, HOSTS, type Holder, type TestZone, zoneFile } from './zone-file.ts'

const PARENT = '127.0.53.1'
const UNBOUND = '127.0.53.53'
/** Private DNS: knows the test zones, but no registry and no root. */
const LONELY = '127.0.53.55'

/** A small DNS on loopback: a registry for `test.`, authoritative servers, and recursive resolvers. */
export interface ServerNetwork {
  readonly port: number
  readonly unbound: DnsAddress
  readonly bind: DnsAddress
  /** An Unbound that knows the test zones, but whose registry never answers, as behind a firewall. */
  readonly lonely: DnsAddress
  /** @param effects by default, those of this machine. */
  check(
    name: string,
    expected: string | null,
    options?: Partial<CheckRequest>,
    effects?: DnsEffects,
  ): Promise<CheckReportJson>
  /** Changes a zone of `a` while it runs: knotc's `zone-set`, `zone-unset`. */
  change(domain: string, ...commands: readonly (readonly string[])[]): Promise<void>
  /** The queries from clients to Unbound: `name. TYPE`. */
  unboundQueries(of?: 'unbound' | 'lonely'): string[]
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
  const port = await freePort([PARENT, UNBOUND, LONELY, ...Object.values(HOSTS)])
  const run = (command: string, args: readonly string[]): ServerProcess => {
    const server = startProcess(command, args)
    stops.push(() => server.stop())
    return server
  }
  const writeConfig = (name: string, text: string): string => {
    const path = join(directory, name)
    writeFileSync(path, text)
    return path
  }
  const heldBy = (holder: Holder) => zones.filter((zone) => zone.on[holder] !== undefined)

  const registry = [
    '$ORIGIN test.',
    '$TTL 3600',
    '@ 3600 SOA ns.registry hostmaster 1 7200 900 86400 900',
    '@ NS ns.registry',
    `ns.registry A ${PARENT}`,
    ...zones.filter((zone) => !zone.undelegated).map(delegation),
    '',
  ].join('\n')
  const parentFile = writeConfig('registry.zone', registry)
  const parent = run('nsd', [
    '-d',
    '-c',
    writeConfig('nsd-p.conf', nsdConfig(directory, 'p', PARENT, port, [['test', parentFile]])),
  ])
  const b = run('nsd', ['-d', '-c', nsdOf('b')])
  const c = run('nsd', ['-d', '-c', nsdOf('c')])
  const knotConfig = writeConfig('knot.conf', knot())
  const a = run('knotd', ['-c', knotConfig])
  function nsdOf(holder: 'b' | 'c'): string {
    const files = heldBy(holder).map(
      (zone) => [zone.domain, writeConfig(`${zone.domain}.${holder}`, zoneFile(zone, holder))] as const,
    )
    return writeConfig(`nsd-${holder}.conf`, nsdConfig(directory, holder, HOSTS[holder], port, files))
  }
  function knot(): string {
    const rundir = join(directory, 'knot')
    mkdirSync(rundir)
    return [
      ...knotBasics(
        [HOSTS.a, HOSTS.d, '::1'].map((address) => `${address}@${port}`),
        rundir,
      ),
      'zone:',
      ...heldBy('a').flatMap((zone) => [
        `  - domain: ${zone.domain}`,
        `    file: ${writeConfig(`${zone.domain}.a`, zoneFile(zone, 'a'))}`,
        '    zonefile-sync: -1',
        ...(zone.signed ? ['    dnssec-signing: on'] : []),
      ]),
      '',
    ].join('\n')
  }
  const firstDomain = (holder: Holder) => heldBy(holder)[0]?.domain ?? 'test'
  await Promise.all([
    untilAnswering(PARENT, port, 'test', parent),
    untilAnswering(HOSTS.a, port, firstDomain('a'), a),
    untilAnswering(HOSTS.b, port, firstDomain('b'), b),
    untilAnswering(HOSTS.c, port, firstDomain('c'), c),
  ])

  const anchors = await Promise.all(
    zones.filter((zone) => zone.signed).map((zone) => signedAnchor(knotConfig, zone.domain)),
  )
  const log = join(directory, 'unbound.log')
  const common = { port, zones, anchors: anchors.flat() }
  const unbound = run('unbound', [
    '-d',
    '-c',
    writeConfig('unbound.conf', unboundConfig({ ...common, address: UNBOUND, log, registry: true })),
  ])
  const lonelyLog = join(directory, 'lonely.log')
  const lonely = run('unbound', [
    '-d',
    '-c',
    writeConfig(
      'lonely.conf',
      unboundConfig({ ...common, address: LONELY, log: lonelyLog, registry: false }),
    ),
  ])
  const bindZones = heldBy('bind').map(
    (zone) => [zone.domain, writeConfig(`${zone.domain}.bind`, zoneFile(zone, 'bind'))] as const,
  )
  const named = run('named', [
    '-g',
    '-c',
    writeConfig('named.conf', namedConfig(directory, port, zones, bindZones)),
  ])
  const relays: Relay[] = await Promise.all([
    startRelay({ address: HOSTS.udponly, port, upstream: HOSTS.a }),
    startRelay({ address: HOSTS.slow, port, upstream: HOSTS.a, delayMs: 3000 }),
    startRelay({ address: HOSTS.noedns, port, upstream: HOSTS.a, reply: refuseEdns }),
    startRelay({ address: HOSTS.noisy, port, upstream: HOSTS.a, noise: noiseOf }),
    startRelay({ address: HOSTS.openResolver, port, upstream: UNBOUND, rewrite: withRecursion }),
    startRelay({ address: HOSTS.dropsEdns, port, upstream: HOSTS.a, reply: dropEdns }),
    startRelay({ address: HOSTS.refusesTxt, port, upstream: HOSTS.a, reply: refuseTxt }),
    startRelay({ address: HOSTS.recursor, port, upstream: UNBOUND }),
    startRelay({ address: HOSTS.stripper, port, upstream: UNBOUND, answer: stripTxt }),
    startRelay({ address: HOSTS.dropsDo, port, upstream: HOSTS.a, reply: dropDo }),
    startRelay({ address: HOSTS.addsCname, port, upstream: HOSTS.a, answer: addCname(['TXT']) }),
    startRelay({ address: HOSTS.hasCname, port, upstream: HOSTS.a, answer: addCname(['A', 'CNAME']) }),
    startRelay({ address: HOSTS.failsEdns, port, upstream: HOSTS.a, reply: failEdns('SERVFAIL') }),
    startRelay({ address: HOSTS.refusedEdns, port, upstream: HOSTS.a, reply: failEdns('REFUSED') }),
    startRelay({ address: HOSTS.badversEdns, port, upstream: HOSTS.a, reply: failEdns('BADVERS') }),
    startRelay({ address: HOSTS.unauthoritative, port, upstream: HOSTS.a, answer: clearAuthority }),
    startRelay({ address: HOSTS.silent, port, silentTcp: true }),
    startRelay({ address: HOSTS.silent2, port, silentTcp: true }),
  ])
  stops.push(async () => {
    await Promise.all(relays.map((relay) => relay.close()))
  })
  await Promise.all([
    untilAnswering(UNBOUND, port, 'test', unbound),
    untilAnswering(LONELY, port, firstDomain('a'), lonely),
    untilAnswering(HOSTS.bind, port, 'test', named),
  ])

  const resolver = { address: UNBOUND, port }
  return {
    port,
    unbound: resolver,
    bind: { address: HOSTS.bind, port },
    lonely: { address: LONELY, port },
    check: async (name, expected, options, effects = realEffects()) => {
      const request = {
        name,
        expected,
        resolvers: [resolver],
        authoritativePort: port,
        publicResolvers: false,
      }
      return reportJson(await checkDns({ ...request, ...options }, effects))
    },
    change: async (domain, ...commands) => {
      const knotc = (...args: readonly string[]) => runKnot('knotc', ['-c', knotConfig, ...args])
      await knotc('zone-begin', domain)
      for (const command of commands) await knotc(...command)
      await knotc('zone-commit', domain)
    },
    unboundQueries: (of = 'unbound') =>
      [
        ...readFileSync(of === 'unbound' ? log : lonelyLog, 'utf8').matchAll(
          /info: 127\.\S+ (\S+) ([A-Z]+) IN/g,
        ),
      ].map(([, name = '', type = '']) => `${name} ${type}`),
    stop,
  }
}

const execute = promisify(execFile)
async function runKnot(command: string, args: readonly string[]): Promise<string> {
  const { stdout } = await execute(command, [...args], { env: SYSTEM_ENVIRONMENT })
  return stdout
}

/** The DS records of a zone that Knot signs, as trust anchors. */
async function signedAnchor(config: string, domain: string): Promise<string[]> {
  const stdout = await runKnot('keymgr', ['-c', config, `${domain}.`, 'ds'])
  return stdout.split('\n').filter((line) => line.includes(' DS '))
}

function withRecursion(query: Buffer): Buffer {
  const copy = Buffer.from(query)
  copy.writeUInt16BE(copy.readUInt16BE(2) | 0x0100, 2)
  return copy
}

function nsdConfig(
  directory: string,
  id: string,
  address: string,
  port: number,
  zones: readonly (readonly [string, string])[],
): string {
  return [
    'server:',
    `  ip-address: ${address}@${port}`,
    `  username: "${userInfo().username}"`,
    '  database: ""',
    `  zonesdir: "${directory}"`,
    `  pidfile: "${directory}/nsd-${id}.pid"`,
    `  xfrdfile: "${directory}/nsd-${id}.xfrd"`,
    `  zonelistfile: "${directory}/nsd-${id}.list"`,
    `  logfile: "/dev/stderr"`,
    '  server-count: 1',
    '  rrl-ratelimit: 0',
    'remote-control:',
    '  control-enable: no',
    ...zones.flatMap(([domain, file]) => ['zone:', `  name: "${domain}"`, `  zonefile: "${file}"`]),
    '',
  ].join('\n')
}

/** Where resolvers find a zone: delegations have no ports, so each zone is configured. */
function resolveAddress(zone: TestZone): string {
  const holder = (['a', 'b', 'c', 'bind'] as const).find((candidate) => zone.on[candidate] !== undefined)
  return HOSTS[zone.resolveAt ?? holder ?? 'dead']
}

interface UnboundOptions {
  readonly address: string
  readonly port: number
  readonly log: string
  readonly zones: readonly TestZone[]
  readonly anchors: readonly string[]
  readonly registry: boolean
}

function unboundConfig({ address: own, port, log, zones, anchors, registry }: UnboundOptions): string {
  const stub = (domain: string, address: string) => [
    'stub-zone:',
    `  name: "${domain}"`,
    `  stub-addr: ${address}@${port}`,
  ]
  return [
    'server:',
    `  interface: ${own}@${port}`,
    '  chroot: ""',
    '  username: ""',
    '  pidfile: ""',
    '  use-syslog: no',
    `  logfile: "${log}"`,
    '  log-queries: yes',
    '  verbosity: 1',
    '  num-threads: 1',
    '  do-ip6: no',
    '  do-not-query-localhost: no',
    '  access-control: 127.0.0.0/8 allow',
    '  module-config: "validator iterator"',
    '  local-zone: "test." nodefault',
    '  val-log-level: 1',
    // A well-known provider's name servers, at test servers.
    `  local-data: "ada.ns.cloudflare.com. A ${HOSTS.a}"`,
    `  local-data: "bob.ns.cloudflare.com. A ${HOSTS.b}"`,
    // Name servers that are others inside, and those that a filter blocks.
    `  local-data: "ns-a.insidens.test. A ${HOSTS.b}"`,
    `  local-data: "ns-d.insidens.test. A ${HOSTS.c}"`,
    '  local-zone: "ns-a.blockedns.test." always_null',
    '  local-zone: "ns-b.blockedns.test." always_null',
    `  trust-anchor: "bogus.test. DS 12345 13 2 ${'ab'.repeat(32)}"`,
    ...anchors.map((anchor) => `  trust-anchor: "${anchor}"`),
    'remote-control:',
    '  control-enable: no',
    // Without a registry: silence, as from a root behind a firewall.
    ...stub('test', registry ? PARENT : HOSTS.silent),
    ...zones.flatMap((zone) => stub(zone.domain, resolveAddress(zone))),
    '',
  ].join('\n')
}

function namedConfig(
  directory: string,
  port: number,
  zones: readonly TestZone[],
  own: readonly (readonly [domain: string, file: string])[],
): string {
  const forward = (domain: string, address: string) =>
    `zone "${domain}" { type forward; forward only; forwarders { ${address} port ${port}; }; };`
  return [
    'controls { };',
    'options {',
    `  directory "${directory}";`,
    `  pid-file "${directory}/named.pid";`,
    `  session-keyfile "${directory}/named.session";`,
    `  listen-on port ${port} { ${HOSTS.bind}; };`,
    '  listen-on-v6 { none; };',
    '  recursion yes;',
    '  allow-query { any; };',
    '  allow-recursion { any; };',
    '  dnssec-validation no;',
    '  empty-zones-enable no;',
    '};',
    forward('test', PARENT),
    ...zones
      .filter((zone) => zone.on.bind === undefined)
      .map((zone) => forward(zone.domain, resolveAddress(zone))),
    ...own.map(([domain, file]) => `zone "${domain}" { type primary; file "${file}"; };`),
    '',
  ].join('\n')
}
