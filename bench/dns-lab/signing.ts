import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { run } from './network.ts'
import type { Signing, Zone } from './zone.ts'

/** Signs zone files with BIND's tools, with one key for each zone. */
export class Signer {
  private readonly directory: string
  private readonly keys = new Map<string, string>()

  constructor(directory: string) {
    this.directory = directory
  }

  /** The text of the signed zone. */
  sign(zone: Zone, text: string): string {
    const keys = this.keyDirectory(zone)
    const input = join(keys, 'zone')
    const output = join(keys, 'zone.signed')
    writeFileSync(input, text)
    const { nsec3, expired } = zone.signed as Signing
    run('dnssec-signzone', [
      ...['-S', '-z', '-K', keys, '-d', keys, '-o', zone.apex, '-f', output],
      ...(nsec3 === undefined ? [] : ['-3', '-', '-H', '0']),
      ...(nsec3 === 'opt-out' ? ['-A'] : []),
      ...(expired ? ['-P', '-s', 'now-5184000', '-e', 'now-86400'] : []),
      input,
    ])
    return readFileSync(output, 'utf8')
  }

  /** The DS lines for the parent. */
  ds(zone: Zone): string[] {
    const bogus = `${zone.apex}. 3600 DS 12345 13 2 ${'AB'.repeat(32)}`
    if (zone.strayDs) return [bogus]
    if (zone.signed === undefined || zone.signed.ds === 'none') return []
    if (zone.signed.ds === 'wrong') return [bogus]
    return [this.anchor(zone)]
  }

  /** The DS record of a zone's key. */
  anchor(zone: Zone): string {
    const keys = this.keyDirectory(zone)
    const file = readdirSync(keys).find((name) => name.endsWith('.key')) ?? ''
    return run('dnssec-dsfromkey', ['-2', join(keys, file)]).trim()
  }

  private keyDirectory(zone: Zone): string {
    const known = this.keys.get(zone.apex)
    if (known !== undefined) return known
    const keys = join(this.directory, `keys-${this.keys.size}`)
    mkdirSync(keys)
    const algorithm = zone.signed?.algorithm ?? 'ECDSAP256SHA256'
    const bits = algorithm === 'RSASHA256' ? ['-b', '2048'] : []
    run('dnssec-keygen', ['-q', '-K', keys, '-a', algorithm, ...bits, '-f', 'KSK', zone.apex])
    this.keys.set(zone.apex, keys)
    return keys
  }
}
