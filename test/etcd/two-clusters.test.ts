import { describe, expect, it } from 'vitest'
import { run } from '../../src/cli.ts'
import { DnsTransportError } from '../../src/context.ts'
import { signedOutFormat } from '../../src/storage/file-formats.ts'
import { createFakeContext, jsonResponse } from '../fake-context.ts'
import { createMemoryEtcd } from './memory-etcd.ts'

const silent = async (): Promise<never> => {
  throw new DnsTransportError('timeout', 'no answer')
}

/** What a logout leaves. */
const NOTE = Buffer.from(signedOutFormat.text({ signedOut: 'id', host: 'ci', at: 0 })).toString('base64')

/** A machine of a fleet that has two clusters behind its list of members. Nobody is signed in to either. */
function machine(isSignedOut = false) {
  const clusters = { a: createMemoryEtcd('11'), b: createMemoryEtcd('22') }
  const written: string[] = []
  return {
    written,
    context: createFakeContext({
      dns: { udp: silent, tcp: silent, systemResolvers: async () => [] },
      environment: {
        storeKey: Buffer.alloc(32, 1).toString('base64'),
        settings: {
          store: 'etcd',
          store_url: 'https://a.example:2379,https://b.example:2379,https://a.example:2380',
          base_url: 'https://api.example.com',
        },
      },
      respond: (request) => {
        const { hostname, pathname } = request.url
        if (pathname === '/v3/kv/txn') written.push(hostname)
        if (isSignedOut && pathname === '/v3/kv/range')
          return jsonResponse(200, {
            header: { cluster_id: hostname.startsWith('a.') ? '11' : '22', revision: '5' },
            kvs: [{ value: NOTE, mod_revision: '5', version: '1' }],
          })
        const answer = clusters[hostname.startsWith('a.') ? 'a' : 'b'](request)
        return answer ?? jsonResponse(401, {})
      },
    }),
  }
}

describe('two clusters behind one list of members', () => {
  describe.each([
    ['that is absent', false],
    ['that was signed out', true],
  ])('are reported in place of a session %s', (_what, isSignedOut) => {
    it.each([
      ['auth', 'token'],
      ['logout', '--yes'],
      ['login', '--no-browser', '--client-id', 'cli'],
    ])('by %s %s', async (...words) => {
      const { context, written } = machine(isSignedOut)
      expect(await run(words, context)).toBe(7)
      expect(context.stderr.text).toContain('another cluster of etcd answered at https://b.example:2379')
      expect(context.stderr.text).toContain('check --store-url')
      expect(written).toEqual([])
    })
  })

  it('are named by auth status', async () => {
    const { context } = machine()
    await run(['auth', 'status', '--json'], context)
    expect(JSON.parse(context.stdout.text).etcd.members).toMatchObject([
      { url: 'https://a.example:2379', problem: null },
      { url: 'https://b.example:2379', problem: 'it belongs to another cluster' },
      { url: 'https://a.example:2380', problem: null },
    ])
  })

  it('are a problem for doctor', async () => {
    const { context } = machine()
    // Time stands still: no check is too slow.
    context.clock.sleep = (_ms, signal) =>
      new Promise((_resolve, reject) => signal?.addEventListener('abort', () => reject(signal.reason)))
    await run(['doctor', '--json'], context)
    expect(JSON.parse(context.stdout.text).data).toContainEqual({
      check: 'etcd',
      status: 'problem',
      message: 'another cluster of etcd answered at https://b.example:2379',
      remedy: 'check --store-url: its members have to belong to one cluster',
    })
  })
})
