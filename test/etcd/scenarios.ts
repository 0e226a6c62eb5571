import { expect } from 'vitest'
import { countEach, endingOf } from '../session/processes.ts'
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
 * round: one refreshes, all succeed.
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
    const failed = ended.filter(({ code }) => code !== 0)
    expect(failed, `round ${round}`).toEqual([])
    expect(new Set(ended.map(({ stdout }) => stdout)).size, `tokens in round ${round}`).toBe(1)
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
