import { type ChildProcess, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import { replaceShared } from '../../src/session/shared/replace.ts'
import { isValue, type SharedValue, SharedVault } from '../../src/session/shared/vault.ts'
import type { Settings } from '../../src/settings/settings.ts'
import { createFakeClock, createFakeContext, type FakeContext, fakeSettings } from '../fake-context.ts'
import { realClock } from '../session/processes.ts'
import { createSandboxSession, type SandboxSession, withEffects } from '../session/sandbox-session.ts'
import { type Ended, PROGRAM } from '../stories/built-program.ts'
import { type Cluster, STORE_PASSWORD, STORE_USER } from './cluster.ts'

/** Machines that share one sign-in: processes of the built program, and a sandbox in the process of the test. */
export interface Fleet {
  readonly session: SandboxSession
  readonly cluster: Cluster
  readonly vault: SharedVault
  /** A machine in this process: real connections, everything else faked, so that no wait takes any time. */
  inProcess(options?: { home?: string; urls?: string }): Promise<{ context: FakeContext; settings: Settings }>
  /** The key in etcd. */
  readonly key: string
  /** What encrypts. */
  readonly storeKey: string
  readonly env: Record<string, string>
  /** @param on a machine other than the one that looks at the session. */
  signIn(on?: SharedVault, record?: { readonly signedInAt: number }): Promise<void>
  /** As if the access token had been received 15 minutes earlier. */
  expire(): Promise<void>
  value(): Promise<SharedValue>
  /** A directory for the state of one machine. */
  machine(): string
  start(words: readonly string[], options?: MachineOptions): { child: ChildProcess; ended: Promise<Ended> }
  run(words: readonly string[], options?: MachineOptions): Promise<Ended>
  harm(): Promise<{ refreshes: number; reuse: number; revoked: number }>
}

export interface MachineOptions {
  /** Where it keeps its state; absent: where nothing can be kept. */
  readonly home?: string
  readonly node?: string
  readonly env?: Readonly<Record<string, string>>
}

/** A fleet whose session is at a key of its own. */
export async function createFleet(cluster: Cluster): Promise<Fleet> {
  const home = mkdtempSync(join(tmpdir(), 'mailclaim-fleet-'))
  const running = new Set<ChildProcess>()
  onTestFinished(() => {
    for (const child of running) child.kill('SIGKILL')
    rmSync(home, { recursive: true, force: true })
  })
  const prefix = `/mailclaim/${randomBytes(4).toString('hex')}`
  const storeKey = randomBytes(32).toString('base64')
  const store = {
    store: 'etcd',
    store_url: cluster.urls,
    store_prefix: prefix,
    store_ca: cluster.ca,
    store_cert: cluster.cert,
  }
  const session = await createSandboxSession(
    { environment: { storeKey, storeUser: STORE_USER, storePassword: STORE_PASSWORD } },
    { clock: realClock },
    { autoApprove: true },
  )
  const context = withEffects(session.context, {})
  const given = { baseUrl: session.base.href.replace(/\/$/, ''), clientId: session.clientId }
  const settings = await fakeSettings(
    withEffects(context, { environment: { ...context.environment, settings: store } }),
    given,
  )
  const vault = new SharedVault(context, settings)
  const value = async () => {
    const found = await vault.read()
    if (!isValue(found)) throw new Error('nobody is signed in')
    return found
  }
  const variables = Object.fromEntries(
    Object.entries(store).map(([name, text]) => [`MAILCLAIM_${name.toUpperCase()}`, text]),
  )
  const env: Record<string, string> = {
    PATH: process.env['PATH'] ?? '',
    LANG: 'C.UTF-8',
    ...variables,
    MAILCLAIM_STORE_KEY: storeKey,
    MAILCLAIM_STORE_USER: STORE_USER,
    MAILCLAIM_STORE_PASSWORD: STORE_PASSWORD,
    MAILCLAIM_BASE_URL: session.base.href.replace(/\/$/, ''),
  }
  let machines = 0
  const fleet: Fleet = {
    session,
    cluster,
    vault,
    key: vault.access.key,
    storeKey,
    env,
    value,
    async signIn(on = vault, more) {
      const tokens = await session.newTokens()
      const issuer = session.base.href.replace(/\/$/, '')
      const id = randomBytes(6).toString('hex')
      const now = Date.now()
      const { seconds, boot = null } = realClock.sinceBoot()
      const scope = tokens.scope ?? null
      const shared = { id, issuer, clientId: session.clientId, scope }
      await replaceShared(on, {
        record: {
          ...shared,
          kind: 'oauth',
          profile: 'default',
          resource: null,
          store: 'etcd',
          signedInAt: now,
          ended: null,
          ...more,
        },
        secret: { generation: 1, issuedAt: now, value: tokens.refreshToken },
        token: {
          session: id,
          generation: 1,
          issuer,
          clientId: session.clientId,
          value: tokens.accessToken,
          scope,
          narrowed: false,
          expiresInSeconds: tokens.expiresInSeconds,
          received: { wall: now, sinceBoot: seconds, boot },
        },
      })
    },
    async expire() {
      for (;;) {
        const current = await value()
        const { token } = current.contents
        if (token === null) return
        const { received } = token
        const earlier = { ...received, wall: received.wall - 900_000, sinceBoot: received.sinceBoot - 900 }
        const next = { ...current.contents, token: { ...token, received: earlier } }
        if ((await vault.replace(current, next, vault.newWriter())).kind === 'done') return
      }
    },
    async inProcess({ home: state = '/proc/nowhere', urls = cluster.urls } = {}) {
      const own = createFakeContext({
        clock: createFakeClock(Date.now()),
        http: context.http,
        environment: context.environment,
      })
      const { random } = context
      const directories = { config: `${state}/config`, state: `${state}/state`, user: `${state}/user` }
      const environment = { ...context.environment, settings: { ...store, store_url: urls } }
      const machine = withEffects(own, { random, directories, environment })
      return { context: machine, settings: await fakeSettings(machine, given) }
    },
    machine() {
      const path = join(home, `machine-${++machines}`)
      mkdirSync(path)
      return path
    },
    start(words, { home: state, node = process.execPath, env: more } = {}) {
      // Nothing can be created there, not even by root.
      const directory = state ?? '/proc/nowhere'
      const child = spawn(node, [PROGRAM, ...words], {
        env: {
          ...env,
          HOME: directory,
          MAILCLAIM_CONFIG_DIR: join(directory, 'config'),
          MAILCLAIM_STATE_DIR: join(directory, 'state'),
          ...more,
        },
        stdio: ['ignore', 'pipe', 'pipe'],
      })
      running.add(child)
      let stdout = ''
      let stderr = ''
      child.stdout?.setEncoding('utf8').on('data', (text: string) => {
        stdout += text
      })
      child.stderr?.setEncoding('utf8').on('data', (text: string) => {
        stderr += text
      })
      const ended = new Promise<Ended>((resolve) => {
        child.once('close', (code, signal) => {
          running.delete(child)
          resolve({ code: code ?? signal ?? 'SIGKILL', stdout, stderr })
        })
      })
      return { child, ended }
    },
    run: (words, options) => fleet.start(words, options).ended,
    async harm() {
      const { refreshes, reuse_detections: reuse, grants_revoked: revoked } = await session.counts()
      return { refreshes, reuse, revoked }
    },
  }
  await fleet.signIn()
  return fleet
}
