import { describe, expect, it } from 'vitest'
import { needs } from '../requirements.ts'
import { startKeyring } from './processes.ts'
import { killedAnywhere, manyAtOnce } from './scenarios.ts'

describe('processes that share a session', () => {
  it('many processes that find the access token expired at the same moment refresh once', async () => {
    const counts = await manyAtOnce({ processes: 10, rounds: 2 })
    expect(counts).toMatchObject({ refreshes: 2, reuse: 0, revoked: 0, exits: { 0: 20 } })
  })

  it.runIf(needs('posix'))(
    'processes that are killed at any moment leave a session that works or explains itself',
    async () => {
      const counts = await killedAnywhere({ kills: 6, seed: 20261120 })
      expect(counts).toMatchObject({ reuse: 0, revoked: 0 })
    },
  )

  it.runIf(needs('gnome-keyring'))(
    'many processes refresh once with the token in a real keychain as well',
    async () => {
      const keyring = await startKeyring({ state: 'unlocked' })
      const counts = await manyAtOnce({ processes: 8, rounds: 1, keyring })
      expect(counts).toMatchObject({ refreshes: 1, reuse: 0, revoked: 0, exits: { 0: 8 } })
    },
  )
})
