import { describe, expect, it } from 'vitest'
import { linkedAbort } from '../../../src/dns/wire/linked-abort.ts'

describe('a signal that follows another one', () => {
  it('has the reason of the other one', () => {
    const outer = new AbortController()
    const linked = linkedAbort(outer.signal)
    outer.abort('interrupted')
    linked.end()
    expect(linked.signal.reason).toBe('interrupted')
  })

  it('ends without an error of its own, because a run over many domains ends a hundred thousand of them', () => {
    const outer = new AbortController()
    const [one, other] = [linkedAbort(outer.signal), linkedAbort(outer.signal)]
    one.end()
    other.end()
    expect(one.signal.reason).toMatchObject({ name: 'AbortError' })
    expect(other.signal.reason).toBe(one.signal.reason)
  })
})
