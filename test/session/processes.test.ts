import { describe, expect, it } from 'vitest'
import { needs } from '../requirements.ts'
import { startKeyring } from './processes.ts'
import { killedAnywhere, manyAtOnce } from './scenarios.ts'

describe('processes that share a session', () => {
  it('refresh once, however many find the access token ended at the same moment', async () => {
    const counts = await manyAtOnce({ processes: 16, rounds: 2 })
    expect(counts).toMatchObject({ refreshes: 2, reuse: 0, revoked: 0, exits: { 0: 32 } })
  })

  it('leave a session that goes on or explains itself, when they are killed at any moment', async () => {
    const counts = await killedAnywhere({ kills: 12, seed: 20261120 })
    expect(counts).toMatchObject({ reuse: 0, revoked: 0 })
  })

  it.runIf(needs('gnome-keyring'))('refresh once with the token in a real keychain as well', async () => {
    const keyring = await startKeyring({ state: 'unlocked' })
    const counts = await manyAtOnce({ processes: 12, rounds: 1, keyring })
    expect(counts).toMatchObject({ refreshes: 1, reuse: 0, revoked: 0, exits: { 0: 12 } })
  })
})
