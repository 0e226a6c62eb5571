import { expect } from 'vitest'
import {
  countEach,
  createProcessSession,
  createRandom,
  endingOf,
  type Keyring,
  type ProcessSession,
} from './processes.ts'

/**
 * Lets many processes find the access token expired at the same moment, in several rounds, and expects one refresh a round and
 * success of all.
 *
 * @returns counts for the report
 */
export async function manyAtOnce(options: {
  readonly processes: number
  readonly rounds: number
  readonly keyring?: Keyring
}): Promise<Record<string, unknown>> {
  const { processes, rounds, keyring } = options
  const world = await createProcessSession(
    keyring === undefined ? { store: 'file' } : { store: 'keychain', keyring },
  )
  const endings: string[] = []
  const started = performance.now()
  for (let round = 1; round <= rounds; round++) {
    world.session.expire()
    const ended = await Promise.all(
      Array.from({ length: processes }, () => world.run(['auth', 'token', '--json'])),
    )
    endings.push(...ended.map(endingOf))
    const failed = ended.filter(({ code }) => code !== 0)
    expect(failed, `round ${round}`).toEqual([])
    expect(new Set(ended.map(({ stdout }) => stdout)).size, `tokens in round ${round}`).toBe(1)
    expect(await world.session.counts(), `round ${round}`).toMatchObject({
      refreshes: round,
      reuse_detections: 0,
      grants_revoked: 0,
    })
  }
  world.readFiles()
  return {
    store: keyring === undefined ? 'file' : 'gnome-keyring',
    processes,
    rounds,
    exits: countEach(endings),
    refreshes: (await world.session.counts()).refreshes,
    ...(await world.harm()),
    seconds: Math.round((performance.now() - started) / 1000),
  }
}

/**
 * Kills a process with SIGKILL at a random moment of a refresh, repeatedly; the service answers slowly, so that every phase gets
 * its share. Expects that the next command works or reports an interrupted refresh.
 *
 * @returns counts for the report
 */
export async function killedAnywhere(options: {
  readonly kills: number
  readonly seed: number
  readonly keyring?: Keyring
}): Promise<Record<string, unknown>> {
  const { kills, seed, keyring } = options
  const store = keyring === undefined ? ('file' as const) : ('keychain' as const)
  const world = await createProcessSession(keyring === undefined ? { store } : { store, keyring })
  const random = createRandom(seed)
  const started = performance.now()
  // Duration of a refresh, over which the kills are spread.
  const span = await spanOfRefresh(world)
  const killed: string[] = []
  const next: string[] = []
  const hits = () => killed.filter((ending) => ending === 'SIGKILL').length
  // Don't count processes that end before the kill.
  for (let kill = 1; hits() < kills && kill <= kills * 3; kill++) {
    await world.session.clearFaults()
    await world.session.fault({ kind: 'delay', before_ms: random() * 60, after_ms: random() * 60 })
    world.session.expire()
    const running = world.start(['auth', 'token', '--json'])
    const timer = setTimeout(
      () => running.child.kill('SIGKILL'),
      span.quiet + random() * (span.whole - span.quiet),
    )
    killed.push(endingOf(await running.ended))
    clearTimeout(timer)
    world.readFiles()

    const after = await world.run(['auth', 'token', '--json'])
    next.push(endingOf(after))
    expect(['0', '4 refresh_interrupted'], `kill ${kill}: ${after.stderr}`).toContain(endingOf(after))
    if (after.code !== 0) await world.session.signIn(store)
    expect(await world.harm(), `kill ${kill}`).toEqual({ reuse: 0, revoked: 0 })
  }
  return {
    store: keyring === undefined ? 'file' : 'gnome-keyring',
    kills: hits(),
    seed,
    killed: countEach(killed),
    next: countEach(next),
    ...(await world.harm()),
    span,
    seconds: Math.round((performance.now() - started) / 1000),
  }
}

/** Measures a command that sends nothing, and one that refreshes with the delays of the kills, in milliseconds. */
async function spanOfRefresh(world: ProcessSession): Promise<{ quiet: number; whole: number }> {
  const shortest = async (prepare: () => void) => {
    const times: number[] = []
    for (let run = 0; run < 4; run++) {
      prepare()
      const start = performance.now()
      await world.run(['auth', 'token'])
      times.push(performance.now() - start)
    }
    return Math.min(...times)
  }
  const quiet = await shortest(() => {})
  await world.session.fault({ kind: 'delay', before_ms: 30, after_ms: 30 })
  const whole = await shortest(() => world.session.expire())
  await world.session.clearFaults()
  // Half of the time of an idle command is the start of Node.
  return { quiet: Math.round(quiet * 0.5), whole: Math.round(whole) }
}
