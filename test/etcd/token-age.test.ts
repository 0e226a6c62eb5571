import { describe, expect, it } from 'vitest'
import { secondsLeft } from '../../src/session/access-token.ts'
import { tokenOf } from '../../src/session/shared/store.ts'
import type { SharedValue } from '../../src/session/shared/vault.ts'
import { createFakeClock } from '../fake-context.ts'

/** Seconds that a token of 900 seconds has left, which was received at these times before now, by two clocks. */
function secondsLeftOf({ wallAgo, runningAgo, boot }: { wallAgo: number; runningAgo: number; boot: string }) {
  const clock = createFakeClock()
  const { seconds } = clock.sinceBoot()
  const received = { wall: clock.now() - wallAgo * 1000, sinceBoot: seconds - runningAgo, boot }
  const contents = { token: { value: 'a', expiresInSeconds: 900, received } }
  const token = tokenOf({ contents } as unknown as SharedValue, clock)
  return token && secondsLeft(token, clock)
}

describe('an access token from etcd', () => {
  const boot = 'boot-1'

  it('is as old as the wall clock says on a machine that was resumed from the same snapshot', () => {
    expect(secondsLeftOf({ boot, wallAgo: 1000, runningAgo: 2 })).toBe(-100)
    expect(secondsLeftOf({ boot, wallAgo: 100, runningAgo: -500 })).toBe(800)
    expect(secondsLeftOf({ boot, wallAgo: -1000, runningAgo: -500 })).toBe(Number.NEGATIVE_INFINITY)
  })

  it('gets no younger on the machine that wrote it when its wall clock is set back', () => {
    expect(secondsLeftOf({ boot, wallAgo: -3600, runningAgo: 1000 })).toBe(-100)
    expect(secondsLeftOf({ boot, wallAgo: -3600, runningAgo: 100 })).toBe(800)
  })

  it('has an age by the wall clock alone on any other machine', () => {
    expect(secondsLeftOf({ boot: 'boot-2', wallAgo: 100, runningAgo: 800 })).toBe(800)
    expect(secondsLeftOf({ boot: 'boot-2', wallAgo: -100, runningAgo: 800 })).toBe(900)
  })
})
