import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import { type Clock, type HttpRequest, type HttpResponse, HttpTransportError } from '../../src/context.ts'
import { renewAccessToken } from '../../src/session/credential.ts'
import type { RenewOptions } from '../../src/session/session-file.ts'
import { prepareEtcdSignIn } from '../../src/session/shared/sign-in.ts'
import type { SignInSteps } from '../../src/session/sign-in.ts'
import { createIo, type Io } from '../../src/terminal/io.ts'
import { createFakeClock, createFakeContext, fakeSettings, jsonResponse } from '../fake-context.ts'
import { createMemoryEtcd } from './memory-etcd.ts'

/** Treatment of a refresh request by the service; `consumed` rotates the token and loses the answer. */
export type ServiceFate = 'tokens' | 'refused' | 'busy' | 'consumed' | 'unreachable' | 'killed'

/** Creates a service that rotates refresh tokens and revokes grants on reuse. */
function createService() {
  const grants: { token: string; isRevoked: boolean }[] = []
  let made = 0
  const service = {
    refreshes: 0,
    reuse: 0,
    fate: (): ServiceFate => 'tokens',
    /** Called after connecting, before the first byte is sent. */
    connected: () => {},
    /** Called when the service has received a token. */
    received: () => {},
    signIn() {
      const token = `refresh-${++made}`
      grants.push({ token, isRevoked: false })
      return token
    },
    isRevoked: () => grants.at(-1)?.isRevoked === true,
    isCurrent: (token: string | undefined) =>
      grants.some((grant) => !grant.isRevoked && grant.token === token),
    async handle({ body, beforeSend }: HttpRequest): Promise<HttpResponse> {
      const fate = service.fate()
      if (fate === 'unreachable') throw new HttpTransportError('connect', 'no', 'nobody is there')
      service.connected()
      try {
        beforeSend?.()
      } catch (error) {
        throw new HttpTransportError('aborted', 'no', 'the request was not sent', error)
      }
      service.received()
      const sent = new URLSearchParams(body).get('refresh_token') ?? ''
      if (fate === 'refused') return jsonResponse(400, { error: 'invalid_request' })
      if (fate === 'busy') return jsonResponse(429, {}, { 'retry-after': '2' })
      const grant = grants.find(({ token, isRevoked }) => token === sent && !isRevoked)
      if (grant === undefined) {
        service.reuse += 1
        for (const one of grants) one.isRevoked = true
        return jsonResponse(400, { error: 'invalid_grant' })
      }
      service.refreshes += 1
      grant.token = `refresh-${++made}`
      if (fate === 'killed') return new Promise<never>(() => {})
      if (fate === 'consumed') throw new HttpTransportError('timeout', 'maybe', 'no complete response')
      return jsonResponse(200, {
        access_token: `access-${made}`,
        token_type: 'Bearer',
        expires_in: 900,
        refresh_token: grant.token,
      })
    },
  }
  return service
}

export const STORE_KEY = Buffer.alloc(32, 7).toString('base64')

/** Creates machines in this process that share a session in an etcd in memory. */
export function createFleet(clock: Clock & { advance?(ms: number): void } = createFakeClock()) {
  const etcd = createMemoryEtcd()
  const service = createService()
  // Prefer /dev/shm: every renewal flushes its files several times, and no test here cuts the power.
  const home = mkdtempSync(join(existsSync('/dev/shm') ? '/dev/shm' : tmpdir(), 'mailclaim-fleet-'))
  onTestFinished(() => rmSync(home, { recursive: true, force: true }))
  let seed = 1
  const fraction = () => {
    seed = (seed * 16807) % 2147483647
    return seed / 2147483647
  }

  return {
    etcd,
    service,
    clock,
    /** Creates a machine: its Io, with a directory for its files. Machines with the same directory are one. */
    async machine(
      host: string,
      storeKey = STORE_KEY,
      profile = 'default',
      directory = host,
    ): Promise<Io & { readonly stderr: { readonly text: string } }> {
      const made = createFakeContext({
        home: join(home, directory),
        environment: {
          storeKey,
          storeUser: 'mailclaim',
          storePassword: 'secret',
          settings: { store: 'etcd', store_url: 'https://a.test:2379,https://b.test:2379' },
        },
        http: {
          send: (request) =>
            request.url.host === '127.0.0.1:1' ? service.handle(request) : etcd.handle(request),
          close: async () => {},
        },
      })
      const context = {
        ...made,
        clock,
        installation: { ...made.installation, host },
        random: { fraction, bytes: (length: number) => Uint8Array.from({ length }, () => fraction() * 256) },
      }
      return createIo(context, await fakeSettings(context, { profile })) as Io & {
        readonly stderr: { readonly text: string }
      }
    },
    async signIn(io: Io, preparing: Promise<Pick<SignInSteps, 'complete'>> = prepareEtcdSignIn(io)) {
      const prepared = await preparing
      const access = { value: 'access-0', scope: null, expiresAt: 0, lifetimeSeconds: 900 }
      return prepared.complete({
        kind: 'session',
        service: 'http://127.0.0.1:1',
        client: 'client-1',
        scope: null,
        resource: null,
        secret: service.signIn(),
        access,
      })
    },
    renew: (io: Io, options: RenewOptions = {}) => renewAccessToken(io, { always: true, ...options }),
  }
}
