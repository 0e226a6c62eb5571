import { join } from 'node:path'
import { expect, test } from 'vitest'
import { needs } from '../requirements.ts'
import { shareSandbox } from '../stories/built-program.ts'
import { startCluster } from './cluster.ts'

const serve = shareSandbox()

test.runIf(needs('etcd'))(
  'with the etcd cluster of docs/fleet.md, a renewal works after one member is killed, and fails with exit 7 after two are',
  async () => {
    const world = serve()
    const cluster = await startCluster(world.service)
    Object.assign(world.env, cluster.env)
    const on = (machine: number, ...words: string[]) =>
      world.run(words, { env: { MAILCLAIM_STATE_DIR: join(world.home, `machine-${machine}`) } })
    const all = (...words: string[]) =>
      Promise.all(Array.from({ length: 6 }, (_, machine) => on(machine, ...words)))
    const counts = async () => {
      const state = (await world.control('GET', 'state')) as Record<string, number>
      return { reuse: state['reuse_detections'], revoked: state['grants_revoked'] }
    }

    const [login = [], look = []] = cluster.commands
    const signingIn = world.start(login)
    await fetch((await signingIn.seen(/http:\/\/\S+\/oauth\/authorize\?\S+/))[0])
    const signedIn = await signingIn.ended
    expect(signedIn.code, signedIn.stderr).toBe(0)
    const second = await on(1, ...look)
    expect([second.code, second.stdout], second.stderr).toEqual([0, expect.stringContaining('active')])
    for (const ended of await all('auth', 'refresh')) expect(ended.code, ended.stderr).toBe(0)
    expect(await counts()).toEqual({ reuse: 0, revoked: 0 })

    const first = await cluster.leader()
    await cluster.kill(first)
    for (const ended of await all('auth', 'refresh')) expect(ended.code, ended.stderr).toBe(0)

    // Without a majority, a renewal sends nothing, and commands with a valid access token still work.
    const next = await cluster.leader()
    await cluster.kill(next)
    const [refused, ...others] = await Promise.all([
      on(0, 'auth', 'refresh'),
      on(0, 'grants', 'list'),
      on(0, 'auth', 'status'),
    ])
    expect([refused.code, refused.stderr]).toEqual([7, expect.stringContaining("etcd doesn't answer")])
    expect(others.map(({ code }) => code)).toEqual([0, 0])

    for (const member of [first, next]) cluster.start(member)
    await cluster.leader()
    const refreshed = await on(0, 'auth', 'refresh')
    expect(refreshed.code, refreshed.stderr).toBe(0)

    const wrong = { MAILCLAIM_STORE_KEY: Buffer.alloc(32, 6).toString('base64') }
    const statuses = [wrong, { MAILCLAIM_STORE_PASSWORD: 'no' }].map((env) =>
      world.run(['auth', 'status'], { env }),
    )
    expect((await Promise.all(statuses)).map(({ code }) => code)).toEqual([4, 4])

    const signedOut = await on(1, 'logout')
    expect([signedOut.code, signedOut.stderr]).toEqual([0, expect.stringContaining('every machine')])
    const over = await on(2, 'auth', 'refresh')
    expect([over.code, over.stderr]).toEqual([4, expect.stringContaining('is over: signed out on')])
    expect(await counts()).toEqual({ reuse: 0, revoked: 0 })
  },
  120_000,
)
