import { describe, expect, it } from 'vitest'
import { parseRedirectUri } from '../../src/oauth/redirect.ts'

describe('the redirect URI', () => {
  it.each([
    [undefined, ['127.0.0.1'], 0, '/callback'],
    ['http://127.0.0.1:8765/cb?x=1', ['127.0.0.1'], 8765, '/cb'],
    ['http://127.0.0.1:80', ['127.0.0.1'], 80, '/'],
    ['http://[::1]:8765/cb', ['::1'], 8765, '/cb'],
    ['http://localhost:8765/', ['127.0.0.1', '::1'], 8765, '/'],
  ])('parseRedirectUri(%s) returns the hosts %j, the port %i and the path %s', (uri, hosts, port, path) => {
    expect(parseRedirectUri(uri)).toEqual({ uri, hosts, port, path })
  })

  it.each([
    'nonsense',
    'myapp://callback',
    'http://127.0.0.1:1/cb#part',
    'http://user@127.0.0.1:1/cb',
    'http://127.0.0.1/cb',
    'http://127.0.0.1:0/cb',
    'http://127.0.0.1:1/c\nb',
    'http://127.0.0.1:1/c\\b',
    'https://app.example.com:1/cb',
    'http://app.localhost:1/cb',
  ])('the redirect URI %j is a usage error, exit 2', (uri) => {
    expect(() => parseRedirectUri(uri)).toThrow(expect.objectContaining({ exit: 2 }))
  })
})
