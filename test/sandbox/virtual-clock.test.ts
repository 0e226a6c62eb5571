import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { seededId, seededIndex } from '../../src/sandbox/fixtures.ts'
import { createVirtualClock, timestamp } from '../../src/sandbox/virtual-clock.ts'

/** A base clock that moves only when told. */
function handClock() {
  let now = 1_000_000
  const timers = new Set<{ due: number; run: () => void }>()
  return {
    clock: {
      now: () => now,
      after(ms: number, run: () => void) {
        const timer = { due: now + ms, run }
        timers.add(timer)
        return () => void timers.delete(timer)
      },
    },
    pass(ms: number) {
      now += ms
      for (const timer of [...timers]) {
        if (timer.due > now) continue
        timers.delete(timer)
        timer.run()
      }
    },
    waiting: () => timers.size,
  }
}

const fail = (error: unknown) => {
  throw error
}

describe('the virtual clock', () => {
  test('the virtual clock runs what is due as real time passes', () => {
    const { clock, pass } = handClock()
    const virtual = createVirtualClock(clock, fail)
    const ran: number[] = []
    virtual.at(virtual.now() + 100, (due) => void ran.push(due - 1_000_000))
    pass(99)
    expect(ran).toEqual([])
    pass(1)
    expect(ran).toEqual([100])
  })

  test('a jump runs everything due in order, including what is planned meanwhile', async () => {
    const virtual = createVirtualClock(handClock().clock, fail)
    const start = virtual.now()
    const ran: string[] = []
    virtual.at(start + 300, () => void ran.push('third'))
    virtual.at(start + 100, async (due) => {
      await new Promise((resolve) => setImmediate(resolve))
      ran.push('first')
      virtual.at(due + 100, () => void ran.push('second'))
    })
    virtual.at(start + 2000, () => void ran.push('later'))
    await virtual.advance(1000)
    expect(ran).toEqual(['first', 'second', 'third'])
    expect(virtual.now() - start).toBe(1000)
  })

  test('a canceled callback does not run, and closing leaves no timer', async () => {
    const { clock, waiting } = handClock()
    const virtual = createVirtualClock(clock, fail)
    const ran: string[] = []
    const callOff = virtual.at(virtual.now() + 1, () => void ran.push('called off'))
    virtual.at(virtual.now() + 2, () => void ran.push('closed'))
    callOff()
    virtual.close()
    await virtual.advance(10)
    expect([ran, waiting()]).toEqual([[], 0])
  })

  test('an error in a callback is reported and does not stop the others', async () => {
    const errors: unknown[] = []
    const virtual = createVirtualClock(handClock().clock, (error) => void errors.push(error))
    const ran: string[] = []
    virtual.at(virtual.now() + 1, () => {
      throw new Error('one')
    })
    virtual.at(virtual.now() + 2, () => void ran.push('two'))
    await virtual.advance(10)
    expect([errors.map(String), ran]).toEqual([['Error: one'], ['two']])
  })
})

test('timestamps have the format of the interface and keep their order', () => {
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 4_000_000_000_000 }), (ms) => {
      const text = timestamp(ms)
      expect(text).toMatch(/^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{1,6}\+00$/)
      const fraction = Number(`0.${/\.(\d+)/.exec(text)?.[1]}`)
      expect(Math.floor(fraction * 1000 + 1e-9)).toBe(ms % 1000)
    }),
  )
})

test('a seeded id leads back to its index, and nothing else does', () => {
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 2 ** 48 - 1 }), fc.nat(100), (index, kind) => {
      const id = seededId(kind, index)
      expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
      expect(seededIndex(kind, id)).toBe(index)
      expect(seededIndex(kind + 1, id)).toBe(-1)
    }),
  )
  for (const id of ['', 'x', '00000000-0000-4000-8000-000000000000']) expect(seededIndex(11, id)).toBe(-1)
})
