import { randomInt } from 'node:crypto'
import { readdirSync, readFileSync, utimesSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, it } from 'vitest'
import { createServedWorld, type Ended, type ServedWorld } from '../../test/stories/built-program.ts'

const INVOCATIONS = Number(process.env['MAILCLAIM_SOAK_INVOCATIONS'] ?? 1000)
const AT_ONCE = 20
const PROFILES = ['default', 'one', 'two', 'three']
const KILLED = 0.1
const LATEST_KILL_MS = 900
// The same seed gives the same commands and moments of the kills; the machine does the rest.
const seed = Number(process.env['MAILCLAIM_SOAK_SEED'] ?? randomInt(2 ** 31))

/** Numbers in [0, 1) that are the same for the same seed (mulberry32). */
function seeded(start: number): () => number {
  let state = start >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

/** What people and scripts run, mixed; `at` is the number of the invocation. */
const COMMANDS: readonly ((at: number, importId: string) => readonly string[])[] = [
  () => ['auth', 'token'],
  () => ['auth', 'status', '--json'],
  () => ['auth', 'refresh', '--json'],
  () => ['imports', 'list', '--all', '--format', 'jsonl'],
  () => ['imports', 'list', '--status', 'completed', '--json'],
  (_at, id) => ['imports', 'get', id, '--json'],
  () => ['grants', 'list', '--format', 'csv'],
  (at) => ['claims', 'create', `d${at}.example.com`, '--json'],
  (at) => ['claims', 'create', `e${at}.example.com`, '--format', 'tsv'],
  () => ['claims', 'list', '--refresh', '--json'],
  (at) => ['config', 'set', 'http-timeout', String(30 + (at % 10))],
  () => ['config', 'list', '--json'],
]

/** Every file of the program that is temporary, by its path. */
function temporaryFiles(world: ServedWorld): string[] {
  return readdirSync(world.home, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.tmp'))
    .map((name) => join(world.home, name))
}

/** Processes of this machine that were started in this world, the sandbox left out. */
function processesOf(world: ServedWorld): string[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .filter((pid) => {
      try {
        const words = readFileSync(`/proc/${pid}/cmdline`, 'utf8')
        return (
          readFileSync(`/proc/${pid}/environ`, 'utf8').includes(world.home) && !words.includes('\0sandbox\0')
        )
      } catch {
        return false // It has just ended.
      }
    })
}

it(`${INVOCATIONS} invocations, ${AT_ONCE} at a time, tokens of 2 s, random kills`, async () => {
  console.log(`seed ${seed}`)
  const random = seeded(seed)
  const world = await createServedWorld(['--auto-approve', '--access-token-seconds', '2', '--imports', '250'])
  for (const profile of PROFILES) expect(await world.login(['--profile', profile])).toMatchObject({ code: 0 })
  const imports = await world.run(['imports', 'list', '--limit', '1', '--json'])
  const importId = (JSON.parse(imports.stdout) as { data: { id: string }[] }).data[0]?.id ?? ''

  const endings = new Map<string, number>()
  const unexpected: string[] = []
  const created: { profile: string; name: string }[] = []
  const again = new Map<string, Promise<Ended>>()
  const counts = { killed: 0, interrupted: 0, signedInAgain: 0 }

  /** Signs in again if a kill hit the moment after which nobody knows what became of a token. */
  const signInAgain = async (profile: string) => {
    counts.interrupted += 1
    if (!again.has(profile)) {
      counts.signedInAgain += 1
      const login = world.login(['--profile', profile])
      again.set(profile, login)
      void login.then(() => again.delete(profile))
    }
    expect(await again.get(profile)).toMatchObject({ code: 0 })
  }

  async function invoke(at: number): Promise<void> {
    const profile = PROFILES[Math.floor(random() * PROFILES.length)] ?? ''
    const words = COMMANDS[Math.floor(random() * COMMANDS.length)]?.(at, importId) ?? []
    const kill =
      random() < KILLED
        ? { after: random() * LATEST_KILL_MS, signal: random() < 0.7 ? 'SIGKILL' : 'SIGTERM' }
        : undefined
    const running = world.start([...words, '--profile', profile])
    if (kill !== undefined) {
      const stop = new AbortController()
      void sleep(kill.after, undefined, { signal: stop.signal }).then(
        () => running.child.kill(kill.signal as NodeJS.Signals),
        () => {},
      )
      void running.ended.then(() => stop.abort())
    }
    const ended = await running.ended
    const killed = ended.code === 'SIGKILL' || ended.code === 'SIGTERM' || ended.code === 143
    if (killed && kill !== undefined) counts.killed += 1
    const code = /"code":"(\w+)"/.exec(ended.stderr)?.[1] ?? ''
    const interrupted = ended.code === 4 && /refresh_interrupted|was cut off/.test(ended.stderr)
    const name = interrupted ? '4 refresh_interrupted' : `${ended.code} ${code}`.trim()
    endings.set(name, (endings.get(name) ?? 0) + 1)
    if (interrupted) return signInAgain(profile)
    // `auth status` tells of it without failing for it, and the service may have forgotten nothing.
    if (ended.code !== 0 && !(killed && kill !== undefined))
      unexpected.push(`${words.join(' ')}: ${ended.code} ${ended.stderr}`)
    if (ended.code === 0 && words[0] === 'claims' && words[1] === 'create')
      created.push({ profile, name: words[2] ?? '' })
  }

  let next = 0
  const began = performance.now()
  await Promise.all(
    Array.from({ length: AT_ONCE }, async () => {
      for (let at = next++; at < INVOCATIONS; at = next++) await invoke(at)
    }),
  )
  const seconds = Math.round((performance.now() - began) / 1000)

  // Every profile works, or works again after one sign-in: no grant is lost.
  for (const profile of PROFILES) {
    const refresh = () => world.run(['auth', 'refresh', '--profile', profile])
    const ended = await refresh()
    if (ended.code === 4 && ended.stderr.includes('was cut off')) await signInAgain(profile)
    expect(await refresh()).toMatchObject({ code: 0 })
  }
  const state = (await world.control('GET', 'state')) as Record<string, unknown>

  const known = new Map<string, Set<string>>()
  for (const profile of PROFILES) {
    const list = await world.run(['claims', 'list', '--profile', profile, '--json'])
    expect(list).toMatchObject({ code: 0, stderr: '' })
    known.set(
      profile,
      new Set((JSON.parse(list.stdout) as { data: { name: string }[] }).data.map(({ name }) => name)),
    )
  }
  const lost = created.filter(({ profile, name }) => !known.get(profile)?.has(name))

  let corrupt = 0
  const files = readdirSync(world.home, { recursive: true, encoding: 'utf8' }).filter((name) =>
    name.endsWith('.json'),
  )
  for (const name of files) {
    try {
      JSON.parse(readFileSync(join(world.home, name), 'utf8'))
    } catch {
      corrupt += 1
    }
  }

  // What a killed process left is swept by the next one that writes ten minutes later: ten minutes have passed.
  const left = temporaryFiles(world)
  const earlier = new Date(Date.now() - 11 * 60_000)
  for (const path of left) utimesSync(path, earlier, earlier)
  await world.run(['config', 'set', 'http-timeout', '30'])
  for (const profile of PROFILES) {
    expect(await world.run(['claims', 'create', 'last.example.com', '--profile', profile])).toMatchObject({
      code: 0,
    })
  }
  await sleep(200)

  const report = {
    seed,
    seconds,
    invocations: INVOCATIONS,
    endings: Object.fromEntries([...endings].toSorted()),
    ...counts,
    refreshes: state['refreshes'],
    reuse: state['reuse_detections'],
    revoked: state['grants_revoked'],
    claims: created.length,
    claimsLost: lost.length,
    files: files.length,
    corrupt,
    temporarySwept: left.length,
    temporaryLeft: temporaryFiles(world).length,
    processesLeft: processesOf(world).length,
  }
  console.log(JSON.stringify(report, null, 2))
  expect(unexpected).toEqual([])
  expect(report).toMatchObject({
    reuse: 0,
    revoked: 0,
    claimsLost: 0,
    corrupt: 0,
    temporaryLeft: 0,
    processesLeft: 0,
  })
})
