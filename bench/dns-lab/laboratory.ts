import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { domainToASCII } from 'node:url'
import type { ServerProcess } from '../../test/dns/servers/processes.ts'
import { startAuthoritative } from './authoritative.ts'
import { intercept, openNetwork, wallOff } from './network.ts'
import { question } from './processes.ts'
import { check, type Run } from './program.ts'
import { REGISTRIES } from './registries.ts'
import { startRelays } from './relay.ts'
import { type Resolver, ResolverMaker } from './resolvers.ts'
import { EXPECTED, type Setup } from './setup.ts'

/** A DNS with its own root, and the program under test. */
export class Laboratory {
  private readonly maker: ResolverMaker
  private readonly servers: readonly ServerProcess[]
  private readonly directory: string

  private constructor(maker: ResolverMaker, servers: readonly ServerProcess[], directory: string) {
    this.maker = maker
    this.servers = servers
    this.directory = directory
  }

  static async open(setups: readonly Setup[]): Promise<Laboratory> {
    const directory = mkdtempSync(join(tmpdir(), 'mailclaim-dns-lab-'))
    openNetwork()
    await startRelays()
    const zones = [...REGISTRIES, ...setups.flatMap((setup) => setup.zones)]
    const { anchor, servers } = await startAuthoritative(zones, directory)
    return new Laboratory(new ResolverMaker(directory, anchor), servers, directory)
  }

  /**
   * Checks one setup with cold resolver caches. `resolves` says whether its first resolver has the record in the end, as
   * other clients see it.
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
    rmSync(this.directory, { recursive: true, force: true })
  }
}

async function resolves(resolver: string, name: string, value: string): Promise<boolean> {
  const answer = await question(resolver, domainToASCII(name), 'TXT', 4000)
  const isTruncated = answer?.flag_tc === true
  const texts = (answer?.answers ?? []).flatMap((record) =>
    record.type === 'TXT' ? [String(record.data)] : [],
  )
  return isTruncated || texts.some((text) => text.replaceAll(',', '') === value)
}

/** Whether a setup changes the network for all checks that run at the same time. */
export const isAlone = (setup: Setup) => (setup.intercepted ?? setup.firewalled) === true

/** Runs a job for every item, a few at a time. */
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
