import { randomBytes } from 'node:crypto'
import { Resolver } from 'node:dns/promises'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { knotBasics } from './knot-config.ts'
import { freePort, startProcess, untilAnswering } from './processes.ts'

/** A Knot server on 127.0.0.1 that accepts dynamic updates (RFC 2136) signed with a TSIG key (RFC 8945). */
export interface UpdatableServer {
  readonly port: number
  /** Path of the TSIG key, in the format of `nsupdate -k`. */
  readonly keyFile: string
  /** Returns the TXT values at a name, sorted. */
  txt(name: string): Promise<string[]>
  stop(): Promise<void>
}

const ADDRESS = '127.0.0.1'
const KEY = 'publisher'

/** Starts Knot with these zones: for each domain, the lines of its zone file, such as `@ TXT "v=spf1 -all"`. */
export async function startUpdatableServer(
  zones: Readonly<Record<string, readonly string[]>>,
): Promise<UpdatableServer> {
  const directory = mkdtempSync(join(tmpdir(), 'mailclaim-knot-'))
  const port = await freePort([ADDRESS])
  const secret = randomBytes(32).toString('base64')
  const write = (name: string, lines: readonly string[]): string => {
    const path = join(directory, name)
    writeFileSync(path, `${lines.join('\n')}\n`, { mode: 0o600 })
    return path
  }
  const keyFile = write('publisher.key', [
    `key "${KEY}" {`,
    '  algorithm hmac-sha256;',
    `  secret "${secret}";`,
    '};',
  ])
  const rundir = join(directory, 'run')
  mkdirSync(rundir)
  const config = write('knot.conf', [
    ...knotBasics([`${ADDRESS}@${port}`], rundir),
    'key:',
    `  - id: ${KEY}`,
    '    algorithm: hmac-sha256',
    `    secret: ${secret}`,
    'acl:',
    '  - id: update',
    `    key: ${KEY}`,
    '    action: update',
    'zone:',
    ...Object.entries(zones).flatMap(([domain, records]) => [
      `  - domain: ${domain}`,
      `    file: ${write(`${domain}.zone`, [
        `$ORIGIN ${domain}.`,
        '$TTL 60',
        '@ SOA ns1 hostmaster 1 7200 900 86400 60',
        '@ NS ns1',
        `ns1 A ${ADDRESS}`,
        ...records,
      ])}`,
      '    zonefile-sync: -1',
      '    acl: update',
    ]),
  ])
  const server = startProcess('knotd', ['-c', config])
  const stop = async () => {
    await server.stop()
    rmSync(directory, { recursive: true, force: true })
  }
  try {
    await untilAnswering(ADDRESS, port, Object.keys(zones)[0] ?? '', server)
  } catch (error) {
    await stop()
    throw error
  }
  return {
    port,
    keyFile,
    async txt(name) {
      const resolver = new Resolver()
      resolver.setServers([`${ADDRESS}:${port}`])
      return (await resolver.resolveTxt(name)).map((strings) => strings.join('')).sort()
    },
    stop,
  }
}
