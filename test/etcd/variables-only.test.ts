import { expect, it } from 'vitest'
import { run } from '../../src/cli.ts'
import { DnsTransportError } from '../../src/context.ts'
import { replaceSession } from '../../src/session/replace.ts'
import { proveShared } from '../../src/session/shared/replace.ts'
import { createFakeContext, jsonResponse } from '../fake-context.ts'
import { createMemoryEtcd } from './memory-etcd.ts'

const silent = async (): Promise<never> => {
  throw new DnsTransportError('timeout', 'no answer')
}

/** What `doctor` says about the configuration of a machine of a fleet, which has only variables. */
async function configurationOf({ isSignedIn }: { isSignedIn: boolean }) {
  const etcd = createMemoryEtcd()
  const context = createFakeContext({
    dns: { udp: silent, tcp: silent, systemResolvers: async () => [] },
    environment: {
      storeKey: Buffer.alloc(32, 1).toString('base64'),
      settings: {
        store: 'etcd',
        store_url: 'https://etcd.example:2379',
        base_url: 'https://api.example.com',
      },
    },
    respond: (request) => etcd(request) ?? jsonResponse(401, {}),
  })
  const chosen = {
    store: { value: 'etcd', source: 'environment' },
    store_prefix: { value: '/mailclaim', source: 'default' },
    store_url: { value: 'https://etcd.example:2379', source: 'environment' },
  } as const
  const settings = { profile: { value: 'default', source: 'default' }, chosen } as unknown as Parameters<
    typeof replaceSession
  >[1]
  if (isSignedIn)
    await replaceSession(context, settings, {
      base: new URL('https://api.example.com'),
      clientId: 'client-7',
      scope: undefined,
      resource: undefined,
      tokens: { accessToken: 'a', refreshToken: 'r', expiresInSeconds: 900, scope: undefined },
      store: await proveShared(context, settings),
    })
  // Time stands still: no check is too slow.
  context.clock.sleep = (_ms, signal) =>
    new Promise((_resolve, reject) => signal?.addEventListener('abort', () => reject(signal.reason)))
  await run(['doctor', '--json'], context)
  return JSON.parse(context.stdout.text).data.find(
    ({ check }: { check: string }) => check === 'configuration',
  )
}

it('a machine of a fleet needs no client id: it is in the session', async () => {
  expect(await configurationOf({ isSignedIn: true })).toMatchObject({
    status: 'ok',
    message: 'profile default at https://api.example.com; client id client-7, from the session',
  })
})

it('without a session in etcd, the client id is missing', async () => {
  expect(await configurationOf({ isSignedIn: false })).toMatchObject({
    status: 'problem',
    message: 'the OAuth client id is not configured',
  })
})
