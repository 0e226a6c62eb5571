import fc from 'fast-check'
import { beforeEach, describe, expect, it } from 'vitest'
import type { Io } from '../../src/terminal/io.ts'
import { COMMANDS, type Command, createBase, type Fault, fatesOf, Machine, type Store } from './machine.ts'

let base: Io
beforeEach(async () => {
  base = await createBase()
})

/** Faults after which nothing may be lost: the next command has to work. */
const PASSING = ['fails', 'unreachable', 'refused', 'gives nothing', 'hangs, but is done']

/** Every fault that a command can have after what went before, one at a time. */
async function faultsOf(store: Store, before: Story['commands'], command: Command): Promise<Fault[]> {
  const machine = new Machine(base, store)
  for (const earlier of before) await machine.run(earlier.command, earlier.fault)
  const { steps } = await machine.run(command)
  return steps.flatMap((kind, step) => fatesOf(kind).map((fate) => ({ step, fate })))
}

interface Story {
  readonly commands: readonly { readonly command: Command; readonly fault?: Fault }[]
  readonly isCalm: boolean
}

/** Plays a story on a new machine, and expects that nothing is broken at its end. */
async function play(store: Store, { commands, isCalm }: Story): Promise<void> {
  const machine = new Machine(base, store)
  const ends: string[] = []
  for (const { command, fault } of commands) ends.push((await machine.run(command, fault)).end)
  const broken = await machine.check(isCalm)
  if (broken.length > 0)
    expect.fail(`${JSON.stringify(commands)} ended ${ends.join(', ')}: ${broken.join('; ')}`)
}

describe.each(['file', 'keychain'] as const)('a session (%s)', (store) => {
  it('one fault at any step of any command, and any next command, lead to no second use and no untrue message', async () => {
    let stories = 0
    for (const command of COMMANDS) {
      for (const fault of await faultsOf(store, [], command)) {
        const isCalm = PASSING.includes(fault.fate) && command !== 'logout'
        await play(store, { commands: [{ command, fault }], isCalm })
        for (const next of COMMANDS)
          await play(store, { commands: [{ command, fault }, { command: next }], isCalm: false })
        stories += 1 + COMMANDS.length
      }
    }
    expect(stories).toBeGreaterThan(500)
  })

  it('after a renewal whose answer was lost, one fault at any step of any command leads to no second use', async () => {
    const lost = {
      command: 'renew',
      fault: { step: 'send', fate: 'lost, consumed' },
    } as const
    for (const command of COMMANDS) {
      for (const fault of await faultsOf(store, [lost], command)) {
        await play(store, { commands: [lost, { command, fault }], isCalm: false })
        if (!fault.fate.startsWith('killed')) continue
        for (let power = 0; power < 12; power++)
          await play(store, { commands: [lost, { command, fault: { ...fault, power } }], isCalm: false })
      }
    }
  })

  it('a power loss at any step loses nothing but what was in flight', async () => {
    for (const command of COMMANDS) {
      for (const fault of await faultsOf(store, [], command)) {
        if (!/^(killed|torn)/.test(fault.fate)) continue
        for (let power = 0; power < 12; power++)
          await play(store, {
            commands: [{ command, fault: { ...fault, power } }, { command: 'renew' }],
            isCalm: false,
          })
      }
    }
  })

  it('a kill, and then a power loss at any step of the next renewal, lose no token that was stored', async () => {
    for (const first of await faultsOf(store, [], 'renew')) {
      if (!/^(killed|torn)/.test(first.fate)) continue
      const killed = new Machine(base, store)
      await killed.run('renew', first)
      const { steps } = await killed.run('renew')
      for (let step = 0; step < steps.length; step++) {
        for (const power of [0, 3, 5, 21]) {
          const second = { command: 'renew' as const, fault: { step, fate: 'killed before' as const, power } }
          await play(store, { commands: [{ command: 'renew', fault: first }, second], isCalm: false })
        }
      }
    }
  })

  it('no sequence of commands, each with any fault, leads to a second use of a token or to an untrue message', async () => {
    const entry = fc.record({
      command: fc.constantFrom(...COMMANDS),
      step: fc.nat(20),
      fate: fc.nat(6),
      power: fc.nat(40),
    })
    await fc.assert(
      fc.asyncProperty(fc.array(entry, { minLength: 2, maxLength: 6 }), async (entries) => {
        const machine = new Machine(base, store)
        const played: unknown[] = []
        for (const { command, step, fate, power } of entries) {
          // The same command on a machine like this one says which steps it has.
          const kind = await kindAt(store, played as never, command, step)
          const fates = kind === undefined ? [] : fatesOf(kind)
          const chosen = fates[fate]
          const fault =
            chosen === undefined ? undefined : { step, fate: chosen, ...(power < 24 && { power }) }
          played.push({ command, fault })
          await machine.run(command, fault)
        }
        expect(await machine.check(false)).toEqual([])
      }),
      { numRuns: 150 },
    )
  }, 120_000)
})

async function kindAt(
  store: Store,
  played: readonly { command: Command; fault?: Fault }[],
  command: Command,
  step: number,
) {
  const machine = new Machine(base, store)
  for (const earlier of played) await machine.run(earlier.command, earlier.fault)
  return (await machine.run(command)).steps[step]
}

describe('a keychain', () => {
  it('a keychain that was restored from a backup holds a used token, which is never sent', async () => {
    const machine = new Machine(base, 'keychain')
    const older = machine.item
    expect((await machine.run('renew')).end).toBe('ok')
    machine.item = older
    expect((await machine.run('renew')).end).toBe('refresh_token_lost')
    expect(machine.broken).toEqual([])
  })

  it('what the keychain refuses goes into the file, and back at the next renewal', async () => {
    const machine = new Machine(base, 'keychain')
    expect((await machine.run('renew', { step: 'set', fate: 'fails' })).end).toBe('ok')
    expect(machine.session?.refreshToken).toBe('0.2')
    expect((await machine.run('renew')).end).toBe('ok')
    expect(machine.session?.refreshToken).toBeUndefined()
    expect(machine.item).toMatch(/\.3@\d+:0\.3$/)
  })
})

/** What each of several processes runs, one after the other. */
type Scripts = readonly (readonly (Command | 'renew, keychain refuses')[])[]

/**
 * Plays every order in which processes can take turns, at every point where one of them waits for anything; somewhere in
 * between, something deletes the lock file.
 */
async function everyOrder(store: Store, scripts: Scripts, mayUnlock: boolean): Promise<number> {
  let orders = 0
  const prefixes: number[][] = [[]]
  for (let prefix = prefixes.pop(); prefix !== undefined; prefix = prefixes.pop()) {
    const choices = await playOrder(store, scripts, mayUnlock, prefix)
    orders++
    // Every other way to go on after the prefix.
    for (let at = prefix.length; at < choices.length; at++) {
      const [taken = 0, of = 1] = choices[at] ?? []
      const before = choices.slice(0, at).map(([choice]) => choice)
      for (let other = taken + 1; other < of; other++) prefixes.push([...before, other])
    }
  }
  return orders
}

/** @returns at each point, which choice was made of how many. */
async function playOrder(
  store: Store,
  scripts: Scripts,
  mayUnlock: boolean,
  prefix: readonly number[],
): Promise<(readonly [choice: number, of: number])[]> {
  const machine = new Machine(base, store)
  const refusal = { step: 'set', fate: 'fails' } as const
  const waiting = new Map<number, { readonly what: string; readonly go: () => void }>()
  machine.turn = (process, what) => new Promise((go) => void waiting.set(process, { what, go }))
  let running = scripts.length
  const ended = scripts.map(async (commands, process) => {
    for (const command of commands) {
      await machine.turn(process, 'works')
      if (command === 'renew, keychain refuses') await machine.run('renew', refusal, process)
      else await machine.run(command, undefined, process)
    }
    running--
  })
  const choices: (readonly [number, number])[] = []
  let unlocks = mayUnlock ? 1 : 0
  while (running > 0) {
    while (waiting.size < running) await new Promise((resolve) => setImmediate(resolve))
    const able = [...waiting].filter(([, { what }]) => what === 'works' || !machine.isLocked())
    const actions = able.map(([process, { go }]) => () => {
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
    ['keychain', [['renew'], ['login']], false],
  ])(
    '%s, %j, in every order (lock file deleted: %s): no token is sent twice',
    async (store, scripts, mayUnlock) => {
      expect(await everyOrder(store, scripts, mayUnlock)).toBeGreaterThan(1)
    },
    120_000,
  )
})
