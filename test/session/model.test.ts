import fc from 'fast-check'
import { beforeEach, describe, expect, it } from 'vitest'
import type { Io } from '../../src/terminal/io.ts'
import { COMMANDS, type Command, createBase, type Fault, fatesOf, Machine, type Store } from './machine.ts'

let base: Io
beforeEach(async () => {
  base = await createBase()
})

/** Faults after which the next command has to succeed, because they are temporary and lose no data. */
const PASSING = ['fails', 'unreachable', 'refused', 'gives nothing', 'hangs, but is done', 'lies']

interface Move {
  readonly command: Command
  readonly fault?: Fault
}

/** A machine, and the commands that have run on it. */
interface Story {
  readonly machine: Machine
  readonly moves: readonly (Move & { readonly end: string })[]
}

const newStory = (store: Store): Story => ({ machine: new Machine(base, store), moves: [] })

/** Runs a command on a copy of a story's machine, and returns the longer story. */
async function runMove({ machine, moves }: Story, move: Move): Promise<Story> {
  const next = machine.clone()
  const { end } = await next.run(move.command, move.fault)
  return { machine: next, moves: [...moves, { ...move, end }] }
}

/** Returns every single fault of a command in the present state. */
async function faultsOf({ machine }: Story, command: Command): Promise<Fault[]> {
  const { steps } = await machine.clone().run(command)
  return steps.flatMap((kind, step) => fatesOf(kind).map((fate) => ({ step, fate })))
}

/** Returns a story for each possible result of a power loss at this moment; none unless the last command was cut off. */
function powerLosses({ machine, moves }: Story): Story[] {
  const last = moves.at(-1)
  if (last?.end !== 'killed') return []
  return Array.from({ length: machine.disk.powerLosses }, (_, power) => {
    const cut = machine.clone()
    cut.disk.losePower(power)
    return { machine: cut, moves: [...moves.slice(0, -1), { ...last, end: `power ${power}` }] }
  })
}

/** Creates a memory of checked machines, so that equal states are checked once. */
function createVisited() {
  const seen = new Set<string>()
  return {
    isNew({ machine }: Story, what = ''): boolean {
      const state = what + machine.state
      const isNew = !seen.has(state)
      seen.add(state)
      return isNew
    },
    /** Expects no violation at the end of a story. */
    async expectWhole(story: Story, isCalm = false): Promise<void> {
      if (!this.isNew(story, `end ${isCalm}`)) return
      const broken = await story.machine.clone().check(isCalm)
      if (broken.length > 0) expect.fail(`${JSON.stringify(story.moves)}: ${broken.join('; ')}`)
    },
    get size() {
      return seen.size
    },
  }
}

describe.each(['file', 'keychain'] as const)('a session (%s)', (store) => {
  it('after one fault at any step of any command, no command sends a used refresh token without `--retry-interrupted`', async () => {
    const visited = createVisited()
    const start = newStory(store)
    for (const command of COMMANDS) {
      for (const fault of await faultsOf(start, command)) {
        const story = await runMove(start, { command, fault })
        await visited.expectWhole(story, PASSING.includes(fault.fate) && command !== 'logout')
        if (!visited.isNew(story)) continue
        for (const next of COMMANDS) await visited.expectWhole(await runMove(story, { command: next }))
      }
    }
    expect(visited.size).toBeGreaterThan(50)
  })

  it('after a renewal whose response was lost and a fault in a later command, no used refresh token is sent without `--retry-interrupted`', async () => {
    const visited = createVisited()
    const lost = await runMove(newStory(store), {
      command: 'renew',
      fault: { step: 'send', fate: 'lost, consumed' },
    })
    for (const command of COMMANDS) {
      for (const fault of await faultsOf(lost, command)) {
        const story = await runMove(lost, { command, fault })
        for (const one of [story, ...powerLosses(story)]) await visited.expectWhole(one)
      }
    }
  })

  it('after a power loss at any step of any command, the next renewal sends no used refresh token', async () => {
    const visited = createVisited()
    const start = newStory(store)
    for (const command of COMMANDS) {
      for (const fault of await faultsOf(start, command)) {
        for (const story of powerLosses(await runMove(start, { command, fault }))) {
          if (visited.isNew(story)) await visited.expectWhole(await runMove(story, { command: 'renew' }))
        }
      }
    }
  })

  it('no stored token is lost if a renewal is killed at any step, and the power fails at any step of the next renewal', async () => {
    const visited = createVisited()
    const start = newStory(store)
    for (const first of await faultsOf(start, 'renew')) {
      if (!/^(killed|torn)/.test(first.fate)) continue
      const killed = await runMove(start, { command: 'renew', fault: first })
      if (!visited.isNew(killed)) continue
      for (const fault of await faultsOf(killed, 'renew')) {
        for (const story of powerLosses(await runMove(killed, { command: 'renew', fault })))
          await visited.expectWhole(story)
      }
    }
  })

  it('in random sequences of commands with random faults, no refresh token is sent twice without `--retry-interrupted`', async () => {
    const entry = fc.record({
      command: fc.constantFrom(...COMMANDS),
      step: fc.nat(20),
      fate: fc.nat(6),
      power: fc.nat(40),
    })
    await fc.assert(
      fc.asyncProperty(fc.array(entry, { minLength: 2, maxLength: 6 }), async (entries) => {
        let story = newStory(store)
        for (const { command, step, fate, power } of entries) {
          // Running the same command on a copy of this machine shows the kinds of its steps.
          const kind = (await story.machine.clone().run(command)).steps[step]
          const chosen = kind && fatesOf(kind)[fate]
          const fault = chosen && { step, fate: chosen, ...(power < 24 && { power }) }
          story = await runMove(story, { command, ...(fault && { fault }) })
        }
        expect(await story.machine.check(false)).toEqual([])
      }),
      { numRuns: 150 },
    )
  }, 120_000)
})

describe('a keychain', () => {
  it('a renewal does not send the used refresh token of a keychain that was restored from a backup', async () => {
    const machine = new Machine(base, 'keychain')
    const older = machine.item
    expect((await machine.run('renew')).end).toBe('ok')
    machine.item = older
    expect((await machine.run('renew')).end).toBe('refresh_token_lost')
    expect(machine.broken).toEqual([])
  })

  it('a renewal does not send the refresh token of another sign-in in the keychain, even if its generation is higher', async () => {
    const machine = new Machine(base, 'keychain')
    machine.item = '111111111111.9@0:0.0'
    const { end } = await machine.run('renew')
    expect([end, machine.broken]).toEqual(['refresh_token_lost', []])
    expect(machine.grants).toEqual([{ good: 1, isRevoked: false }])
  })

  it('a renewal does not write to the keychain if reading it failed and the refresh token is in session.json', async () => {
    const machine = new Machine(base, 'keychain')
    await machine.run('renew', { step: 'set', fate: 'fails' })
    const { end, steps } = await machine.run('renew', { step: 'get', fate: 'fails' })
    expect([end, steps.includes('set'), machine.session?.refreshToken]).toEqual(['ok', false, '0.3'])
  })

  it('a new refresh token that the keychain rejects is stored in session.json, and the next one in the keychain again', async () => {
    const machine = new Machine(base, 'keychain')
    expect((await machine.run('renew', { step: 'set', fate: 'fails' })).end).toBe('ok')
    expect(machine.session?.refreshToken).toBe('0.2')
    expect((await machine.run('renew')).end).toBe('ok')
    expect(machine.session?.refreshToken).toBeUndefined()
    expect(machine.item).toMatch(/\.3@\d+:0\.3$/)
  })
})

/** Faults of a renewal, by name. */
const FAULTY = {
  'renew, keychain refuses': [{ step: 'set', fate: 'fails' }],
  'renew, keychain refuses, killed when it is stored': [
    { step: 'set', fate: 'fails' },
    { step: 'rename', fate: 'killed after' },
  ],
} as const satisfies Record<string, readonly Fault[]>

/** Commands of each process, in their order. */
type Scripts = readonly (readonly (Command | keyof typeof FAULTY)[])[]

/**
 * Runs every interleaving of processes at the points where they wait; with `mayUnlock`, also with the lock file deleted at each
 * point.
 *
 * @returns the number of interleavings
 */
async function everyOrder(store: Store, scripts: Scripts, mayUnlock: boolean): Promise<number> {
  let orders = 0
  const prefixes: number[][] = [[]]
  for (let prefix = prefixes.pop(); prefix !== undefined; prefix = prefixes.pop()) {
    const choices = await playOrder(store, scripts, mayUnlock, prefix)
    orders++
    // Queue every other choice after the prefix.
    for (let at = prefix.length; at < choices.length; at++) {
      const [taken = 0, of = 1] = choices[at] ?? []
      const before = choices.slice(0, at).map(([choice]) => choice)
      for (let other = taken + 1; other < of; other++) prefixes.push([...before, other])
    }
  }
  return orders
}

/** Runs one interleaving that begins with the choices of `prefix`. @returns each choice, and the number of choices there */
async function playOrder(
  store: Store,
  scripts: Scripts,
  mayUnlock: boolean,
  prefix: readonly number[],
): Promise<(readonly [choice: number, of: number])[]> {
  const machine = new Machine(base, store)
  const waiting = new Map<number, { readonly what: string; readonly go: () => void }>()
  machine.turn = (process, what) => new Promise((go) => void waiting.set(process, { what, go }))
  let running = scripts.length
  const ended = scripts.map(async (commands, process) => {
    for (const command of commands) {
      await machine.turn(process, 'works')
      if (command in FAULTY) await machine.run('renew', FAULTY[command as keyof typeof FAULTY], process)
      else await machine.run(command as Command, [], process)
    }
    running--
  })
  const begun = new Set<number>()
  const first = (process: number) =>
    !scripts.some((script, at) => at < process && !begun.has(at) && `${script}` === `${scripts[process]}`)
  const choices: (readonly [number, number])[] = []
  let unlocks = mayUnlock ? 1 : 0
  while (running > 0) {
    while (waiting.size < running) await new Promise((resolve) => setImmediate(resolve))
    const able = [...waiting].filter(
      ([process, { what }]) =>
        // Of processes with equal scripts that haven't begun, only the first may begin: other orders are this one with the numbers
        // exchanged.
        (begun.has(process) || first(process)) && (what === 'works' || !machine.isLocked()),
    )
    const actions = able.map(([process, { go }]) => () => {
      begun.add(process)
      waiting.delete(process)
      go()
    })
    if (unlocks > 0 && machine.isLocked()) {
      actions.push(() => {
        unlocks--
        machine.deleteLock()
      })
    }
    const choice = prefix[choices.length] ?? 0
    choices.push([choice, actions.length])
    actions[choice]?.()
    await new Promise((resolve) => setImmediate(resolve))
  }
  await Promise.all(ended)
  machine.turn = async () => {}
  const broken = await machine.check(false)
  if (broken.length > 0)
    expect.fail(`order ${choices.map(([choice]) => choice).join('')}: ${broken.join('; ')}`)
  return choices
}

describe('several processes', () => {
  it.each<[Store, Scripts, boolean]>([
    ['file', [['renew'], ['renew']], false],
    ['file', [['renew'], ['renew']], true],
    ['file', [['renew'], ['renew', 'login']], true],
    ['file', [['renew'], ['logout']], true],
    ['file', [['renew'], ['renew'], ['renew']], false],
    ['keychain', [['renew'], ['renew']], true],
    ['keychain', [['renew'], ['renew, keychain refuses']], true],
    ['keychain', [['renew'], ['renew, keychain refuses, killed when it is stored']], true],
    ['keychain', [['renew'], ['login']], false],
  ])(
    'in every interleaving, processes (%s store) that run %j send no refresh token twice (lock file deleted: %s)',
    async (store, scripts, mayUnlock) => {
      expect(await everyOrder(store, scripts, mayUnlock)).toBeGreaterThan(1)
    },
    120_000,
  )
})
