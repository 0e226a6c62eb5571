import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { needs } from '../requirements.ts'
import { endingOf } from '../session/processes.ts'
import { type Cluster, startCluster } from './cluster.ts'
import { createFleet } from './fleet.ts'

describe.runIf(needs('etcd'))('a fleet that shares one sign-in', () => {
  let cluster: Cluster
  beforeAll(async () => {
    cluster = await startCluster()
  })
  afterAll(() => cluster?.stop())

  it('a machine without any state uses the access token in etcd', async () => {
    const fleet = await createFleet(cluster)
    const { token } = (await fleet.value()).contents
    const ended = await fleet.run(['auth', 'token'])
    expect(ended).toMatchObject({ code: 0, stdout: `${token?.value}\n`, stderr: '' })
    expect(await fleet.harm()).toMatchObject({ refreshes: 0 })
  })

  it('of many machines that find the access token ended, one renews it, and all use the new one', async () => {
    const fleet = await createFleet(cluster)
    for (let round = 1; round <= 3; round++) {
      await fleet.expire()
      const ended = await Promise.all(
        Array.from({ length: 10 }, (_, at) =>
          fleet.run(['auth', 'token', '--json'], at % 2 === 0 ? {} : { home: fleet.machine() }),
        ),
      )
      expect(ended.map(endingOf)).toEqual(Array(10).fill('0'))
      expect(new Set(ended.map(({ stdout }) => stdout)).size).toBe(1)
      expect(await fleet.harm()).toEqual({ refreshes: round, reuse: 0, revoked: 0 })
    }
  })
})
