import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { domainToASCII } from 'node:url'
import { startAuthoritative } from './authoritative.ts'
import { intercept, openNetwork, wallOff } from './network.ts'
import { question, type Running } from './processes.ts'
import { check, type Run } from './program.ts'
import { REGISTRIES } from './registries.ts'
import { startRelays } from './relay.ts'
import { type Resolver, ResolverMaker } from './resolvers.ts'
import { EXPECTED, type Setup } from './setup.ts'

/** A DNS with a root of its own, and the program that is asked about it. */
export class Laboratory {
  private readonly maker: ResolverMaker
  private readonly servers: readonly Running[]
  private readonly folder: string

  private constructor(maker: ResolverMaker, servers: readonly Running[], folder: string) {
    this.maker = maker
    this.servers = servers
    this.folder = folder
  }

  static async open(setups: readonly Setup[]): Promise<Laboratory> {
    const folder = mkdtempSync(join(tmpdir(), 'mailclaim-dns-lab-'))
    openNetwork()
    await startRelays()
    const zones = [...REGISTRIES, ...setups.flatMap((setup) => setup.zones)]
    const { anchor, servers } = await startAuthoritative(zones, folder)
    return new Laboratory(new ResolverMaker(folder, anchor), servers, folder)
  }

  /**
   * Checks one set-up with resolvers that know nothing yet. `resolves` tells whether its first resolver has the record
   * in the end: what every client of the world sees.
   */
  async examine(setup: Setup): Promise<Run & { resolves: boolean }> {
    const resolvers: Resolver[] = []
    const undo: (() => void)[] = []
    const launch = async (kind: Parameters<ResolverMaker['start']>[0]) => {
      const resolver = await this.maker.start(kind, setup.stubs === undefined ? {} : { stubs: setup.stubs })
      resolvers.push(resolver)
      return resolver.address
    }
    try {
      const addresses: string[] = []
      for (const wanted of setup.resolvers ?? ['unbound'])
        addresses.push(typeof wanted === 'string' ? await launch(wanted) : wanted.at)
      const [first = ''] = addresses
      await setup.before?.(first)
      if (setup.intercepted) undo.push(intercept(first))
      if (setup.firewalled) undo.push(wallOff(first))
      if (setup.router !== undefined) {
        setup.router.behavior = { ...setup.router.behavior, upstream: first }
        addresses[0] = setup.router.address
      }
      const value = setup.value ?? EXPECTED
      const run = await check({ name: setup.name, value, resolvers: addresses })
      return { ...run, resolves: await resolves(addresses[0] ?? '', setup.name, value) }
    } finally {
      for (const step of undo) step()
      await Promise.all(resolvers.map((resolver) => resolver.stop()))
    }
  }

  async close(): Promise<void> {
    await Promise.all(this.servers.map((server) => server.stop()))
    rmSync(this.folder, { recursive: true, force: true })
  }
}

async function resolves(resolver: string, name: string, value: string): Promise<boolean> {
  const answer = await question(resolver, domainToASCII(name), 'TXT', 4000)
  const isCut = answer?.flag_tc === true
  const texts = (answer?.answers ?? []).flatMap((record) =>
    record.type === 'TXT' ? [String(record.data)] : [],
  )
  return isCut || texts.some((text) => text.replaceAll(',', '') === value)
}

/** Whether a set-up changes the network for every check that runs at the same time. */
export const isAlone = (setup: Setup) => (setup.intercepted ?? setup.firewalled) === true

/** Does a job for every item, a few at a time. */
export async function forAll<T>(
  items: readonly T[],
  atOnce: number,
  job: (item: T) => Promise<void>,
): Promise<void> {
  const waiting = [...items]
  const worker = async () => {
    for (let item = waiting.shift(); item !== undefined; item = waiting.shift()) await job(item)
  }
  await Promise.all(Array.from({ length: atOnce }, worker))
}
