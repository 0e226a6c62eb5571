import { describe, expect, it } from 'vitest'
import type { Clock } from '../../src/context.ts'
import { type AccessToken, isAdoptable, isFresh } from '../../src/session/access-token.ts'
import { currentCredential } from '../../src/session/authorizer.ts'
import { type Moment, secondsSince } from '../../src/storage/moment.ts'
import { createSandboxSession } from './sandbox-session.ts'

const RECEIVED: Moment = { wall: Date.parse('2026-11-20T12:00:00Z'), sinceBoot: 5_000, boot: 'a' }
const HOUR = 3600

/** A clock that shows these values. */
function at(wallSeconds: number, sinceBoot: number, boot: string | undefined): Clock {
  return {
    now: () => RECEIVED.wall + wallSeconds * 1000,
    monotonic: () => 0,
    sinceBoot: () => ({ seconds: sinceBoot, boot }),
    sleep: async () => {},
    alarm: () => () => {},
  }
}

describe('the time since a token was received', () => {
  it.each<[string, Clock, number]>([
    ['is what both clocks say', at(100, 5_100, 'a'), 100],
    ['does not change when the wall clock is set back by hours', at(100 - 5 * HOUR, 5_100, 'a'), 100],
    ['does not change when the wall clock is set forward by hours', at(100 + 5 * HOUR, 5_100, 'a'), 100],
    ['is the wall clock’s after a restart of the machine', at(700, 30, 'b'), 700],
    ['is at least the time since boot after a restart', at(10, 300, 'b'), 300],
    ['is infinite after a restart with a wall clock that was set back', at(-10, 300, 'b'), Infinity],
    ['is infinite if the time since boot goes backwards', at(100, 4_000, 'a'), Infinity],
    ['is the longer of both if boots have no ids', at(100, 5_200, undefined), 200],
    ['is the longer of both if boots have no ids, the other way round', at(300, 5_200, undefined), 300],
    ['is the wall clock’s if the time since boot shows a restart', at(300, 20, undefined), 300],
    ['is infinite if boots have no ids and the wall clock was set back', at(-1, 5_200, undefined), Infinity],
  ])('the time since receipt %s', (_name, clock, expected) => {
    const received = clock.sinceBoot().boot === undefined ? { ...RECEIVED, boot: null } : RECEIVED
    expect(secondsSince(received, clock)).toBe(expected)
  })
})

describe('an access token', () => {
  const token = (expiresInSeconds: number): AccessToken => ({
    session: '0123456789ab',
    generation: 1,
    issuer: 'https://api.example.com',
    clientId: 'client',
    value: 'token',
    scope: null,
    narrowed: false,
    expiresInSeconds,
    received: RECEIVED,
  })

  it.each([
    [900, 0, true, true],
    [900, 840, true, true],
    [900, 841, false, false],
    [900, 900, false, false],
    [59, 0, false, true],
    [40, 30, false, true],
    [40, 31, false, false],
    [2, 1, false, true],
    [2, 2, false, false],
  ])(
    'a token of %i seconds, after %i seconds, is fresh: %s, can be adopted: %s',
    (lifetime, passed, fresh, adoptable) => {
      const clock = at(passed, 5_000 + passed, 'a')
      expect(isFresh(token(lifetime), clock)).toBe(fresh)
      expect(isAdoptable(token(lifetime), clock)).toBe(adoptable)
    },
  )
})

describe('a wall clock that is moved by hours', () => {
  it.each([-5, 5])(
    'a wall clock that is moved by %i hours causes no needless refresh and sends no expired token',
    async (hours) => {
      const { signIn, context, settings, counts } = await createSandboxSession()
      await signIn()
      const first = await currentCredential(context, settings)

      context.clock.setWall(context.clock.now() + hours * HOUR * 1000)
      expect((await currentCredential(context, settings)).value).toBe(first.value)
      expect(await counts()).toMatchObject({ refreshes: 0 })

      context.clock.advance(850_000)
      expect((await currentCredential(context, settings)).value).not.toBe(first.value)
      context.clock.setWall(context.clock.now() - hours * HOUR * 1000)
      await currentCredential(context, settings)
      expect(await counts()).toMatchObject({ refreshes: 1, reuse_detections: 0 })
    },
  )
})
