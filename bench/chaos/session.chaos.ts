import { expect, it } from 'vitest'
import { needs } from '../../test/requirements.ts'
import { startKeyring } from '../../test/session/processes.ts'
import { killedAnywhere, manyAtOnce } from '../../test/session/scenarios.ts'
import { seed } from './options.ts'

const print = (counts: object) => process.stdout.write(`${JSON.stringify(counts)}\n`)
print({ seed })

const NO_HARM = { reuse: 0, revoked: 0 }

it('50 processes that share a session file refresh once in each of 20 rounds', async () => {
  const counts = await manyAtOnce({ processes: 50, rounds: 20 })
  print(counts)
  expect(counts).toMatchObject({ refreshes: 20, exits: { 0: 1000 }, ...NO_HARM })
})

it.runIf(needs('gnome-keyring'))(
  '50 processes that share gnome-keyring refresh once in each of 10 rounds',
  async () => {
    const keyring = await startKeyring({ state: 'unlocked' })
    const counts = await manyAtOnce({ processes: 50, rounds: 10, keyring })
    print(counts)
    expect(counts).toMatchObject({ refreshes: 10, exits: { 0: 500 }, ...NO_HARM })
  },
)

it('300 kills at random moments of a refresh with the file store cause no token reuse and no revoked grant', async () => {
  const counts = await killedAnywhere({ kills: 300, seed })
  print(counts)
  expect(counts).toMatchObject({ kills: 300, ...NO_HARM })
})

it.runIf(needs('gnome-keyring'))(
  '60 kills during a refresh with gnome-keyring cause no token reuse and no revoked grant',
  async () => {
    const keyring = await startKeyring({ state: 'unlocked' })
    const counts = await killedAnywhere({ kills: 60, seed, keyring })
    print(counts)
    expect(counts).toMatchObject(NO_HARM)
  },
)
