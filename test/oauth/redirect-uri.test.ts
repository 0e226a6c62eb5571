import { describe, expect, it } from 'vitest'
import { redirectTarget } from '../../src/oauth/redirect-uri.ts'

describe('the redirect URI', () => {
  it.each([
    [undefined, undefined, 0, 'http://127.0.0.1:4711/callback'],
    [undefined, 8765, 8765, 'http://127.0.0.1:4711/callback'],
    ['http://127.0.0.1/cb', undefined, 0, 'http://127.0.0.1:4711/cb'],
    ['http://127.0.0.1/cb?x=1', undefined, 0, 'http://127.0.0.1:4711/cb?x=1'],
    ['http://127.0.0.1/cb', 99, 99, 'http://127.0.0.1:4711/cb'],
    ['http://127.0.0.1:8765/cb', undefined, 8765, 'http://127.0.0.1:8765/cb'],
    ['http://127.0.0.1:80', undefined, 80, 'http://127.0.0.1:80'],
    ['http://[::1]:8765/cb', undefined, 8765, 'http://[::1]:8765/cb'],
    ['http://localhost:8765/', 8765, 8765, 'http://localhost:8765/'],
  ])('the redirect URI %s with port %s listens on %s', (uri, port, listens, result) => {
    const target = redirectTarget(uri, port)
    expect(target.listen?.port).toBe(listens)
    expect(target.uri(4711)).toBe(result)
  })

  // A name below localhost is asked in DNS on many machines.
  it.each(['https://app.example.com/cb', 'http://app.localhost/cb'])(
    'the redirect URI %s has no listener, because it is not on this machine',
    (uri) => {
      const target = redirectTarget(uri, undefined)
      expect(target.listen).toBeUndefined()
      expect(target.uri(0)).toBe(uri)
    },
  )

  it.each([
    ['nonsense', undefined],
    ['myapp://callback', undefined],
    ['http://127.0.0.1/cb#part', undefined],
    ['http://user@127.0.0.1/cb', undefined],
    ['http://127.0.0.1:0/cb', undefined],
    ['http://127.0.0.1:1/cb', 2],
    ['https://app.example.com/cb', 1],
  ])('the redirect URI %s with port %s is a usage error', (uri, port) => {
    expect(() => redirectTarget(uri, port)).toThrow(expect.objectContaining({ exit: 2 }))
  })
})
