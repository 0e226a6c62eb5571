import { existsSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Cluster, startCluster } from '../../test/etcd/cluster.ts'
import { createFleet } from '../../test/etcd/fleet.ts'
import { killedMachines, manyMachines, TROUBLES, type Trouble } from '../../test/etcd/scenarios.ts'
import { needs } from '../../test/requirements.ts'
import { seed } from './options.ts'

const print = (counts: object) => process.stdout.write(`${JSON.stringify(counts)}\n`)
print({ seed })

const NO_HARM = { reuse: 0, revoked: 0 }
/** Executables of other releases of Node, separated by colons. */
const nodes = (process.env['MAILCLAIM_CHAOS_NODES'] ?? '').split(':').filter((path) => existsSync(path))

describe.runIf(needs('etcd'))('a fleet', () => {
  let cluster: Cluster
  beforeAll(async () => {
    cluster = await startCluster()
  })
  afterAll(() => cluster?.stop())

  it('40 machines at once, 30 rounds', async () => {
    const counts = await manyMachines(await createFleet(cluster), { processes: 40, rounds: 30 })
    print({ scenario: 'many at once', ...counts })
    expect(counts).toMatchObject({ refreshes: 30, exits: { 0: 1200 }, ...NO_HARM })
  })

  it.runIf(nodes.length > 0)('40 machines with several releases of Node, 30 rounds', async () => {
    const counts = await manyMachines(await createFleet(cluster), {
      processes: 40,
      rounds: 30,
      nodes: [process.execPath, ...nodes],
    })
    print({ scenario: 'several releases of Node', ...counts })
    expect(counts).toMatchObject({ refreshes: 30, exits: { 0: 1200 }, ...NO_HARM })
  })

  it.each(Object.entries(TROUBLES) as [string, Trouble][])(
    '40 machines at once, 5 rounds, while %s',
    async (scenario, trouble) => {
      const counts = await manyMachines(await createFleet(cluster), { processes: 40, rounds: 5, trouble })
      print({ scenario, ...counts })
      expect(counts).toMatchObject({ refreshes: 5, ...NO_HARM })
    },
  )

  it('100 kills of the machine that renews, at random moments', async () => {
    const counts = await killedMachines(await createFleet(cluster), { kills: 100, seed })
    print({ scenario: 'kills', ...counts })
    expect(counts).toMatchObject({ kills: 100, ...NO_HARM })
  })
})
