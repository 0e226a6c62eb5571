import { describe, expect, it } from 'vitest'
import { run } from '../../src/cli.ts'
import { DnsTransportError } from '../../src/context.ts'
import { createFakeContext, jsonResponse } from '../fake-context.ts'
import { createMemoryEtcd } from './memory-etcd.ts'

const silent = async (): Promise<never> => {
  throw new DnsTransportError('timeout', 'no answer')
}

/** A machine of a fleet that has two clusters behind its list of members. Nobody has signed in to either. */
function machine() {
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
        const answer = clusters[hostname.startsWith('a.') ? 'a' : 'b'](request)
        return answer ?? jsonResponse(401, {})
      },
    }),
  }
}

describe('two clusters behind one list of members', () => {
  it.each([
    ['auth', 'token'],
    ['logout', '--yes'],
    ['login', '--no-browser', '--client-id', 'cli'],
  ])('are reported in place of an absent session: %s %s', async (...words) => {
    const { context, written } = machine()
    expect(await run(words, context)).toBe(7)
    expect(context.stderr.text).toContain('another cluster of etcd answered at https://b.example:2379')
    expect(context.stderr.text).toContain('check --store-url')
    expect(written).toEqual([])
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
