import { expect } from 'vitest'
import { renew } from '../../src/session/refresh.ts'
import { countEach, endingOf, seeded } from '../session/processes.ts'
import { endOf } from '../session/sandbox-session.ts'
import type { Cluster } from './cluster.ts'
import type { Fleet } from './fleet.ts'

/** What happens to the cluster in a round, and how it passes. */
export type Trouble = (cluster: Cluster) => Promise<() => Promise<void>>

export const TROUBLES = {
  'the leader is killed': async (cluster) => {
    const leader = await cluster.leader()
    await leader.kill()
    return async () => {
      leader.start()
      await cluster.ready()
    }
  },
  'a member is stopped': async (cluster) => {
    const leader = await cluster.leader()
    const member = cluster.members.find((one) => one !== leader)
    member?.signal('SIGSTOP')
    return async () => member?.signal('SIGCONT')
  },
  'the leader is cut off from the others': async (cluster) => {
    const leader = await cluster.leader()
    leader.isolate(true)
    return async () => {
      leader.isolate(false)
      await cluster.ready()
    }
  },
} satisfies Record<string, Trouble>

/**
 * Many machines, each with a state directory of its own or none, find the access token ended at the same moment, round after
 * round: one refreshes, all succeed, or say that etcd can't be reached if something happens to it.
 *
 * @param trouble begins while the machines are at it.
 * @returns what was counted, to be printed.
 */
export async function manyMachines(
  fleet: Fleet,
  options: {
    readonly processes: number
    readonly rounds: number
    readonly nodes?: readonly string[]
    readonly trouble?: Trouble
  },
): Promise<Record<string, unknown>> {
  const { processes, rounds, nodes = [process.execPath], trouble } = options
  const machines = Array.from({ length: processes }, (_, at) =>
    at % 2 === 0 ? {} : { home: fleet.machine() },
  )
  const endings: string[] = []
  let longest = 0
  const started = performance.now()
  for (let round = 1; round <= rounds; round++) {
    await fleet.expire()
    const running = machines.map(async (machine, at) => {
      const node = nodes[at % nodes.length] ?? process.execPath
      const begun = performance.now()
      const ended = await fleet.run(['auth', 'token', '--json'], { ...machine, node })
      longest = Math.max(longest, performance.now() - begun)
      return ended
    })
    // Most of them are starting.
    await new Promise((resolve) => setTimeout(resolve, 200))
    const end = await trouble?.(fleet.cluster)
    const ended = await Promise.all(running)
    await end?.()
    endings.push(...ended.map(endingOf))
    // A busy machine may need longer than a command waits to find that a member is gone.
    const expected = trouble === undefined ? ['0'] : ['0', '7 store_unavailable']
    const failed = ended.filter((one) => !expected.includes(endingOf(one)))
    expect(failed, `round ${round}`).toEqual([])
    const after = await fleet.run(['auth', 'token', '--json'])
    const tokens = [...ended, after].filter(({ code }) => code === 0).map(({ stdout }) => stdout)
    expect(new Set(tokens).size, `tokens in round ${round}`).toBe(1)
    expect(after.code, `after round ${round}`).toBe(0)
  }
  return {
    processes,
    rounds,
    exits: countEach(endings),
    ...(await fleet.harm()),
    longest_ms: Math.round(longest),
    seconds: Math.round((performance.now() - started) / 1000),
  }
}

/**
 * The machine that renews is killed with SIGKILL at a random moment, again and again; the service takes its time, so that every
 * step gets its share. After each, another machine works, or says that the renewal was interrupted, and then somebody signs in
 * again.
 */
export async function killedMachines(
  fleet: Fleet,
  { kills, seed }: { readonly kills: number; readonly seed: number },
): Promise<Record<string, unknown>> {
  const random = seeded(seed)
  const { session } = fleet
  const delays = () => session.fault({ kind: 'delay', before_ms: random() * 60, after_ms: random() * 60 })
  await delays()
  await fleet.expire()
  const begun = performance.now()
  expect(endingOf(await fleet.run(['auth', 'token', '--json']))).toBe('0')
  // From when the program is loaded: before that, nothing can be lost.
  let span = (performance.now() - begun) * 1.1
  const killed: string[] = []
  const found: string[] = []
  const hits = () => killed.filter((ending) => ending === 'SIGKILL').length
  for (let kill = 1; hits() < kills && kill <= kills * 3; kill++) {
    await session.clearFaults()
    await delays()
    await fleet.expire()
    const { refreshes } = await fleet.harm()
    const spawned = performance.now()
    const running = fleet.start(['auth', 'token', '--json'])
    const timer = setTimeout(() => running.child.kill('SIGKILL'), span * (0.25 + 0.75 * random()))
    const ending = endingOf(await running.ended)
    killed.push(ending)
    clearTimeout(timer)
    // A busy machine was slower before.
    if (ending !== 'SIGKILL') span = performance.now() - spawned
    await session.clearFaults()
    const { journal } = (await fleet.value()).contents
    const consumed = (await fleet.harm()).refreshes - refreshes
    if (journal === null) {
      found.push(`no journal, ${consumed} sent`)
      expect(endingOf(await fleet.run(['auth', 'token', '--json'])), `after kill ${kill}`).toBe('0')
    } else {
      found.push(`a journal, ${consumed} sent`)
      const { context, settings } = await fleet.inProcess()
      const end = await endOf(() => renew(context, settings, { reason: 'stale' }))
      // A busy etcd may have applied the last transaction of the machine only now.
      expect(['refresh_interrupted', 'ok']).toContain(end)
      if (end !== 'ok') await fleet.signIn()
    }
  }
  const { reuse, revoked } = await fleet.harm()
  return { kills: hits(), killed: countEach(killed), found: countEach(found), reuse, revoked, seed }
}
