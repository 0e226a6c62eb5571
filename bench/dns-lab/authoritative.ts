import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { KNOT_6, NSD_6, ROOT, TLD_A, TLD_B } from './network.ts'
import { type Running, start, untilAnswering } from './processes.ts'
import { Signer } from './signing.ts'
import { delegationLines, HOLDERS, type Holder, masterFile, parentOf, type Zone } from './zone.ts'

type Files = readonly (readonly [apex: string, file: string])[]

const addresses = (start: string, count: number) =>
  Array.from({ length: count }, (_, index) => start.replace(/\d+$/, String(index + 1)))

/** Writes and signs all zones, starts their servers and returns the DS record of the root. */
export async function startAuthoritative(
  zones: readonly Zone[],
  folder: string,
): Promise<{ anchor: string; servers: Running[] }> {
  const signer = new Signer(folder)
  const files = writeZones(zones, folder, signer)
  const configs = {
    root: () => nsd('root', ROOT, files.root, folder),
    tldA: () => nsd('tldA', [TLD_A], files.tldA, folder),
    tldB: () => knot('tldB', [TLD_B], files.tldB, folder),
    knot: () => knot('knot', [...addresses(HOLDERS.knot, 9), KNOT_6], files.knot, folder),
    nsd: () => nsd('nsd', [...addresses(HOLDERS.nsd, 9), NSD_6], files.nsd, folder),
    bind: () => bind(files.bind, folder),
    internal: () => nsd('internal', [HOLDERS.internal], files.internal, folder),
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
  folder: string,
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
      const plain = masterFile(zone, holder, delegations)
      // Signed once for all holders with the same data: the copies of one zone have the same signatures.
      const text = zone.signed === undefined ? plain : (made.get(plain) ?? signer.sign(zone, plain))
      made.set(plain, text)
      const file = join(folder, `${index}.${holder}.zone`)
      writeFileSync(file, text)
      files[holder].push([zone.apex, file])
    }
  }
  return files
}

function nsd(id: string, listen: readonly string[], files: Files, folder: string): Running {
  const config = join(folder, `nsd-${id}.conf`)
  writeFileSync(
    config,
    [
      'server:',
      ...listen.map((address) => `  ip-address: ${address}`),
      '  username: ""',
      '  database: ""',
      `  zonesdir: "${folder}"`,
      `  pidfile: "${folder}/nsd-${id}.pid"`,
      `  xfrdfile: "${folder}/nsd-${id}.xfrd"`,
      `  zonelistfile: "${folder}/nsd-${id}.list"`,
      `  xfrdir: "${folder}"`,
      '  logfile: "/dev/stderr"',
      '  server-count: 1',
      '  rrl-ratelimit: 0',
      'remote-control:',
      '  control-enable: no',
      ...files.flatMap(([apex, file]) => ['zone:', `  name: "${apex}"`, `  zonefile: "${file}"`]),
      '',
    ].join('\n'),
  )
  return start('nsd', ['-d', '-c', config])
}

function knot(id: string, listen: readonly string[], files: Files, folder: string): Running {
  const own = join(folder, `knot-${id}`)
  mkdirSync(own)
  const config = join(folder, `knot-${id}.conf`)
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
  return start('knotd', ['-c', config])
}

function bind(files: Files, folder: string): Running {
  const config = join(folder, 'bind.conf')
  const listen = addresses(HOLDERS.bind, 4).join('; ')
  writeFileSync(
    config,
    [
      'controls { };',
      'options {',
      `  directory "${folder}";`,
      `  pid-file "${folder}/bind.pid";`,
      `  session-keyfile "${folder}/bind.session";`,
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
  return start('named', ['-g', '-n', '1', '-c', config])
}
