import { execFileSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { existsSync, readdirSync, readFileSync, renameSync, statSync, writeFileSync } from 'node:fs'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest'
import { run } from '../../src/cli.ts'
import { type Context, TransportError } from '../../src/context.ts'
import { seal } from '../../src/credentials/etcd/sealed.ts'
import { examineShared } from '../../src/doctor/etcd.ts'
import { describeSession } from '../../src/session/describe.ts'
import { renew } from '../../src/session/refresh.ts'
import { forgetShared } from '../../src/session/shared/forget.ts'
import { proveShared, replaceShared, sealAgain } from '../../src/session/shared/replace.ts'
import { SharedVault } from '../../src/session/shared/vault.ts'
import { sharedSessionFormat } from '../../src/storage/file-formats.ts'
import { fakeSettings, jsonResponse } from '../fake-context.ts'
import { needs } from '../requirements.ts'
import { endingOf, realClock } from '../session/processes.ts'
import { endOf, withEffects } from '../session/sandbox-session.ts'
import { AS_ROOT, type Cluster, STORE_PASSWORD, startCluster } from './cluster.ts'
import { createFleet, type Fleet } from './fleet.ts'
import { createMemoryEtcd, type EtcdState } from './memory-etcd.ts'

type Machine = Awaited<ReturnType<Fleet['inProcess']>>
type Send = Context['http']['send']

const use = ({ context, settings }: Machine) => endOf(() => renew(context, settings, { reason: 'stale' }))
const renewNow = ({ context, settings }: Machine) =>
  endOf(() => renew(context, settings, { reason: 'asked' }))
const failure = ({ context, settings }: Machine) =>
  renew(context, settings, { reason: 'stale' }).then(
    () => expect.fail('it was renewed'),
    (error: unknown) => error,
  )

/** The machine, with something between it and all that it talks to. */
function between(
  { context, settings }: Machine,
  send: (request: Parameters<Send>[0], pass: Send) => ReturnType<Send>,
): Machine {
  const { http } = context
  const pass: Send = (request) => http.send(request)
  return {
    context: withEffects(context, { http: { ...http, send: (request) => send(request, pass) } }),
    settings,
  }
}

const signOut = ({ context, settings }: Machine) => forgetShared(context, new SharedVault(context, settings))

function withKey({ context, settings }: Machine, storeKey: string): Machine {
  return { context: withEffects(context, { environment: { ...context.environment, storeKey } }), settings }
}

/** The machine, with a service that refuses its refresh token. */
const refuses = (machine: Machine, status: number, error: string) =>
  between(machine, async (request, pass) => {
    if (!request.url.pathname.endsWith('/oauth/token')) return pass(request)
    await request.beforeSend?.()
    return jsonResponse(status, { error })
  })

const lost = () => new TransportError('reset', 'maybe', 'the connection was closed')
const isTransaction = ({ url }: { url: URL }) => url.pathname === '/v3/kv/txn'

describe.runIf(needs('etcd'))('the refresh token of a fleet', () => {
  let cluster: Cluster
  beforeAll(async () => {
    cluster = await startCluster()
  })
  afterAll(() => cluster?.stop())

  /** A fleet, and a machine of it that has renewed the session when etcd was gone, and keeps the new refresh token. */
  async function machineThatKeeps() {
    const fleet = await createFleet(cluster)
    await fleet.expire()
    const machine = await fleet.inProcess({ home: fleet.machine() })
    return { fleet, machine, path: await renewAndKeep(machine) }
  }

  /** Renews the session, with etcd gone when the new refresh token is to be stored. @returns the path of the file with it. */
  async function renewAndKeep(machine: Machine): Promise<string> {
    let transactions = 0
    const cut = between(machine, async (request, pass) => {
      if (isTransaction(request) && ++transactions > 1) throw lost()
      return pass(request)
    })
    expect(await use(cut)).toBe('ok')
    const [, path = ''] = /kept on this machine \((.+?)\)/.exec(machine.context.stderr.text) ?? []
    expect(existsSync(path)).toBe(true)
    return path
  }

  describe('of a new sign-in that another command of the machine keeps', () => {
    /** A machine whose other command keeps a token while `request`, of which the answer is late, is answered. */
    async function lateAnswer(
      isLate: (request: { url: URL }) => boolean,
      meanwhile: (fleet: Fleet) => unknown,
    ) {
      const fleet = await createFleet(cluster)
      // Without a state directory: what it has seen is no help.
      const other = await fleet.inProcess()
      const kept = { path: '' }
      const late = between(await fleet.inProcess(), async (request, pass) => {
        const answer = await pass(request)
        if (!isLate(request) || kept.path !== '') return answer
        await meanwhile(fleet)
        await fleet.expire()
        kept.path = await renewAndKeep(other)
        return answer
      })
      const isSafe = async () => {
        expect(existsSync(kept.path)).toBe(true)
        expect(await use(other)).toBe('ok')
        expect(other.context.stderr.text).toContain('is in etcd now')
        expect(await fleet.harm()).toEqual({ refreshes: 1, reuse: 0, revoked: 0 })
      }
      return { fleet, late, other, isSafe }
    }

    it('stays when the login that stored the sign-in gets its answer', async () => {
      const { fleet, late, isSafe } = await lateAnswer(isTransaction, () => undefined)
      await fleet.signIn(new SharedVault(late.context, late.settings))
      await isSafe()
    })

    it('stays when the logout of the one before gets its answer', async () => {
      const { late, isSafe } = await lateAnswer(isTransaction, (fleet) => fleet.signIn())
      expect(await signOut(late)).toBe(true)
      await isSafe()
    })

    it('stays when a command that has read the one before goes on, and is stored by it', async () => {
      const { fleet, late } = await lateAnswer(
        ({ url }) => url.pathname === '/v3/kv/range',
        (it) => it.signIn(),
      )
      await fleet.expire()
      expect(await use(late)).toBe('ok')
      expect((await fleet.value()).contents).toMatchObject({ journal: null, secret: { generation: 2 } })
      expect(await fleet.harm()).toEqual({ refreshes: 1, reuse: 0, revoked: 0 })
    })
  })

  it('that a machine keeps is removed by a logout, but not that of another cluster', async () => {
    const { machine, path } = await machineThatKeeps()
    const elsewhere = path.replace(/[0-9a-f]{32}/, 'a'.repeat(32))
    writeFileSync(elsewhere, readFileSync(path, 'utf8').replace(/"cluster":"\d+"/, '"cluster":"1"'))
    expect(await signOut(machine)).toBe(true)
    expect(existsSync(path)).toBe(false)
    expect(existsSync(elsewhere)).toBe(true)
  })

  it.each([['--yes'], ['--all']])('that stays for another cluster is named by logout %s', async (option) => {
    const { machine, path } = await machineThatKeeps()
    const { context } = machine
    const elsewhere = path.replace(/[0-9a-f]{32}/, 'a'.repeat(32))
    const work = join(context.directories.state, `pending.work.${'b'.repeat(32)}.json`)
    const text = readFileSync(path, 'utf8').replace(/"cluster":"\d+"/, '"cluster":"1"')
    renameSync(path, elsewhere)
    for (const file of [elsewhere, work]) writeFileSync(file, text)
    expect(await run(['logout', option, '--json'], context)).toBe(0)
    const { text: said } = context.stderr
    expect(said).toMatch(/warning: still on this machine: .* may hold the only good refresh token/)
    expect([elsewhere, work].map((file) => said.includes(file))).toEqual([true, option === '--all'])
    expect([elsewhere, work].map((file) => existsSync(file))).toEqual([true, true])
  })

  /** Makes a new key the one that encrypts the session. */
  async function rekey(fleet: Fleet): Promise<string> {
    const next = randomBytes(32).toString('base64')
    const env = { MAILCLAIM_STORE_KEY: `${next} ${fleet.storeKey}` }
    expect(endingOf(await fleet.run(['auth', 'rekey'], { env }))).toBe('0')
    return next
  }

  describe('that a machine keeps under a key that was removed since', () => {
    it('is removed if etcd has a later sign-in', async () => {
      const { fleet, machine, path } = await machineThatKeeps()
      await fleet.signIn()
      const next = withKey(machine, await rekey(fleet))
      expect(await use(next)).toBe('ok')
      expect(existsSync(path)).toBe(false)
    })

    it('may be the only good one: nothing is sent until the key is there again', async () => {
      const { fleet, machine, path } = await machineThatKeeps()
      const key = await rekey(fleet)
      const without = withKey(machine, key)
      expect(await failure(without)).toMatchObject({
        code: 'store_key_wrong',
        exit: 4,
        message: expect.stringContaining(path),
        hint: expect.stringMatching(/add the key .* MAILCLAIM_STORE_KEY .* mailclaim login/),
      })
      expect(await describeSession(without.context, without.settings)).toMatchObject({
        state: 'store_unavailable',
        problem: { code: 'store_key_wrong' },
        shared: { pending: [path] },
      })
      expect(await fleet.harm()).toEqual({ refreshes: 1, reuse: 0, revoked: 0 })
      expect(await use(withKey(machine, `${key} ${fleet.storeKey}`))).toBe('ok')
      expect(existsSync(path)).toBe(false)
      expect(machine.context.stderr.text).toContain('is in etcd now')
      expect(await fleet.harm()).toEqual({ refreshes: 1, reuse: 0, revoked: 0 })
    })
  })

  it('that a machine keeps can be asked about, and examined, while etcd is out of space', async () => {
    const { fleet, machine, path } = await machineThatKeeps()
    const message = 'etcdserver: mvcc: database space exceeded'
    const full = between(machine, async (request, pass) => {
      if (isTransaction(request)) return jsonResponse(429, { error: message, message, code: 8 })
      if (!request.url.pathname.endsWith('/status')) return pass(request)
      return jsonResponse(200, { version: '3.4.23', errors: ['memberID:7 alarm:NOSPACE '] })
    })
    expect(await describeSession(full.context, full.settings)).toMatchObject({
      problem: { message: expect.stringContaining('etcd refused to write: database space exceeded') },
      shared: { revision: (await fleet.value()).revision, pending: [path] },
    })
    const context = withEffects(full.context, { clock: realClock })
    expect(await examineShared('credential store', context, full.settings)).toMatchObject([
      { check: 'etcd', status: 'problem', message: 'etcd refused to write: memberID:7 alarm:NOSPACE' },
      { check: 'etcd', status: 'ok' },
      { check: 'credential store', status: 'problem' },
    ])
    expect(await use(full)).toBe('store_unavailable')
    expect(await use(machine)).toBe('ok')
    expect(await fleet.harm()).toEqual({ refreshes: 1, reuse: 0, revoked: 0 })
  })

  it('of a user who may not write is refused by doctor, and by a login before the browser opens; neither writes', async () => {
    const fleet = await createFleet(cluster)
    const { context, settings } = await fleet.inProcess()
    const asRoot = (...words: string[]) => cluster.etcdctl(...AS_ROOT, ...words)
    await asRoot('role', 'add', 'reader')
    await asRoot('role', 'grant-permission', 'reader', '--prefix=true', 'read', '/mailclaim/')
    await asRoot('user', 'add', `reader:${STORE_PASSWORD}`)
    await asRoot('user', 'grant-role', 'reader', 'reader')
    const writer = withEffects(context, { clock: realClock })
    const reader = withEffects(writer, { environment: { ...context.environment, storeUser: 'reader' } })
    const revision = async () => (await fleet.vault.client.read(fleet.key, () => false)).revision
    const before = await revision()
    expect(await examineShared('credential store', reader, settings)).toMatchObject([
      { check: 'etcd', status: 'ok' },
      { status: 'problem', message: expect.stringContaining('permission denied') },
    ])
    await expect(proveShared(reader, settings)).rejects.toMatchObject({ code: 'store_refused', exit: 4 })
    await proveShared(writer, settings)
    expect(await examineShared('credential store', writer, settings)).toMatchObject([
      { check: 'etcd', status: 'ok' },
      { check: 'credential store', status: 'ok' },
    ])
    expect(await revision()).toBe(before)
  })

  it('is not looked for again and again if no member accepts the client certificate', async () => {
    const fleet = await createFleet(cluster)
    const { context } = await fleet.inProcess()
    const pem = join(cluster.directory, 'stranger.pem')
    const key = join(cluster.directory, 'stranger.key')
    const words = ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes']
    execFileSync('openssl', [...words, '-subj', '/O=stranger', '-out', pem, '-keyout', key], {
      stdio: 'pipe',
    })
    writeFileSync(pem, readFileSync(key), { flag: 'a' })
    const store = { ...context.environment.settings, store_cert: pem }
    const stranger = withEffects(context, { environment: { ...context.environment, settings: store } })
    const machine = {
      context: stranger,
      settings: await fakeSettings(stranger),
    }
    expect(await failure(machine)).toMatchObject({
      code: 'store_not_configured',
      exit: 3,
      message: expect.stringMatching(
        /the member asks for a client certificate that it accepts \(TLS alert: /,
      ),
    })
    expect(await fleet.harm()).toEqual({ refreshes: 0, reuse: 0, revoked: 0 })
  })

  it.each([1, 3])(
    'is shown by doctor with the remedy for %i members that refuse the certificate',
    async (refusing) => {
      const fleet = await createFleet(cluster)
      const names = cluster.members.slice(0, refusing).map(({ url }) => url)
      const machine = between(await fleet.inProcess(), async (request, pass) => {
        if (!names.includes(request.url.origin)) return pass(request)
        throw new TransportError(
          'certificate',
          'maybe',
          'the service asks for a client certificate that it accepts',
        )
      })
      const context = withEffects(machine.context, { clock: realClock })
      const warnings = names.map((url) => ({
        status: 'warning',
        message: `${url} can't be used: the member asks for a client certificate that it accepts`,
        remedy: `check --store-ca, --store-cert, and the certificate of that member${refusing === 1 ? '; the session works as long as a majority answers' : ''}`,
      }))
      const end = refusing === 1 ? { status: 'ok' } : { status: 'problem', exit: 3 }
      expect(await examineShared('credential store', context, machine.settings)).toMatchObject([
        ...warnings,
        end,
      ])
    },
  )

  it('is shown by doctor with a warning two weeks before the client certificate expires', async () => {
    const fleet = await createFleet(cluster)
    const { context, settings } = await fleet.inProcess()
    const later = withEffects(context, { clock: { ...realClock, now: () => Date.now() + 20 * 86_400_000 } })
    expect(await examineShared('credential store', later, settings)).toMatchObject([
      {
        status: 'warning',
        message: expect.stringContaining(
          `the client certificate in the file ${cluster.cert} (MAILCLAIM_STORE_CERT) expires on `,
        ),
      },
      { status: 'ok' },
      { status: 'ok' },
    ])
  })

  describe('that a machine keeps in a file that was damaged', () => {
    const damages: Record<string, [(text: string) => string, code: string]> = {
      'cut off': [(text) => text.slice(0, text.length / 2), 'file_unusable'],
      'with another generation': [
        (text) => text.replace('"generation":2', '"generation":3'),
        'store_value_unusable',
      ],
    }
    it.each(Object.keys(damages))('keeps the old one from being sent, and is named: %s', async (name) => {
      const { fleet, machine, path } = await machineThatKeeps()
      const [damage, code] = damages[name] ?? expect.fail()
      const text = readFileSync(path, 'utf8')
      writeFileSync(path, damage(text))
      const found = await failure(machine)
      expect(found).toMatchObject({ code, exit: 4, message: expect.stringContaining(path) })
      const { context, settings } = machine
      const again = () => renew(context, settings, { reason: 'asked', retryInterrupted: true })
      expect(await endOf(again)).toBe(code)
      expect(await fleet.harm()).toEqual({ refreshes: 1, reuse: 0, revoked: 0 })
      renameSync(path, `${path}.bad`)
      expect(await use(machine)).toBe('refresh_interrupted')
      writeFileSync(path, text)
      expect(await use(machine)).toBe('ok')
      expect(await fleet.harm()).toEqual({ refreshes: 1, reuse: 0, revoked: 0 })
    })

    it('stops nobody once the session was signed in again', async () => {
      const { fleet, machine, path } = await machineThatKeeps()
      writeFileSync(path, '{')
      await fleet.signIn()
      await fleet.expire()
      expect(await use(machine)).toBe('ok')
      expect(existsSync(path)).toBe(true)
    })
  })

  it('that a machine keeps for a cluster which was replaced since is told from one that is to be stored', async () => {
    const { machine, path } = await machineThatKeeps()
    const text = readFileSync(path, 'utf8')
    const status = async () => {
      const before = machine.context.stdout.text.length
      await run(['auth', 'status', '--format', 'jsonl'], machine.context)
      return JSON.parse(machine.context.stdout.text.slice(before)).etcd
    }
    writeFileSync(path, text.replace(/"cluster":"\d+"/, '"cluster":"1"'))
    expect(await status()).toMatchObject({ pending: [], pending_elsewhere: [path] })
    writeFileSync(path, '{')
    expect(await status()).toMatchObject({ pending: [path], pending_elsewhere: [] })
  })

  it('is kept on the machine if another cluster answers when it is stored', async () => {
    const fleet = await createFleet(cluster)
    await fleet.expire()
    const { record, ...contents } = (await fleet.value()).contents
    const other = { ...contents, record: { ...record, id: 'ffffffffffff' }, cluster: '1', writes: '3' }
    const sealed = await seal(sharedSessionFormat.text(other), fleet.key, fleet.vault.keys)
    const pair = { value: Buffer.from(sealed).toString('base64'), mod_revision: '5', version: '3' }
    const header = { cluster_id: '1', revision: '5' }
    const machine = await fleet.inProcess({ home: fleet.machine() })
    let transactions = 0
    const misled = between(machine, async (request, pass) =>
      isTransaction(request) && ++transactions > 1
        ? jsonResponse(200, { header, responses: [{ response_range: { kvs: [pair] } }] })
        : pass(request),
    )
    expect(await use(misled)).toBe('ok')
    expect(machine.context.stderr.text).toContain('another cluster of etcd answered')
    expect(await use(machine)).toBe('ok')
    expect((await fleet.value()).contents).toMatchObject({ journal: null, secret: { generation: 2 } })
    expect(await fleet.harm()).toEqual({ refreshes: 1, reuse: 0, revoked: 0 })
  })

  it('is not put back if another machine has renewed the session before the confirmation came', async () => {
    const fleet = await createFleet(cluster)
    await fleet.expire()
    const machine = await fleet.inProcess({ home: fleet.machine() })
    let transactions = 0
    const slow = between(machine, async (request, pass) => {
      const answer = await pass(request)
      if (!isTransaction(request) || ++transactions !== 2) return answer
      await fleet.expire()
      expect(await use(await fleet.inProcess())).toBe('ok')
      throw lost()
    })
    expect(await use(slow)).toBe('ok')
    expect((await fleet.value()).contents).toMatchObject({ journal: null, secret: { generation: 3 } })
    expect(machine.context.stderr.text).toBe('')
    expect(await fleet.harm()).toEqual({ refreshes: 2, reuse: 0, revoked: 0 })
  })

  it('is not sent again after a refusal if another machine has used it before the removal of the entry was confirmed', async () => {
    const fleet = await createFleet(cluster)
    await fleet.expire()
    let transactions = 0
    let refusals = 0
    const refused = between(await fleet.inProcess(), async (request, pass) => {
      if (request.url.pathname.endsWith('/oauth/token') && ++refusals === 1) {
        // What is sent is counted from here.
        await request.beforeSend?.()
        return { ...jsonResponse(429, { error: 'x' }), headers: { 'retry-after': '1' } }
      }
      const answer = await pass(request)
      if (!isTransaction(request) || ++transactions !== 2) return answer
      expect(await use(await fleet.inProcess())).toBe('ok')
      throw lost()
    })
    expect(await use(refused)).toBe('ok')
    expect((await fleet.value()).contents).toMatchObject({ journal: null, secret: { generation: 2 } })
    expect(await fleet.harm()).toEqual({ refreshes: 1, reuse: 0, revoked: 0 })
  })

  it('is answered for before another machine takes the renewal for interrupted, whatever --http-timeout is', async () => {
    const fleet = await createFleet(cluster)
    await fleet.expire()
    const { context, settings } = await fleet.inProcess()
    const limits: number[] = []
    const machine = between(
      { context, settings: { ...settings, httpTimeoutMs: 600_000 } },
      (request, pass) => {
        if (request.url.pathname.endsWith('/oauth/token')) limits.push(request.timeoutMs)
        return pass(request)
      },
    )
    expect(await use(machine)).toBe('ok')
    expect(limits).toEqual([30_000])
  })

  it('may have been used if the answer has no other, also if etcd is gone by then', async () => {
    const fleet = await createFleet(cluster)
    await fleet.expire()
    let isGone = false
    const machine = between(await fleet.inProcess({ home: fleet.machine() }), async (request, pass) => {
      if (isGone) throw lost()
      if (!request.url.pathname.endsWith('/oauth/token')) return pass(request)
      await pass(request)
      isGone = true
      return jsonResponse(200, { access_token: 'a', token_type: 'Bearer', expires_in: 900 })
    })
    expect(await use(machine)).toBe('refresh_unknown')
  })

  describe('that the service has just answered with', () => {
    const kept = (home: string) =>
      readdirSync(home, { recursive: true }).filter((name) => String(name).includes('pending.'))

    it('is on the disk of the machine before etcd is asked, whatever ends the process then', async () => {
      const fleet = await createFleet(cluster)
      await fleet.expire()
      const home = fleet.machine()
      const machine = await fleet.inProcess({ home })
      let transactions = 0
      const killed = between(machine, async (request, pass) => {
        if (isTransaction(request) && ++transactions === 2) throw new Error('killed')
        return pass(request)
      })
      await expect(renew(killed.context, killed.settings, { reason: 'stale' })).rejects.toThrow('killed')
      expect(kept(home)).toHaveLength(1)
      expect(await use(machine)).toBe('ok')
      expect(machine.context.stderr.text).toContain('is in etcd now')
      expect(kept(home)).toEqual([])
      expect(await fleet.harm()).toEqual({ refreshes: 1, reuse: 0, revoked: 0 })
    })

    it('is not stored by another process of the machine, too, which finds the file', async () => {
      const fleet = await createFleet(cluster)
      await fleet.expire()
      const home = fleet.machine()
      const other = await fleet.inProcess({ home })
      let isStored = () => {}
      let pauses = () => {}
      const stored = new Promise<void>((resolve) => {
        isStored = resolve
      })
      const pause = new Promise<void>((resolve) => {
        pauses = resolve
      })
      const sleep = async () => {
        pauses()
        await stored
      }
      const waiting = {
        ...other,
        context: withEffects(other.context, { clock: { ...other.context.clock, sleep } }),
      }
      let transactions = 0
      let second: Promise<string> | undefined
      const first = between(await fleet.inProcess({ home }), async (request, pass) => {
        if (isTransaction(request) && ++transactions === 2) {
          second = use(waiting)
          await Promise.race([pause, second])
        }
        return pass(request)
      })
      expect(await use(first)).toBe('ok')
      isStored()
      expect(await second).toBe('ok')
      expect(other.context.stderr.text).toBe('')
      expect(kept(home)).toEqual([])
    })

    it('is on the disk only until etcd has it, or the session is over', async () => {
      const fleet = await createFleet(cluster)
      await fleet.expire()
      const home = fleet.machine()
      const machine = await fleet.inProcess({ home })
      expect(await use(machine)).toBe('ok')
      expect(kept(home)).toEqual([])
      await fleet.expire()
      let transactions = 0
      const overtaken = between(machine, async (request, pass) => {
        if (isTransaction(request) && ++transactions === 2) {
          expect(kept(home)).toHaveLength(1)
          await fleet.signIn()
        }
        return pass(request)
      })
      expect(await use(overtaken)).toBe('session_busy')
      expect(kept(home)).toEqual([])
    })
  })

  it('is sent by the next command of a machine whose own end left a journal entry', async () => {
    const fleet = await createFleet(cluster)
    await fleet.expire()
    const machine = await fleet.inProcess({ home: fleet.machine() })
    const { context, settings } = between(machine, async (request, pass) => {
      const answer = await pass(request)
      if (isTransaction(request)) throw new Error('ended')
      return answer
    })
    await expect(renew(context, settings, { reason: 'stale' })).rejects.toThrow('ended')
    expect((await fleet.value()).contents.journal).not.toBeNull()
    expect(await use(machine)).toBe('ok')
    expect(await fleet.harm()).toEqual({ refreshes: 1, reuse: 0, revoked: 0 })
  })

  describe('that a machine has sent, without an answer', () => {
    /** A fleet in which build-1 has sent it, and another machine of that fleet. */
    async function sentByOne() {
      const fleet = await createFleet(cluster)
      await fleet.expire()
      const cut = between(await fleet.inProcess(), async (request, pass) => {
        const answer = await pass(request)
        if (request.url.pathname.endsWith('/oauth/token')) throw lost()
        return answer
      })
      expect(await use(cut)).toBe('refresh_unknown')
      const { context, settings } = await fleet.inProcess()
      const program = { ...context.program, host: 'build-2' }
      const other: Machine = { context: withEffects(context, { program }), settings }
      const vault = new SharedVault(other.context, settings)
      return { fleet, vault, describe: () => describeSession(other.context, settings) }
    }

    it('is said to be with that machine, whichever has encrypted it once more since', async () => {
      const { vault, describe } = await sentByOne()
      expect(await sealAgain(vault)).toBe(true)
      expect(await describe()).toMatchObject({
        state: 'refreshing',
        doubt: expect.stringMatching(/^build-1 has been renewing the session since/),
        shared: { writtenBy: 'build-2' },
      })
    })

    it('is said to be with a machine if an earlier version wrote the entry, which does not name it', async () => {
      const { fleet, vault, describe } = await sentByOne()
      const value = await fleet.value()
      const { writer, sha256, sentAt } = value.contents.journal ?? expect.fail('no entry')
      const journal = { writer, sha256, sentAt, host: null }
      await vault.replace(value, { ...value.contents, journal }, vault.newWriter())
      expect(await describe()).toMatchObject({
        doubt: expect.stringMatching(/^a machine has been renewing the session since/),
      })
    })
  })

  it('that another machine has sent is not waited for longer than a command has time', async () => {
    const fleet = await createFleet(cluster)
    await fleet.expire()
    const other = between(await fleet.inProcess({ home: fleet.machine() }), async (request, pass) => {
      if (request.url.pathname.endsWith('/oauth/token')) {
        await request.beforeSend?.()
        const { context, settings } = await fleet.inProcess({ home: fleet.machine() })
        const begun = context.clock.monotonic()
        await expect(
          renew(context, settings, { reason: 'stale', deadline: begun + 5000 }),
        ).rejects.toMatchObject({
          code: 'session_busy',
          message: 'the time was up while another mailclaim was renewing the session',
        })
        expect(context.clock.monotonic() - begun).toBe(5000)
        return jsonResponse(400, { error: 'invalid_request' })
      }
      return pass(request)
    })
    expect(await use(other)).not.toBe('ok')
    expect(await use(await fleet.inProcess())).toBe('ok')
  })

  it('is not asked etcd for longer than a command has time', async () => {
    const fleet = await createFleet(cluster)
    const machine = await fleet.inProcess()
    const { clock } = machine.context
    const { context, settings } = between(machine, async ({ timeoutMs }) => {
      clock.advance(timeoutMs)
      throw lost()
    })
    const begun = clock.monotonic()
    const asked = renew(context, settings, { reason: 'stale', deadline: begun + 3000 })
    await expect(asked).rejects.toMatchObject({ code: 'store_unavailable', exit: 7 })
    expect(clock.monotonic() - begun).toBe(3000)
  })

  describe('whose journal entry etcd does not confirm while a command has time', () => {
    /** @param answer of the first transaction of a command that has 3 seconds, `connectMs` of which it takes to connect. */
    async function hurriedMachine(
      connectMs: number,
      answer: (pass: () => ReturnType<Send>) => ReturnType<Send>,
    ) {
      const fleet = await createFleet(cluster)
      await fleet.expire()
      const machine = await fleet.inProcess({ home: fleet.machine() })
      const { clock } = machine.context
      const limits: number[] = []
      const { context, settings } = between(machine, async (request, pass) => {
        if (request.url.pathname.endsWith('/oauth/token')) clock.advance(connectMs)
        if (!isTransaction(request)) return pass(request)
        limits.push(request.timeoutMs)
        if (limits.length === 1) return answer(() => pass(request))
        clock.advance(request.timeoutMs)
        throw lost()
      })
      const begun = clock.monotonic()
      return {
        fleet,
        machine,
        limits,
        took: () => clock.monotonic() - begun,
        renewing: renew(context, settings, { reason: 'stale', deadline: begun + 3000 }),
      }
    }

    it.each([
      ['and was not written', false],
      ['although it was written', true],
    ])('is not sent, %s, and the next command on the machine goes on', async (_name, isWritten) => {
      const { fleet, machine, took, renewing } = await hurriedMachine(0, async (pass) => {
        if (isWritten) await pass()
        machine.context.clock.advance(2000)
        throw lost()
      })
      await expect(renewing).rejects.toMatchObject({
        code: 'store_unavailable',
        exit: 7,
        message: expect.stringMatching(/Nothing was sent, and the session is untouched$/),
      })
      expect(took()).toBe(3000)
      expect((await fleet.value()).contents.journal === null).toBe(!isWritten)
      expect(await fleet.harm()).toEqual({ refreshes: 0, reuse: 0, revoked: 0 })
      expect(await use(machine)).toBe('ok')
      expect(await fleet.harm()).toEqual({ refreshes: 1, reuse: 0, revoked: 0 })
    })

    it('has one second for the entry if the connection took all the time', async () => {
      const { renewing, limits } = await hurriedMachine(2999, (pass) => pass())
      await expect(renewing).resolves.toMatchObject({ record: { profile: 'default' } })
      expect(limits[0]).toBe(1000)
    })
  })

  it('that the service has not used is said to be by the next command of the machine, if etcd was gone', async () => {
    const fleet = await createFleet(cluster)
    await fleet.expire()
    const machine = await fleet.inProcess({ home: fleet.machine() })
    let transactions = 0
    const cut = between(machine, async (request, pass) => {
      if (isTransaction(request) && ++transactions > 1) throw lost()
      return pass(request)
    })
    expect(await failure(refuses(cut, 429, 'slow_down'))).toMatchObject({
      message: expect.stringContaining('is kept on this machine'),
      hint: expect.stringMatching(/^run any command on this machine once etcd answers/),
    })
    expect((await fleet.value()).contents.journal).not.toBeNull()
    expect(await use(machine)).toBe('ok')
    expect(await fleet.harm()).toEqual({ refreshes: 1, reuse: 0, revoked: 0 })
  })

  describe('of a machine that can keep nothing', () => {
    afterEach(() => void vi.unstubAllEnvs())

    /** @param fate of each transaction by its number from 1, and how long the machine has been at it. */
    async function machineOf(
      fate: (transaction: number, ms: number, pass: () => ReturnType<Send>) => ReturnType<Send>,
    ) {
      const fleet = await createFleet(cluster)
      await fleet.expire()
      const machine = await fleet.inProcess()
      vi.stubEnv('TMPDIR', '/proc/nowhere')
      let transactions = 0
      const cut = between(machine, async (request, pass) =>
        isTransaction(request)
          ? fate(++transactions, machine.context.clock.monotonic(), () => pass(request))
          : pass(request),
      )
      return { fleet, machine, cut }
    }

    it('is stored although etcd is away for half a minute', async () => {
      const { fleet, cut } = await machineOf(async (at, ms, pass) => {
        if (at > 1 && ms < 30_000) throw lost()
        return pass()
      })
      expect(await use(cut)).toBe('ok')
      expect((await fleet.value()).contents).toMatchObject({ journal: null, secret: { generation: 2 } })
    })

    it('is kept on the machine as soon as a directory takes it, as long as etcd is tried', async () => {
      const { fleet, machine, cut } = await machineOf(async (at, ms, pass) => {
        if (at > 1 && ms > 20_000) vi.unstubAllEnvs()
        if (at > 1) throw lost()
        return pass()
      })
      expect(await use(cut)).toBe('ok')
      expect(machine.context.stderr.text).toContain('it is kept on this machine')
      expect(machine.context.clock.monotonic()).toBeLessThan(40_000)
      expect(await use(machine)).toBe('ok')
      expect(machine.context.stderr.text).toContain('is in etcd now')
      expect(await fleet.harm()).toEqual({ refreshes: 1, reuse: 0, revoked: 0 })
    })

    it('is not sent, and a file that can be written later says that the entry has to go', async () => {
      let late: (() => ReturnType<Send>) | undefined
      const { fleet, machine, cut } = await machineOf(async (at, ms, pass) => {
        if (at === 1) late = pass
        if (ms > 20_000) vi.unstubAllEnvs()
        throw lost()
      })
      expect(await failure(cut)).toMatchObject({
        message: expect.stringContaining('the session is untouched'),
      })
      await late?.()
      expect(await use(machine)).toBe('ok')
      expect(await fleet.harm()).toEqual({ refreshes: 1, reuse: 0, revoked: 0 })
    })

    it.each([
      ['is out of space', 429, 'store_unavailable', { message: 'database space exceeded', code: 8 }],
      ['refuses the user', 403, 'store_refused', { message: 'etcdserver: permission denied', code: 7 }],
    ])('is not sent if etcd %s, which is said at once', async (_why, status, code, body) => {
      const { machine, cut } = await machineOf(async () => jsonResponse(status, body))
      expect(await failure(cut)).toMatchObject({
        code,
        message: expect.stringMatching(/Nothing was sent, and the session is untouched$/),
      })
      expect(machine.context.clock.monotonic()).toBeLessThan(1000)
    })

    it('is not sent if etcd has no users, and that is what the hint is about', async () => {
      const message = 'etcdserver: authentication is not enabled'
      const { cut } = await machineOf(async () => jsonResponse(400, { message, code: 9 }))
      expect(await failure(cut)).toMatchObject({
        code: 'store_refused',
        hint: expect.stringMatching(
          /^this etcd has no users: turn authentication on .*, or unset MAILCLAIM_STORE_USER/,
        ),
      })
    })

    it('is lost if etcd refuses it for as long as others wait, and the way on is to sign in', async () => {
      const message = 'etcdserver: mvcc: database space exceeded'
      const { machine, cut } = await machineOf(async (at, _ms, pass) =>
        at > 1 ? jsonResponse(429, { error: message, message, code: 8 }) : pass(),
      )
      expect(await failure(cut)).toMatchObject({
        code: 'refresh_token_lost',
        hint: expect.stringMatching(/^sign in again, for the whole fleet: mailclaim login/),
      })
      expect(machine.context.clock.monotonic()).toBeGreaterThan(45_000)
      expect(machine.context.clock.monotonic()).toBeLessThanOrEqual(50_000)
    })

    it('is lost if no member can be connected to, and nothing left the machine', async () => {
      const { cut } = await machineOf(async (at, _ms, pass) => {
        if (at > 1) throw new TransportError('connect', 'no', 'the connection was refused')
        return pass()
      })
      expect(await use(cut)).toBe('refresh_token_lost')
    })

    it('may be stored all the same if the answer to one of the tries was lost, which the error says', async () => {
      const { fleet, cut } = await machineOf(async (at, _ms, pass) => {
        if (at <= 2) await pass()
        if (at === 2) throw lost()
        if (at > 2) throw new TransportError('connect', 'no', 'the connection was refused')
        return pass()
      })
      expect(await failure(cut)).toMatchObject({
        code: 'store_unavailable',
        exit: 7,
        message: expect.stringMatching(/has not confirmed .* It may be stored all the same, even later$/),
        hint: expect.stringMatching(
          /^see mailclaim auth status.* sign in again, for the whole fleet: mailclaim login/,
        ),
      })
      expect((await fleet.value()).contents).toMatchObject({ journal: null, secret: { generation: 2 } })
    })

    it('is tried for no longer than others wait, however slowly etcd fails', async () => {
      const { machine, cut } = await machineOf(async (_at, _ms, pass) => pass())
      let transactions = 0
      const slow = between(cut, async (request, pass) => {
        if (!isTransaction(request) || ++transactions === 1) return pass(request)
        machine.context.clock.advance(request.timeoutMs)
        throw lost()
      })
      expect(await use(slow)).toBe('store_unavailable')
      expect(machine.context.clock.monotonic()).toBeGreaterThan(45_000)
      expect(machine.context.clock.monotonic()).toBeLessThanOrEqual(50_000)
    })

    it('is said to be unused although etcd is away for half a minute after the refusal', async () => {
      const { fleet, cut } = await machineOf(async (at, ms, pass) => {
        if (at > 1 && ms < 30_000) throw lost()
        return pass()
      })
      expect(await use(refuses(cut, 429, 'slow_down'))).toBe('slow_down')
      expect((await fleet.value()).contents).toMatchObject({ journal: null, secret: { generation: 1 } })
    })

    it('is unused but not said to be if etcd stays away: the error says what is safe', async () => {
      const { machine, cut } = await machineOf(async (at, _ms, pass) => {
        if (at > 1) throw lost()
        return pass()
      })
      expect(await failure(refuses(cut, 429, 'slow_down'))).toMatchObject({
        message: expect.stringContaining('The service has not used the refresh token'),
        hint: expect.stringMatching(/may be in etcd.*this is safe.*--retry-interrupted/),
      })
      expect(machine.context.clock.monotonic()).toBeGreaterThan(45_000)
    })

    it('is recorded as refused although etcd is away for half a minute', async () => {
      const { fleet, cut } = await machineOf(async (at, ms, pass) => {
        if (at > 1 && ms < 30_000) throw lost()
        return pass()
      })
      expect(await use(refuses(cut, 400, 'invalid_grant'))).toBe('session_over')
      expect((await fleet.value()).contents.record.ended).toMatchObject({ cause: 'refused' })
    })

    it('is not sent, and a journal entry that arrives late is removed', async () => {
      let late: (() => ReturnType<Send>) | undefined
      const { fleet, cut } = await machineOf(async (at, ms, pass) => {
        if (at === 1) late = pass
        if (ms < 30_000) throw lost()
        await late?.()
        late = undefined
        return pass()
      })
      expect(await use(cut)).toBe('ok')
      expect((await fleet.value()).contents).toMatchObject({ journal: null, secret: { generation: 2 } })
      expect(await fleet.harm()).toEqual({ refreshes: 1, reuse: 0, revoked: 0 })
    })

    it('is not sent, and if the entry may still arrive, the error says what is safe then', async () => {
      let late: (() => ReturnType<Send>) | undefined
      const { fleet, machine, cut } = await machineOf(async (at, _ms, pass) => {
        if (at === 1) late = pass
        throw lost()
      })
      expect(await failure(cut)).toMatchObject({
        code: 'store_unavailable',
        exit: 7,
        message: expect.stringMatching(/Nothing was sent, but the journal entry of 2026-.* may be in etcd/),
        hint: expect.stringContaining('mailclaim auth refresh --retry-interrupted'),
      })
      await late?.()
      expect(await use(machine)).toBe('refresh_interrupted')
      const { context, settings } = machine
      const again = () => renew(context, settings, { reason: 'asked', retryInterrupted: true })
      expect(await endOf(again)).toBe('ok')
      expect(await fleet.harm()).toEqual({ refreshes: 1, reuse: 0, revoked: 0 })
    })

    it('is not said to be unused if an earlier refresh, which was to be repeated, may have used it', async () => {
      const { machine, cut } = await machineOf(() => Promise.reject(lost()))
      const interrupted = between(machine, async (request, pass) => {
        const answer = await pass(request)
        if (isTransaction(request)) throw new Error('ended')
        return answer
      })
      const { context, settings } = interrupted
      await expect(renew(context, settings, { reason: 'stale' })).rejects.toThrow('ended')
      const again = renew(cut.context, settings, { reason: 'asked', retryInterrupted: true })
      await expect(again).rejects.toMatchObject({
        code: 'store_unavailable',
        message: expect.stringMatching(
          /Nothing was sent, but .*, and the outcome of the refresh before it, at 2026-.*, is still not known$/,
        ),
        hint: expect.stringMatching(/^sign in again, which is always safe: .* if the service did take it/),
      })
    })
  })

  it('is not sent if etcd has refused its journal entry, and no file is kept for that', async () => {
    const fleet = await createFleet(cluster)
    await fleet.expire()
    const machine = await fleet.inProcess({ home: fleet.machine() })
    const refusing = between(machine, async (request, pass) =>
      isTransaction(request) ? jsonResponse(403, { message: 'permission denied', code: 7 }) : pass(request),
    )
    expect(await use(refusing)).toBe('store_refused')
    const { directory } = new SharedVault(machine.context, machine.settings).paths
    expect(readdirSync(directory).filter((name) => name.startsWith('pending.'))).toEqual([])
    expect(await use(machine)).toBe('ok')
  })

  it('is not sent if etcd is gone when its journal entry was confirmed too late, and the next command here goes on', async () => {
    const fleet = await createFleet(cluster)
    await fleet.expire()
    const machine = await fleet.inProcess({ home: fleet.machine() })
    let transactions = 0
    const stopped = between(machine, async (request, pass) => {
      if (isTransaction(request) && ++transactions > 1) throw lost()
      const answer = await pass(request)
      if (isTransaction(request)) machine.context.clock.advance(20_000)
      return answer
    })
    expect(await failure(stopped)).toMatchObject({
      code: 'store_unavailable',
      message: expect.stringMatching(
        /^the session of profile default cannot be renewed: etcd doesn't answer: [^;]*\. Nothing was sent, and the session is untouched$/,
      ),
    })
    expect(await use(machine)).toBe('ok')
    expect(await fleet.harm()).toEqual({ refreshes: 1, reuse: 0, revoked: 0 })
  })

  it('is sent if its journal entry was encrypted once more before the confirmation came', async () => {
    const fleet = await createFleet(cluster)
    await fleet.expire()
    let transactions = 0
    const machine = between(await fleet.inProcess(), async (request, pass) => {
      const answer = await pass(request)
      if (!isTransaction(request) || ++transactions > 1) return answer
      expect(await sealAgain(fleet.vault)).toBe(true)
      throw lost()
    })
    expect(await use(machine)).toBe('ok')
    expect((await fleet.value()).contents).toMatchObject({ journal: null, secret: { generation: 2 } })
    expect(await fleet.harm()).toEqual({ refreshes: 1, reuse: 0, revoked: 0 })
  })

  it('is not sent if its journal entry was encrypted with a key that is not here before the confirmation came', async () => {
    const fleet = await createFleet(cluster)
    await fleet.expire()
    const machine = await fleet.inProcess({ home: fleet.machine() })
    let next = ''
    const late = between(machine, async (request, pass) => {
      const answer = await pass(request)
      if (!isTransaction(request) || next !== '') return answer
      next = await rekey(fleet)
      throw lost()
    })
    expect(await use(late)).toBe('store_key_wrong')
    // The machine has kept that the entry has to go.
    expect(await use(withKey(machine, `${next} ${fleet.storeKey}`))).toBe('ok')
    expect(await fleet.harm()).toEqual({ refreshes: 1, reuse: 0, revoked: 0 })
  })

  describe('that a sign-in stores when the first answer of etcd is lost', () => {
    /** Stores the session of a fleet in another profile, with the first transaction lost on the way there or back. */
    async function signInOf(
      fleet: Fleet,
      first: (pass: () => ReturnType<Send>) => Promise<unknown>,
      losses = 1,
    ) {
      const { record, secret, token } = (await fleet.value()).contents
      const { context, settings } = await fleet.inProcess()
      const profile = { ...settings.profile, value: 'other' }
      const machine = { context, settings: { ...settings, profile } }
      let transactions = 0
      const cut = between(machine, async (request, pass) => {
        if (!isTransaction(request) || ++transactions > losses) return pass(request)
        await first(() => pass(request))
        throw lost()
      })
      const signIn = async () =>
        replaceShared(new SharedVault(cut.context, cut.settings), {
          record: { ...record, profile: 'other' },
          secret,
          token: token && { ...token, received: { ...token.received, wall: 0, sinceBoot: 0, boot: null } },
        } as Parameters<typeof replaceShared>[1])
      return { machine, signIn }
    }

    it('may be stored all the same if no try has an answer, and the error says so', async () => {
      const fleet = await createFleet(cluster)
      const { signIn } = await signInOf(fleet, () => Promise.reject(lost()), Number.POSITIVE_INFINITY)
      await expect(signIn()).rejects.toMatchObject({
        code: 'store_unavailable',
        message: expect.stringContaining('The session may be stored all the same, even later'),
        hint: expect.stringMatching(/^check with mailclaim auth status .*before you sign in again/),
      })
    })

    it('is not stored if etcd is gone before that, and the error says so', async () => {
      const fleet = await createFleet(cluster)
      const { context, settings } = between(await fleet.inProcess(), () => Promise.reject(lost()))
      const { record, secret } = (await fleet.value()).contents
      const session = { record, secret, token: undefined } as Parameters<typeof replaceShared>[1]
      await expect(replaceShared(new SharedVault(context, settings), session)).rejects.toMatchObject({
        code: 'store_unavailable',
        exit: 7,
        message: expect.stringMatching(/The new session was not stored, and the previous one is unchanged$/),
        hint: expect.stringContaining('run the command again later'),
      })
    })

    it('does not come back when the transaction arrives after a logout', async () => {
      const fleet = await createFleet(cluster)
      let late: (() => ReturnType<Send>) | undefined
      const { machine, signIn } = await signInOf(fleet, async (pass) => {
        late = pass
      })
      await signIn()
      expect(await use(machine)).toBe('ok')
      expect(await signOut(machine)).toBe(true)
      await late?.()
      expect(await failure(machine)).toMatchObject({
        code: 'not_signed_in',
        message: expect.stringContaining('signed out for every machine by'),
      })
      expect(await fleet.harm()).toEqual({ refreshes: 1, reuse: 0, revoked: 0 })
    })

    it('does not replace the one that another machine has got for it since', async () => {
      const fleet = await createFleet(cluster)
      const { machine, signIn } = await signInOf(fleet, async (pass) => {
        await pass()
        expect(await use(machine)).toBe('ok')
      })
      await signIn()
      expect(await renewNow(machine)).toBe('ok')
      expect(await fleet.harm()).toEqual({ refreshes: 2, reuse: 0, revoked: 0 })
    })

    it('is stored although another machine has renewed the one before, instead of that try', async () => {
      const fleet = await createFleet(cluster)
      await fleet.expire()
      const before = await fleet.value()
      let transactions = 0
      const { context, settings } = between(await fleet.inProcess(), async (request, pass) => {
        if (!isTransaction(request) || ++transactions > 1) return pass(request)
        expect(await use(await fleet.inProcess())).toBe('ok')
        throw lost()
      })
      await fleet.signIn(new SharedVault(context, settings))
      expect((await fleet.value()).contents.record.id).not.toBe(before.contents.record.id)
      expect(await renewNow(await fleet.inProcess())).toBe('ok')
      expect(await fleet.harm()).toEqual({ refreshes: 2, reuse: 0, revoked: 0 })
    })

    it('is not stored over a logout that may have come after it', async () => {
      const fleet = await createFleet(cluster)
      const { machine, signIn } = await signInOf(fleet, async (pass) => {
        await pass()
        expect(await use(machine)).toBe('ok')
        await signOut(machine)
      })
      await expect(signIn()).rejects.toMatchObject({ code: 'session_busy', exit: 7 })
      expect(await use(machine)).toBe('not_signed_in')
    })
  })

  it('that the service has refused is removed by a logout, which does not call the grant active', async () => {
    const fleet = await createFleet(cluster)
    await fleet.expire()
    const machine = await fleet.inProcess()
    expect(await use(refuses(machine, 400, 'invalid_grant'))).toBe('session_over')
    expect(await run(['logout', '--yes'], machine.context)).toBe(0)
    expect(machine.context.stderr.text).toContain('removed from etcd, for every machine')
    expect(machine.context.stderr.text).not.toContain('stays active')
    expect(machine.context.stderr.text).toContain('does not revoke the grant')
  })

  it('may be removed by a logout whose transaction has no answer, which says so', async () => {
    const fleet = await createFleet(cluster)
    const machine = between(await fleet.inProcess(), async (request, pass) => {
      if (isTransaction(request)) throw lost()
      return pass(request)
    })
    await expect(signOut(machine)).rejects.toMatchObject({
      code: 'store_unavailable',
      exit: 7,
      message: expect.stringContaining('The session may be removed all the same, even later'),
      hint: expect.stringMatching(/^check with mailclaim auth status .*before you sign in again/),
    })
  })

  it('is removed by a logout, which says so although the confirmation was lost', async () => {
    const fleet = await createFleet(cluster)
    let transactions = 0
    const machine = between(await fleet.inProcess(), async (request, pass) => {
      const answer = await pass(request)
      if (isTransaction(request) && ++transactions === 1) throw lost()
      return answer
    })
    expect(await signOut(machine)).toBe(true)
    expect(await signOut(machine)).toBe(false)
  })

  describe('that a logout is to remove when the first answer of etcd is lost', () => {
    /** A machine with nothing between it and the first loss but what happens meanwhile. */
    async function machineWhose(fleet: Fleet, first: (pass: () => ReturnType<Send>) => Promise<unknown>) {
      let transactions = 0
      return between(await fleet.inProcess(), async (request, pass) => {
        if (!isTransaction(request) || ++transactions > 1) return pass(request)
        await first(() => pass(request))
        throw lost()
      })
    }
    const busy = {
      code: 'session_busy',
      exit: 7,
      message: expect.stringContaining('What is in etcd now was left as it is'),
      hint: expect.stringMatching(/^see mailclaim auth status; .* run mailclaim logout$/),
    }

    it('is not taken for that of a sign-in which came after it', async () => {
      const fleet = await createFleet(cluster)
      const machine = await machineWhose(fleet, async (pass) => {
        await pass()
        await fleet.signIn()
      })
      await expect(signOut(machine)).rejects.toMatchObject(busy)
      expect(await use(await fleet.inProcess())).toBe('ok')
    })

    it('is not taken for that of a sign-in which replaced it before', async () => {
      const fleet = await createFleet(cluster)
      const machine = await machineWhose(fleet, () => fleet.signIn())
      await expect(signOut(machine)).rejects.toMatchObject(busy)
      expect(await use(await fleet.inProcess())).toBe('ok')
    })

    it('is removed although another machine has renewed it before', async () => {
      const fleet = await createFleet(cluster)
      const machine = await machineWhose(fleet, async () => {
        expect(await renewNow(await fleet.inProcess())).toBe('ok')
      })
      expect(await signOut(machine)).toBe(true)
      expect(await use(await fleet.inProcess())).toBe('not_signed_in')
    })

    it('is left alone without the key if it may be another one', async () => {
      const fleet = await createFleet(cluster)
      const machine = await machineWhose(fleet, async (pass) => {
        await pass()
        await fleet.signIn()
      })
      await expect(signOut(withKey(machine, ''))).rejects.toMatchObject(busy)
      expect(await use(await fleet.inProcess())).toBe('ok')
      const again = await fleet.inProcess()
      expect(await signOut(withKey(again, ''))).toBe(true)
    })
  })

  describe('that this machine has seen', () => {
    it('is told from a session at another prefix, and an older one at either is not used', async () => {
      const fleets = [await createFleet(cluster), await createFleet(cluster)] as const
      const home = fleets[0].machine()
      const first = await fleets[0].value()
      expect(endingOf(await fleets[0].run(['auth', 'refresh'], { home }))).toBe('0')
      expect(endingOf(await fleets[1].run(['auth', 'refresh'], { home }))).toBe('0')
      const { vault } = fleets[0]
      await vault.replace(await fleets[0].value(), first.contents, vault.newWriter())
      expect(endingOf(await fleets[0].run(['auth', 'token', '--json'], { home }))).toBe('4 store_restored')
      expect(endingOf(await fleets[1].run(['auth', 'token', '--json'], { home }))).toBe('0')
    })

    it('is not replaced by that of an earlier sign-in, which a restored etcd brings back', async () => {
      const fleet = await createFleet(cluster)
      const machine = await fleet.inProcess({ home: fleet.machine() })
      const isRange = ({ url }: { url: URL }) => url.pathname === '/v3/kv/range'
      let snapshot: unknown
      const recording = between(machine, async (request, pass) => {
        if (!isRange(request)) return pass(request)
        const pieces: Uint8Array[] = []
        for await (const piece of (await pass(request)).body) pieces.push(piece)
        snapshot = JSON.parse(Buffer.concat(pieces).toString('utf8'))
        return jsonResponse(200, snapshot)
      })
      expect(await use(recording)).toBe('ok')
      await fleet.signIn()
      expect(await use(machine)).toBe('ok')
      const restored = between(machine, async (request, pass) =>
        isRange(request) ? jsonResponse(200, snapshot) : pass(request),
      )
      expect(await use(restored)).toBe('store_restored')
    })

    it('and that another machine has removed is told from a profile that never signed in', async () => {
      const fleet = await createFleet(cluster)
      const home = fleet.machine()
      expect(endingOf(await fleet.run(['auth', 'token'], { home }))).toBe('0')
      expect(endingOf(await fleet.run(['logout', '--yes']))).toBe('0')
      for (const command of ['token', 'status', 'refresh', 'rekey']) {
        for (const machine of [{ home }, {}]) {
          const here = await fleet.run(['auth', command, '--json'], machine)
          expect(endingOf(here)).toBe('4 not_signed_in')
          expect(here.stderr).toContain(`signed out for every machine by ${hostname()}, at 2`)
        }
      }
      const again = await fleet.run(['logout', '--yes', '--json'], { home })
      expect(JSON.parse(again.stdout)).toMatchObject({ data: [{ was_signed_in: false }] })
      expect((await fleet.run(['logout', '--all'], { home })).stderr).toContain('No profile is signed in.')
      const env = { MAILCLAIM_STORE_PREFIX: `${fleet.env['MAILCLAIM_STORE_PREFIX']}/never` }
      expect((await fleet.run(['auth', 'token', '--json'], { env })).stderr).toContain('is not signed in')
    })

    describe('and that etcd has lost, because it was set back under the same id', () => {
      /** Three machines that have used the session, and have renewed it since etcd was as it is once it is set back. */
      async function machinesOf() {
        const fleet = await createFleet(cluster)
        const state: EtcdState = { kept: new Map(), revision: 1 }
        const etcd = createMemoryEtcd('1', state)
        const machineAt = async (home?: string) =>
          between(
            await fleet.inProcess(home === undefined ? {} : { home }),
            async (request, pass) => etcd(request) ?? pass(request),
          )
        const machines = await Promise.all([1, 2, 3].map(() => machineAt(fleet.machine())))
        const [first] = machines as [Machine]
        const signIn = ({ context, settings }: Machine, signedInAt: number) =>
          fleet.signIn(new SharedVault(context, settings), { signedInAt })
        const all = (what: typeof renewNow) => inTurn(machines, what)
        await signIn(first, NOON)
        const copy = structuredClone(state)
        return {
          fleet,
          state,
          machines,
          first,
          machineAt,
          signIn,
          all,
          setBack: () => Object.assign(state, structuredClone(copy)),
        }
      }
      const NOON = Date.UTC(2026, 10, 22, 12)
      const HOUR = 3_600_000
      async function inTurn(machines: readonly Machine[], what: typeof renewNow) {
        const ends: string[] = []
        for (const machine of machines) ends.push(await what(machine))
        return ends
      }

      const encryptAgain = ({ context, settings }: Machine) => sealAgain(new SharedVault(context, settings))
      const beRefused = (machine: Machine) => renewNow(refuses(machine, 429, 'slow_down'))
      /** What happens once etcd was set back. */
      const afterwards: Record<string, (other: Machine, state: EtcdState) => unknown> = {
        'before anything else is written': () => undefined,
        'after writes of other clients': (_, state) => {
          state.revision += 100
        },
        'after another machine has encrypted it once more': encryptAgain,
        'after another machine has withdrawn a journal entry': beRefused,
        'after another machine has withdrawn three of them': async (other) => {
          for (const _ of [1, 2, 3]) await beRefused(other)
        },
      }
      it.each(Object.keys(afterwards))(
        'is not sent by a machine that has sent it, or has seen that another one did: %s',
        async (name) => {
          const { fleet, state, machines, machineAt, all } = await machinesOf()
          expect(await all(use)).toEqual(['ok', 'ok', 'ok'])
          const copy = structuredClone(state)
          const [sender, witness, waiting] = machines as [Machine, Machine, Machine]
          const cut = between(sender, async (request, pass) => {
            const answer = await pass(request)
            if (!request.url.pathname.endsWith('/oauth/token')) return answer
            throw lost()
          })
          expect(await renewNow(cut)).toBe('refresh_unknown')
          const { context, settings } = witness
          expect(await describeSession(context, settings)).toMatchObject({ state: 'refreshing' })
          expect(await renewNow(waiting)).toBe('refresh_interrupted')
          const before = await fleet.harm()
          Object.assign(state, copy)
          await afterwards[name]?.(await machineAt(), state)
          expect(await all(renewNow)).toEqual(['store_restored', 'store_restored', 'store_restored'])
          expect(await fleet.harm()).toEqual(before)
        },
      )

      it('is not put back by a machine that keeps it, and remembers nothing, after another one has used it', async () => {
        const { fleet, first, machineAt, signIn, setBack } = await machinesOf()
        const keeper = await machineAt()
        let transactions = 0
        const unconfirmed = between(keeper, async (request, pass) => {
          const answer = await pass(request)
          if (isTransaction(request) && ++transactions > 1) throw lost()
          return answer
        })
        const own = fleet.machine()
        vi.stubEnv('TMPDIR', own)
        onTestFinished(() => void vi.unstubAllEnvs())
        expect(await renewNow(unconfirmed)).toBe('ok')
        expect(readdirSync(own)).toHaveLength(1)
        vi.unstubAllEnvs()
        expect(await renewNow(first)).toBe('ok')
        const before = await fleet.harm()
        setBack()
        vi.stubEnv('TMPDIR', own)
        expect(await renewNow(keeper)).toBe('store_restored')
        expect(await fleet.harm()).toEqual(before)
        await signIn(first, NOON + HOUR)
        expect(await renewNow(keeper)).toBe('ok')
        expect(readdirSync(own)).toEqual([])
      })

      it('is not replaced by that of an earlier sign-in, however often it is written since', async () => {
        const { fleet, machineAt, signIn, all, setBack } = await machinesOf()
        const other = await machineAt()
        await signIn(other, NOON + HOUR)
        expect(await all(use)).toEqual(['ok', 'ok', 'ok'])
        const before = await fleet.harm()
        setBack()
        for (const _ of [1, 2, 3, 4]) expect(await encryptAgain(other)).toBe(true)
        expect(await all(renewNow)).toEqual(['store_restored', 'store_restored', 'store_restored'])
        expect(await fleet.harm()).toEqual(before)
      })

      it('is told from one whose journal entry another machine has withdrawn, encrypted once more, or renewed', async () => {
        const { fleet, machines, machineAt, all } = await machinesOf()
        const other = await machineAt()
        const seen: unknown[] = []
        const watched = between(other, async (request, pass) => {
          if (!request.url.pathname.endsWith('/oauth/token')) return pass(request)
          await request.beforeSend?.()
          for (const { context, settings } of machines)
            seen.push((await describeSession(context, settings)).state)
          return jsonResponse(429, { error: 'slow_down' })
        })
        expect(await renewNow(watched)).not.toBe('ok')
        expect(seen.slice(0, 3)).toEqual(['refreshing', 'refreshing', 'refreshing'])
        expect(await all(use)).toEqual(['ok', 'ok', 'ok'])
        expect(await encryptAgain(other)).toBe(true)
        expect(await all(use)).toEqual(['ok', 'ok', 'ok'])
        expect(await renewNow(other)).toBe('ok')
        expect(await all(renewNow)).toEqual(['ok', 'ok', 'ok'])
        expect(await fleet.harm()).toMatchObject({ reuse: 0, revoked: 0 })
      })

      it('is replaced for all of them by a sign-in after a logout, whatever the clocks of both say', async () => {
        const { fleet, machineAt, signIn, all } = await machinesOf()
        const ahead = Date.UTC(2100, 0)
        await signIn(await machineAt(), ahead)
        expect(await all(use)).toEqual(['ok', 'ok', 'ok'])
        expect(await signOut(await machineAt())).toBe(true)
        await signIn(await machineAt(), NOON)
        expect(await all(renewNow)).toEqual(['ok', 'ok', 'ok'])
        expect(await fleet.harm()).toMatchObject({ reuse: 0, revoked: 0 })
      })

      it('is not sent by the machine that has signed all of them out, and has not read it since', async () => {
        const { fleet, machines, state } = await machinesOf()
        const [first, second] = machines as [Machine, Machine]
        expect(await use(first)).toBe('ok')
        const copy = structuredClone(state)
        expect(await renewNow(second)).toBe('ok')
        expect(await signOut(first)).toBe(true)
        const before = await fleet.harm()
        Object.assign(state, copy)
        expect(await use(first)).toBe('store_restored')
        expect(await inTurn([first, second], renewNow)).toEqual(['store_restored', 'store_restored'])
        expect(await fleet.harm()).toEqual(before)
      })

      it('is not sent by a machine that has only signed all of them out', async () => {
        const { fleet, machineAt, setBack } = await machinesOf()
        const other = await machineAt(fleet.machine())
        expect(await signOut(other)).toBe(true)
        setBack()
        expect(await use(other)).toBe('store_restored')
      })

      it('is replaced for all of them by a sign-in after a logout by a machine that refused it, whatever the clock said before', async () => {
        const { fleet, machines, machineAt, signIn, all, setBack } = await machinesOf()
        const [first] = machines as [Machine]
        await signIn(first, NOON + HOUR)
        expect(await all(use)).toEqual(['ok', 'ok', 'ok'])
        setBack()
        expect(await all(use)).toEqual(['store_restored', 'store_restored', 'store_restored'])
        expect(await signOut(first)).toBe(true)
        await signIn(await machineAt(), NOON)
        expect(await all(renewNow)).toEqual(['ok', 'ok', 'ok'])
        expect(await fleet.harm()).toMatchObject({ reuse: 0, revoked: 0 })
      })

      it('is replaced by that of a sign-in that another process of this machine has seen before a logout was remembered', async () => {
        const { fleet, machines, machineAt, signIn } = await machinesOf()
        const [first] = machines as [Machine]
        expect(await use(first)).toBe('ok')
        const isRead = ({ url }: { url: URL }) => url.pathname === '/v3/kv/range'
        let isDone = false
        const late = between(first, async (request, pass) => {
          const answer = await pass(request)
          if (isDone || !isRead(request)) return answer
          isDone = true
          const pieces: Uint8Array[] = []
          for await (const piece of answer.body) pieces.push(piece)
          await signIn(await machineAt(), NOON + HOUR)
          expect(await use(first)).toBe('ok')
          return jsonResponse(200, JSON.parse(Buffer.concat(pieces).toString('utf8')))
        })
        expect(await signOut(await machineAt())).toBe(true)
        await use(late)
        expect(isDone).toBe(true)
        expect(await use(first)).toBe('ok')
        expect(await fleet.harm()).toMatchObject({ reuse: 0, revoked: 0 })
      })

      it('is remembered once for each value, and not written again by a plain read', async () => {
        const { fleet, first } = await machinesOf()
        expect(await renewNow(first)).toBe('ok')
        const { directory } = new SharedVault(first.context, first.settings).paths
        const memory = () => readdirSync(directory).filter((name) => name.startsWith('shared.'))
        const [file = ''] = memory()
        const { ino } = statSync(join(directory, file))
        expect(await use(first)).toBe('ok')
        expect(memory()).toEqual([file])
        expect(statSync(join(directory, file)).ino).toBe(ino)
        expect(await fleet.harm()).toMatchObject({ refreshes: 1 })
      })

      it('is replaced for all of them by one sign-in, also by the clock of a machine that is behind', async () => {
        const { fleet, first, signIn, all, setBack } = await machinesOf()
        await all(renewNow)
        expect(await all(renewNow)).toEqual(['ok', 'ok', 'ok'])
        setBack()
        expect(await all(use)).toEqual(['store_restored', 'store_restored', 'store_restored'])
        await signIn(first, NOON - HOUR)
        expect(await all(renewNow)).toEqual(['ok', 'ok', 'ok'])
        expect(await fleet.harm()).toEqual({ refreshes: 9, reuse: 0, revoked: 0 })
      })

      it('is replaced for all of them by the sign-in of a machine that has seen nothing', async () => {
        const { fleet, machineAt, signIn, all, setBack } = await machinesOf()
        await signIn(await machineAt(), NOON + 1)
        await all(renewNow)
        setBack()
        await signIn(await machineAt(), NOON + HOUR)
        expect(await all(renewNow)).toEqual(['ok', 'ok', 'ok'])
        expect(await fleet.harm()).toEqual({ refreshes: 6, reuse: 0, revoked: 0 })
      })

      it.each([HOUR, -HOUR])(
        'is not replaced by that of an earlier sign-in, whatever the clocks were at the later one (%d ms)',
        async (ahead) => {
          const { fleet, machineAt, signIn, all, setBack } = await machinesOf()
          await signIn(await machineAt(), NOON + ahead)
          await all(use)
          const before = await fleet.harm()
          setBack()
          expect(await all(renewNow)).toEqual(['store_restored', 'store_restored', 'store_restored'])
          expect(await fleet.harm()).toEqual(before)
        },
      )
    })

    it.each(['another machine', 'this machine'])(
      'and that was signed out everywhere by %s is not brought back by restoring etcd',
      async (by) => {
        const fleet = await createFleet(cluster)
        const machine = await fleet.inProcess({ home: fleet.machine() })
        expect(await use(machine)).toBe('ok')
        await fleet.expire()
        const elsewhere = await fleet.inProcess()
        expect(await use(elsewhere)).toBe('ok')
        const { client, access } = fleet.vault
        const { cluster: id, revision, found } = await client.read(access.key, () => false)
        const { base64: value, revision: written, version } = found ?? expect.fail()
        await signOut(by === 'this machine' ? machine : elsewhere)
        expect(await use(machine)).toBe('not_signed_in')
        const header = { cluster_id: id, revision }
        const restored = between(machine, async (request, pass) =>
          request.url.pathname === '/v3/kv/range'
            ? jsonResponse(200, { header, kvs: [{ value, mod_revision: written, version }] })
            : pass(request),
        )
        expect(await use(restored)).toBe('store_restored')
      },
    )
  })
})
