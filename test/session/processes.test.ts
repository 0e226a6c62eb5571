import { describe, expect, it } from 'vitest'
import { needs } from '../requirements.ts'
import { startKeyring } from './processes.ts'
import { killedAnywhere, manyAtOnce } from './scenarios.ts'

describe('processes that share a session', () => {
  it('ten processes that find the access token expired at the same moment send one refresh request in total', async () => {
    const counts = await manyAtOnce({ processes: 10, rounds: 2 })
    expect(counts).toMatchObject({ refreshes: 2, reuse: 0, revoked: 0, exits: { 0: 20 } })
  })

  it.runIf(needs('posix'))(
    'a process killed at a random moment of a refresh leaves a session that works or reports the interruption',
    async () => {
      const counts = await killedAnywhere({ kills: 6, seed: 20261120 })
      expect(counts).toMatchObject({ reuse: 0, revoked: 0 })
    },
  )

  it.runIf(needs('gnome-keyring'))('eight processes with a keychain send one refresh request', async () => {
    const keyring = await startKeyring({ state: 'unlocked' })
    const counts = await manyAtOnce({ processes: 8, rounds: 1, keyring })
    expect(counts).toMatchObject({ refreshes: 1, reuse: 0, revoked: 0, exits: { 0: 8 } })
  })
})
