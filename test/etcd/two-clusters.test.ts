import { describe, expect, it } from 'vitest'
import { run } from '../../src/cli.ts'
import { DnsTransportError, TransportError } from '../../src/context.ts'
import { replaceSession } from '../../src/session/replace.ts'
import { proveShared } from '../../src/session/shared/replace.ts'
import { signedOutFormat } from '../../src/storage/file-formats.ts'
import { createFakeContext, fakeSettings, jsonResponse } from '../fake-context.ts'
import { createMemoryEtcd } from './memory-etcd.ts'

const silent = async (): Promise<never> => {
  throw new DnsTransportError('timeout', 'no answer')
}

/** What a logout leaves. */
const NOTE = Buffer.from(signedOutFormat.text({ signedOut: 'id', host: 'ci', at: 0 })).toString('base64')

const SIGN_IN = {
  base: new URL('https://api.example.com'),
  clientId: 'cli',
  scope: undefined,
  resource: undefined,
  tokens: { accessToken: 'a', refreshToken: 'r', expiresInSeconds: 900, scope: undefined },
}

/** A machine of a fleet that has two clusters behind its list of members, with the same in both. */
async function machine(found: 'nothing' | 'a note' | 'a session' = 'nothing') {
  const clusters = { a: createMemoryEtcd('11'), b: createMemoryEtcd('22') }
  const written: string[] = []
  const state = { silent: '' }
  const all = 'https://a.example:2379,https://b.example:2379,https://a.example:2380'
  const contextOf = (urls: string) =>
    createFakeContext({
      dns: { udp: silent, tcp: silent, systemResolvers: async () => [] },
      environment: {
        storeKey: Buffer.alloc(32, 1).toString('base64'),
        settings: { store: 'etcd', store_url: urls, base_url: 'https://api.example.com' },
      },
      respond: (request) => {
        const { hostname, pathname } = request.url
        if (hostname === state.silent) throw new TransportError('connect', 'no', 'refused')
        if (pathname === '/v3/kv/txn') written.push(hostname)
        if (found === 'a note' && pathname === '/v3/kv/range')
          return jsonResponse(200, {
            header: { cluster_id: hostname.startsWith('a.') ? '11' : '22', revision: '5' },
            kvs: [{ value: NOTE, mod_revision: '5', version: '1' }],
          })
        const answer = clusters[hostname.startsWith('a.') ? 'a' : 'b'](request)
        return answer ?? jsonResponse(401, {})
      },
    })
  const signIn = async (urls: string) => {
    const context = contextOf(urls)
    const settings = await fakeSettings(context, {})
    await replaceSession(context, settings, { ...SIGN_IN, store: await proveShared(context, settings) })
  }
  if (found === 'a session')
    for (const urls of ['https://a.example:2379', 'https://b.example:2379']) await signIn(urls)
  written.length = 0
  const context = contextOf(all)
  return { written, state, contextOf, context }
}

describe('two clusters behind one list of members', () => {
  describe.each(['nothing', 'a note', 'a session'] as const)('are reported if %s is there', (found) => {
    it.each([
      ...(found === 'a session' ? [['auth', 'rekey']] : [['auth', 'token']]),
      ['logout', '--yes'],
      ['login', '--no-browser', '--client-id', 'cli'],
    ])('by %s %s', async (...words) => {
      const { context, written } = await machine(found)
      expect(await run(words, context)).toBe(7)
      expect(context.stderr.text).toContain('another cluster of etcd answered at https://b.example:2379')
      expect(context.stderr.text).toContain('check --store-url')
      expect(context.stderr.text).not.toContain('Waiting for your approval')
      expect(written).toEqual([])
    })
  })

  describe('of which one is silent are not reported', () => {
    const open = 'no answer from b.example:2379: if that is another cluster of etcd'

    it('by a logout, which says so', async () => {
      const { context, state, contextOf } = await machine('a session')
      state.silent = 'b.example'
      expect(await run(['logout', '--yes'], context)).toBe(0)
      expect(context.stderr.text).toContain('The session of profile default was removed from etcd.\n')
      expect(context.stderr.text).toContain(
        'Signing out does not revoke the grant at the service. If it is still active, revoke it there',
      )
      expect(context.stderr.text.replace(/\s+/g, ' ')).toContain(open)
      const other = contextOf('https://a.example:2379')
      expect(await run(['logout', '--yes'], other)).toBe(0)
      expect(other.stderr.text).toBe('The session of profile default was not in etcd.\n')
    })

    it('by a change of the key, which says so', async () => {
      const { context, state } = await machine('a session')
      state.silent = 'b.example'
      expect(await run(['auth', 'rekey'], context)).toBe(0)
      expect(context.stderr.text.replace(/\s+/g, ' ')).toContain(open)
    })

    it('by a sign-in, which is stored where it was proved that it can be', async () => {
      const { context, state, written } = await machine()
      state.silent = 'b.example'
      const settings = await fakeSettings(context, {})
      const vault = await proveShared(context, settings)
      state.silent = ''
      written.length = 0
      await replaceSession(context, settings, { ...SIGN_IN, store: vault })
      expect(written).toEqual(['a.example'])
    })
  })

  it('are named by auth status', async () => {
    const { context } = await machine()
    await run(['auth', 'status', '--json'], context)
    expect(JSON.parse(context.stdout.text).etcd.members).toMatchObject([
      { url: 'https://a.example:2379', problem: null },
      { url: 'https://b.example:2379', problem: 'it belongs to another cluster' },
      { url: 'https://a.example:2380', problem: null },
    ])
  })

  it('are a problem for doctor', async () => {
    const { context } = await machine()
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
