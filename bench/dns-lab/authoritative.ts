import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type ServerProcess, startProcess } from '../../test/dns/servers/processes.ts'
import { KNOT_6, NSD_6, ROOT, TLD_A, TLD_B } from './network.ts'
import { untilAnswering } from './processes.ts'
import { Signer } from './signing.ts'
import { delegationLines, HOLDERS, type Holder, parentOf, type Zone, zoneFile } from './zone.ts'

type Files = readonly (readonly [apex: string, file: string])[]

const addresses = (start: string, count: number) =>
  Array.from({ length: count }, (_, index) => start.replace(/\d+$/, String(index + 1)))

/** Writes and signs all zones, starts their servers, and returns the DS record of the root. */
export async function startAuthoritative(
  zones: readonly Zone[],
  directory: string,
): Promise<{ anchor: string; servers: ServerProcess[] }> {
  const signer = new Signer(directory)
  const files = writeZones(zones, directory, signer)
  const configs = {
    root: () => nsd('root', ROOT, files.root, directory),
    tldA: () => nsd('tldA', [TLD_A], files.tldA, directory),
    tldB: () => knot('tldB', [TLD_B], files.tldB, directory),
    knot: () => knot('knot', [...addresses(HOLDERS.knot, 9), KNOT_6], files.knot, directory),
    nsd: () => nsd('nsd', [...addresses(HOLDERS.nsd, 9), NSD_6], files.nsd, directory),
    bind: () => bind(files.bind, directory),
    internal: () => nsd('internal', [HOLDERS.internal], files.internal, directory),
  }
  const servers = await Promise.all(
    (Object.keys(configs) as Holder[]).map(async (holder) => {
      const server = configs[holder]()
      await untilAnswering(HOLDERS[holder], server)
      return server
    }),
  )
  const root = zones.find((zone) => zone.apex === '.')
  if (root === undefined) throw new Error('there is no root zone')
  return { anchor: signer.anchor(root), servers }
}

function writeZones(
  zones: readonly Zone[],
  directory: string,
  signer: Signer,
): Record<Holder, [string, string][]> {
  const files = Object.fromEntries(Object.keys(HOLDERS).map((holder) => [holder, []])) as unknown as Record<
    Holder,
    [string, string][]
  >
  const children = new Map<string, Zone[]>()
  for (const zone of zones) {
    const parent = parentOf(zone, zones)
    if (parent !== undefined) children.set(parent.apex, [...(children.get(parent.apex) ?? []), zone])
  }
  const made = new Map<string, string>()
  for (const [index, zone] of zones.entries()) {
    for (const holder of Object.keys(zone.on) as Holder[]) {
      const delegations = (children.get(zone.apex) ?? []).flatMap((child) => {
        const lines = delegationLines(child, holder)
        return lines.length === 0 ? [] : [...lines, ...signer.ds(child)]
      })
      const plain = zoneFile(zone, holder, delegations)
      // Signed once for all holders with the same data, so copies of a zone have the same signatures.
      const text = zone.signed === undefined ? plain : (made.get(plain) ?? signer.sign(zone, plain))
      made.set(plain, text)
      const file = join(directory, `${index}.${holder}.zone`)
      writeFileSync(file, text)
      files[holder].push([zone.apex, file])
    }
  }
  return files
}

function nsd(id: string, listen: readonly string[], files: Files, directory: string): ServerProcess {
  const config = join(directory, `nsd-${id}.conf`)
  writeFileSync(
    config,
    [
      'server:',
      ...listen.map((address) => `  ip-address: ${address}`),
      '  username: ""',
      '  database: ""',
      `  zonesdir: "${directory}"`,
      `  pidfile: "${directory}/nsd-${id}.pid"`,
      `  xfrdfile: "${directory}/nsd-${id}.xfrd"`,
      `  zonelistfile: "${directory}/nsd-${id}.list"`,
      `  xfrdir: "${directory}"`,
      '  logfile: "/dev/stderr"',
      '  server-count: 1',
      '  rrl-ratelimit: 0',
      'remote-control:',
      '  control-enable: no',
      ...files.flatMap(([apex, file]) => ['zone:', `  name: "${apex}"`, `  zonefile: "${file}"`]),
      '',
    ].join('\n'),
  )
  return startProcess('nsd', ['-d', '-c', config])
}

function knot(id: string, listen: readonly string[], files: Files, directory: string): ServerProcess {
  const own = join(directory, `knot-${id}`)
  mkdirSync(own)
  const config = join(directory, `knot-${id}.conf`)
  writeFileSync(
    config,
    [
      'server:',
      `    listen: [${listen.map((address) => `${address}@53`).join(', ')}]`,
      `    rundir: ${own}`,
      `    pidfile: ${own}/pid`,
      '    udp-workers: 1',
      '    tcp-workers: 1',
      '    background-workers: 1',
      'database:',
      `    storage: ${own}`,
      'log:',
      '  - target: stderr',
      '    any: warning',
      'zone:',
      ...files.flatMap(([apex, file]) => [
        `  - domain: ${apex}`,
        `    file: ${file}`,
        '    zonefile-sync: -1',
      ]),
      '',
    ].join('\n'),
  )
  return startProcess('knotd', ['-c', config])
}

function bind(files: Files, directory: string): ServerProcess {
  const config = join(directory, 'bind.conf')
  const listen = addresses(HOLDERS.bind, 4).join('; ')
  writeFileSync(
    config,
    [
      'controls { };',
      'options {',
      `  directory "${directory}";`,
      `  pid-file "${directory}/bind.pid";`,
      `  session-keyfile "${directory}/bind.session";`,
      `  listen-on { ${listen}; };`,
      '  listen-on-v6 { none; };',
      '  recursion no;',
      '  minimal-responses yes;',
      '  allow-query { any; };',
      '  notify no;',
      '  empty-zones-enable no;',
      '  dnssec-validation no;',
      '};',
      ...files.map(([apex, file]) => `zone "${apex}" { type primary; file "${file}"; check-names ignore; };`),
      '',
    ].join('\n'),
  )
  return startProcess('named', ['-g', '-n', '1', '-c', config])
}
