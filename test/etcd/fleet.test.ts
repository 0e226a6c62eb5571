import { execFileSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { TransportError } from '../../src/context.ts'
import { describeSession } from '../../src/session/describe.ts'
import { renew } from '../../src/session/refresh.ts'
import { needs } from '../requirements.ts'
import { endingOf } from '../session/processes.ts'
import { endOf, withEffects } from '../session/sandbox-session.ts'
import { AS_ROOT, type Cluster, startCluster } from './cluster.ts'
import { createFleet, type Fleet, type MachineOptions } from './fleet.ts'
import { type Gateway, startGateway } from './gateway.ts'
import { killedMachines, manyMachines, TROUBLES } from './scenarios.ts'

/** Signs in, the test being the browser. */
async function login(fleet: Fleet, options: MachineOptions, words: readonly string[] = []) {
  const running = fleet.start(['login', '--json', '--no-browser', ...words], options)
  running.child.stdout?.once('data', async (text: Buffer) => {
    const { url } = JSON.parse(String(text).split('\n', 1)[0] ?? '') as { url: string }
    await fetch(url)
  })
  return running.ended
}

describe.runIf(needs('etcd'))('a fleet that shares one sign-in', () => {
  let cluster: Cluster
  beforeAll(async () => {
    cluster = await startCluster()
  })
  afterAll(() => cluster?.stop())

  async function gateways(decide: Gateway['decide']) {
    const started = await Promise.all(cluster.members.map(({ url }) => startGateway(cluster, url)))
    onTestFinished(async () => {
      await Promise.all(started.map((gateway) => gateway.close()))
    })
    for (const gateway of started) gateway.decide = decide
    return { MAILCLAIM_STORE_URL: started.map(({ url }) => url).join(',') }
  }

  const etcdctl = (...words: string[]) => cluster.etcdctl(...AS_ROOT, ...words)
  const rawValue = async ({ key }: Fleet) =>
    (await etcdctl('get', key, '--print-value-only')).replace(/\n$/, '')

  it('a machine without any state uses the access token in etcd, in two requests', async () => {
    const fleet = await createFleet(cluster)
    const asked: string[] = []
    const env = await gateways((path) => {
      asked.push(path)
      return 'pass'
    })
    const { token } = (await fleet.value()).contents
    const ended = await fleet.run(['auth', 'token'], { env })
    expect(ended).toMatchObject({ code: 0, stdout: `${token?.value}\n`, stderr: '' })
    expect(asked).toEqual(['/v3/auth/authenticate', '/v3/kv/range'])
    expect(await fleet.harm()).toMatchObject({ refreshes: 0 })
  })

  it('of many machines that find the access token ended, one renews it, and all use the new one', async () => {
    const fleet = await createFleet(cluster)
    const counts = await manyMachines(fleet, { processes: 10, rounds: 3 })
    expect(counts).toMatchObject({ refreshes: 3, exits: { 0: 30 }, reuse: 0, revoked: 0 })
  })

  it.each(Object.keys(TROUBLES))('machines renew the session once in each round while %s', async (name) => {
    const fleet = await createFleet(cluster)
    const trouble = TROUBLES[name as keyof typeof TROUBLES]
    const counts = await manyMachines(fleet, { processes: 6, rounds: 2, trouble })
    expect(counts).toMatchObject({ refreshes: 2, reuse: 0, revoked: 0 })
  })

  it.each([1, 2])(
    'a transaction whose answer is lost is applied once (the one numbered %i)',
    async (lost) => {
      const fleet = await createFleet(cluster)
      await fleet.expire()
      let transactions = 0
      const env = await gateways((path) =>
        path === '/v3/kv/txn' && ++transactions === lost ? 'unanswered' : 'pass',
      )
      expect(endingOf(await fleet.run(['auth', 'token', '--json'], { env }))).toBe('0')
      expect(transactions).toBe(3)
      expect(await fleet.harm()).toEqual({ refreshes: 1, reuse: 0, revoked: 0 })
      expect((await fleet.value()).contents).toMatchObject({ journal: null, secret: { generation: 2 } })
    },
  )

  it('a machine that is killed while it renews leaves a session that works or explains itself', async () => {
    const fleet = await createFleet(cluster)
    const counts = await killedMachines(fleet, { kills: 5, seed: 20261122 })
    expect(counts).toMatchObject({ kills: 5, reuse: 0, revoked: 0 })
  })

  describe('a renewal whose outcome nobody knows', () => {
    async function interruptedFleet() {
      const fleet = await createFleet(cluster)
      const { context, settings } = await fleet.inProcess()
      const lost = withEffects(context, {
        http: {
          ...context.http,
          async send(request) {
            const answer = await context.http.send(request)
            if (!request.url.pathname.endsWith('/oauth/token')) return answer
            throw new TransportError('reset', 'maybe', 'the connection was closed')
          },
        },
      })
      await fleet.expire()
      expect(await endOf(() => renew(lost, settings, { reason: 'stale' }))).toBe('refresh_unknown')
      return fleet
    }

    it('stops every other machine after a minute, as seen by itself, and a new sign-in continues', async () => {
      const fleet = await interruptedFleet()
      const { context, settings } = await fleet.inProcess()
      expect(await describeSession(context, settings)).toMatchObject({ state: 'refreshing' })
      const before = context.clock.monotonic()
      expect(await endOf(() => renew(context, settings, { reason: 'stale' }))).toBe('refresh_interrupted')
      const waited = context.clock.monotonic() - before
      expect(waited).toBeGreaterThanOrEqual(60_000)
      expect(waited).toBeLessThan(65_000)
      expect(await fleet.harm()).toEqual({ refreshes: 1, reuse: 0, revoked: 0 })
      await fleet.signIn()
      expect(endingOf(await fleet.run(['auth', 'token', '--json']))).toBe('0')
    })

    it('is tried again if a person says so', async () => {
      const fleet = await interruptedFleet()
      const { context, settings } = await fleet.inProcess()
      const again = () => renew(context, settings, { reason: 'asked', retryInterrupted: true })
      // The service had used the token, so it ends the session.
      expect(await endOf(again)).toBe('session_over')
      expect((await fleet.value()).contents.record.ended).toMatchObject({ cause: 'interrupted' })
      expect(endingOf(await fleet.run(['auth', 'token', '--json']))).toBe('4 session_over')
    })
  })

  it('a confirmation of the journal that comes too late keeps the token from being sent', async () => {
    const fleet = await createFleet(cluster)
    await fleet.expire()
    const { context, settings } = await fleet.inProcess()
    const sent: string[] = []
    const stopped = withEffects(context, {
      http: {
        ...context.http,
        async send(request) {
          const answer = await context.http.send(request)
          sent.push(request.url.pathname)
          if (sent.filter((path) => path === '/v3/kv/txn').length === 1) context.clock.advance(30_000)
          return answer
        },
      },
    })
    expect(await endOf(() => renew(stopped, settings, { reason: 'stale' }))).toBe('ok')
    expect(sent.filter((path) => path === '/v3/kv/txn')).toHaveLength(4)
    expect(await fleet.harm()).toEqual({ refreshes: 1, reuse: 0, revoked: 0 })
  })

  it('without a majority nothing is sent, and the command ends with exit code 7 within 15 seconds', async () => {
    const fleet = await createFleet(cluster)
    await fleet.expire()
    const gone = cluster.members.slice(0, 2)
    await Promise.all(gone.map((member) => member.kill()))
    const started = performance.now()
    const ended = await fleet.run(['auth', 'token', '--json'])
    const took = performance.now() - started
    for (const member of gone) member.start()
    await cluster.ready()
    expect(endingOf(ended)).toBe('7 store_unavailable')
    expect(took).toBeLessThan(15_000)
    expect(await fleet.harm()).toMatchObject({ refreshes: 0 })
    expect(endingOf(await fleet.run(['auth', 'token']))).toBe('0')
  })

  describe('etcd that goes away', () => {
    /** @param fate of each transaction, by its number from 1. */
    async function machineOf(fleet: Fleet, fate: (transaction: number) => ReturnType<Gateway['decide']>) {
      await fleet.expire()
      let transactions = 0
      const { MAILCLAIM_STORE_URL: urls } = await gateways((path) =>
        path === '/v3/kv/txn' ? fate(++transactions) : 'pass',
      )
      const home = fleet.machine()
      const [without, again] = [await fleet.inProcess({ home, urls }), await fleet.inProcess({ home })]
      return { without, again, home }
    }
    type Machine = Awaited<ReturnType<Fleet['inProcess']>>
    const use = ({ context, settings }: Machine) => endOf(() => renew(context, settings, { reason: 'stale' }))

    it('before the journal is written keeps the token from being sent', async () => {
      const fleet = await createFleet(cluster)
      const { without, again } = await machineOf(fleet, () => 'lost')
      const { context, settings } = without
      await expect(renew(context, settings, { reason: 'stale' })).rejects.toMatchObject({
        code: 'store_unavailable',
        exit: 7,
        message: expect.stringContaining('Nothing was sent'),
      })
      expect(await fleet.harm()).toMatchObject({ refreshes: 0 })
      expect(await use(again)).toBe('ok')
    })

    it('while the journal is written leaves an entry that the next command on that machine removes', async () => {
      const fleet = await createFleet(cluster)
      const { without, again } = await machineOf(fleet, (at) => (at === 1 ? 'unanswered' : 'lost'))
      expect(await use(without)).toBe('store_unavailable')
      expect((await fleet.value()).contents.journal).not.toBeNull()
      expect(await use(again)).toBe('ok')
      expect(await fleet.harm()).toEqual({ refreshes: 1, reuse: 0, revoked: 0 })
    })

    it('after the answer loses nothing although the process is killed at once, as by docker stop', async () => {
      const fleet = await createFleet(cluster)
      await fleet.expire()
      let hasSettled = () => {}
      const settling = new Promise<void>((resolve) => {
        hasSettled = resolve
      })
      let transactions = 0
      const env = await gateways((path) => {
        if (path !== '/v3/kv/txn' || ++transactions === 1) return 'pass'
        hasSettled()
        return 'lost'
      })
      const home = fleet.machine()
      const { child, ended } = fleet.start(['auth', 'token'], { home, env })
      await settling
      child.kill('SIGKILL')
      expect((await ended).code).toBe('SIGKILL')
      const again = await fleet.run(['auth', 'token'], { home })
      expect(again).toMatchObject({ code: 0, stderr: expect.stringContaining('is in etcd now') })
      expect(await fleet.run(['auth', 'token'])).toMatchObject({ code: 0, stdout: again.stdout })
      expect(await fleet.harm()).toEqual({ refreshes: 1, reuse: 0, revoked: 0 })
    })

    it.each(['a state directory', 'no directory of its own'])(
      'after the answer loses nothing: the machine keeps the token, and its next command puts it back (%s)',
      async (where) => {
        const fleet = await createFleet(cluster)
        const { without, again } = await machineOf(fleet, (at) => (at === 1 ? 'pass' : 'lost'))
        if (where !== 'a state directory') {
          Object.assign(without.context.directories, (await fleet.inProcess()).context.directories)
          Object.assign(again.context.directories, (await fleet.inProcess()).context.directories)
        }
        expect(await use(without)).toBe('ok')
        const [, path = ''] = /kept on this machine \((.+?)\)/.exec(without.context.stderr.text) ?? []
        const text = readFileSync(path, 'utf8')
        expect(statSync(path).mode & 0o777).toBe(0o600)
        expect((await fleet.value()).contents).toMatchObject({ secret: { generation: 1 } })
        const status = await describeSession(without.context, without.settings)
        expect(status).toMatchObject({ shared: { pending: [path] } })
        expect(await use(again)).toBe('ok')
        const { contents } = await fleet.value()
        expect(contents).toMatchObject({ journal: null, secret: { generation: 2 } })
        expect(text).not.toContain(contents.secret.value)
        expect(existsSync(path)).toBe(false)
        expect(await fleet.harm()).toEqual({ refreshes: 1, reuse: 0, revoked: 0 })
        await fleet.expire()
        expect(await use(again)).toBe('ok')
        expect(await fleet.harm()).toEqual({ refreshes: 2, reuse: 0, revoked: 0 })
      },
    )
  })

  describe('a value that must not be used', () => {
    const cases: Record<string, (fleet: Fleet) => Promise<Record<string, string>>> = {
      'store_key_wrong, encrypted with another key': async () => ({
        MAILCLAIM_STORE_KEY: randomBytes(32).toString('base64'),
      }),
      'store_value_unusable, changed by somebody': async (fleet) => {
        const value = await rawValue(fleet)
        await etcdctl('put', fleet.key, `${value.slice(0, -8)}AAAAAAAA`)
        return {}
      },
      'store_value_unusable, moved from another profile': async (fleet) => {
        await etcdctl('put', `${fleet.key}2`, await rawValue(fleet))
        return { MAILCLAIM_PROFILE: 'default2' }
      },
      'store_value_unusable, an earlier one put back': async (fleet) => {
        const value = await rawValue(fleet)
        expect(endingOf(await fleet.run(['auth', 'refresh']))).toBe('0')
        await etcdctl('put', fleet.key, value)
        return {}
      },
      'store_value_unusable, not written by this program': async (fleet) => {
        await etcdctl('put', fleet.key, 'hello')
        return {}
      },
    }
    it.each(Object.keys(cases))('ends with exit code 4 and nothing sent: %s', async (name) => {
      const fleet = await createFleet(cluster)
      await fleet.expire()
      const env = await cases[name]?.(fleet)
      const before = await fleet.harm()
      const ended = await fleet.run(['auth', 'token', '--json'], { env: env ?? {} })
      expect(endingOf(ended)).toBe(`4 ${name.split(',')[0]}`)
      expect(await fleet.harm()).toEqual(before)
    })

    it('a session that is older than the one this machine has seen is not used', async () => {
      const fleet = await createFleet(cluster)
      const home = fleet.machine()
      const first = await fleet.value()
      expect(endingOf(await fleet.run(['auth', 'refresh'], { home }))).toBe('0')
      const { vault } = fleet
      await vault.replace(await fleet.value(), first.contents, vault.newWriter())
      expect(endingOf(await fleet.run(['auth', 'token', '--json'], { home }))).toBe('4 store_restored')
    })
  })

  it('a session restored from a snapshot is not used, and a new sign-in works', async () => {
    const fleet = await createFleet(cluster)
    const snapshot = join(fleet.machine(), 'snapshot')
    await etcdctl('snapshot', 'save', snapshot, '--endpoints', cluster.members[0]?.url ?? '')
    expect(endingOf(await fleet.run(['auth', 'refresh']))).toBe('0')
    const restored = await startCluster({ token: 'second', snapshot })
    onTestFinished(() => restored.stop())
    const env = {
      MAILCLAIM_STORE_URL: restored.urls,
      MAILCLAIM_STORE_CA: restored.ca,
      MAILCLAIM_STORE_CERT: restored.cert,
    }
    const ended = await fleet.run(['auth', 'refresh', '--json'], { env })
    expect(endingOf(ended)).toBe('4 store_restored')
    expect(ended.stderr).toContain('mailclaim login')
    expect(await fleet.harm()).toEqual({ refreshes: 1, reuse: 0, revoked: 0 })
    const home = fleet.machine()
    expect(
      endingOf(await login(fleet, { home, env: { ...env, MAILCLAIM_CLIENT_ID: fleet.session.clientId } })),
    ).toBe('0')
    expect(endingOf(await fleet.run(['auth', 'refresh', '--json'], { env }))).toBe('0')
    expect(await fleet.harm()).toEqual({ refreshes: 2, reuse: 0, revoked: 0 })
  })

  it('two clusters behind one list of members, each with a session, share no token, and lose none', async () => {
    const fleet = await createFleet(cluster)
    const other = await startCluster({ token: 'other', certificates: cluster.certificates })
    onTestFinished(() => other.stop())
    const only = { MAILCLAIM_STORE_URL: other.urls }
    const both = { MAILCLAIM_STORE_URL: `${cluster.urls},${other.urls}` }
    const client = { MAILCLAIM_CLIENT_ID: fleet.session.clientId }
    expect(endingOf(await login(fleet, { home: fleet.machine(), env: { ...only, ...client } }))).toBe('0')
    for (let round = 0; round < 3; round++) {
      const ended = await Promise.all(
        ['refresh', 'token', 'refresh', 'refresh', 'token', 'refresh'].map((command, at) =>
          fleet.run(['auth', command], { env: both, ...(at % 2 === 0 && { home: fleet.machine() }) }),
        ),
      )
      expect(ended.map(endingOf)).toEqual(['0', '0', '0', '0', '0', '0'])
    }
    for (const words of [
      ['logout', '--yes'],
      ['auth', 'rekey'],
      ['login', '--no-browser'],
    ]) {
      const ended = await fleet.run([...words, '--json'], { env: { ...both, ...client } })
      expect(endingOf(ended)).toBe('7 store_unavailable')
      expect(ended.stderr).toContain('another cluster of etcd answered')
      expect(ended.stdout).toBe('')
    }
    for (const env of [{}, only]) expect(endingOf(await fleet.run(['auth', 'refresh'], { env }))).toBe('0')
    expect(await fleet.harm()).toMatchObject({ reuse: 0, revoked: 0 })
  })

  it('a sign-in with options is remembered, and used by machines that know only the variables', async () => {
    const fleet = await createFleet(cluster)
    const home = fleet.machine()
    const keyFile = join(home, 'key')
    writeFileSync(keyFile, fleet.storeKey, { mode: 0o600 })
    const { MAILCLAIM_STORE_PREFIX: prefix = '', MAILCLAIM_STORE_URL: urls = '' } = fleet.env
    const none = Object.fromEntries(
      ['', '_URL', '_PREFIX', '_CA', '_CERT', '_KEY'].map((name) => [`MAILCLAIM_STORE${name}`, '']),
    )
    const words = ['--store', 'etcd', '--store-url', urls, '--store-prefix', prefix, '--store-ca', cluster.ca]
    words.push('--store-cert', cluster.cert, '--store-key-file', keyFile)
    const env = { ...none, MAILCLAIM_CLIENT_ID: fleet.session.clientId }
    expect(endingOf(await login(fleet, { home, env }, words))).toBe('0')
    const here = await fleet.run(['auth', 'token'], { home, env: none })
    const elsewhere = await fleet.run(['auth', 'token'])
    expect(here).toMatchObject({ code: 0, stdout: elsewhere.stdout })
    expect((await fleet.value()).contents).toMatchObject({ secret: { generation: 1 } })
    const config = JSON.parse(
      (await fleet.run(['config', 'list', '--json'], { home, env: none })).stdout,
    ) as {
      data: { name: string; value: string }[]
    }
    expect(config.data.find(({ name }) => name === 'store-key-file')).toMatchObject({ value: keyFile })
  })

  it('no secret is in the data of etcd, in the output, or in a file of a machine', async () => {
    const fleet = await createFleet(cluster)
    const home = fleet.machine()
    const first = (await fleet.value()).contents
    const ended = await fleet.run(['auth', 'refresh', '--verbose'], { home })
    expect(ended.code).toBe(0)
    const second = (await fleet.value()).contents
    const secrets = [first, second]
      .flatMap(({ secret, token }) => [secret.value, token?.value ?? ''])
      .concat(fleet.storeKey)
    for (const { data } of cluster.members)
      for (const secret of secrets)
        expect(() => execFileSync('grep', ['-r', '-l', '-a', '-F', '-e', secret, data])).toThrow()
    const files = readdirSync(home, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => readFileSync(join(entry.parentPath, entry.name), 'utf8'))
    for (const text of [ended.stdout, ended.stderr, ...files])
      for (const secret of secrets) expect(text).not.toContain(secret)
  })

  it('a key is rotated while machines use it', async () => {
    const fleet = await createFleet(cluster)
    const next = randomBytes(32).toString('base64')
    const both = { MAILCLAIM_STORE_KEY: `${next} ${fleet.storeKey}` }
    expect(endingOf(await fleet.run(['auth', 'rekey'], { env: both }))).toBe('0')
    expect(endingOf(await fleet.run(['auth', 'token'], { env: { MAILCLAIM_STORE_KEY: next } }))).toBe('0')
    const old = await fleet.run(['auth', 'token', '--json'])
    expect(endingOf(old)).toBe('4 store_key_wrong')
  })

  it('a key in a file that others may read is not used', async () => {
    const fleet = await createFleet(cluster)
    const file = join(fleet.machine(), 'key')
    writeFileSync(file, fleet.storeKey, { mode: 0o644 })
    const env = { MAILCLAIM_STORE_KEY: '', MAILCLAIM_STORE_KEY_FILE: file }
    expect(endingOf(await fleet.run(['auth', 'token', '--json'], { env }))).toBe('3 store_not_configured')
    execFileSync('chmod', ['600', file])
    expect(endingOf(await fleet.run(['auth', 'token', '--json'], { env }))).toBe('0')
  })

  it('doctor and auth status name the members and who wrote last', async () => {
    const fleet = await createFleet(cluster)
    expect(endingOf(await fleet.run(['auth', 'refresh']))).toBe('0')
    const gone = cluster.members[1]
    await gone?.kill()
    const status = await fleet.run(['auth', 'status', '--json'])
    const doctor = await fleet.run(['doctor', '--json'])
    gone?.start()
    await cluster.ready()
    const { revision, contents } = await fleet.value()
    expect(JSON.parse(status.stdout)).toMatchObject({
      state: 'fine',
      store: 'etcd',
      secret_at: fleet.key,
      etcd: { revision, written_by: contents.host },
    })
    const { members } = (JSON.parse(status.stdout) as { etcd: { members: { problem: string | null }[] } })
      .etcd
    expect(members.map(({ problem }) => problem === null)).toEqual([true, false, true])
    const checks = (
      JSON.parse(doctor.stdout) as { data: { check: string; status: string; message: string }[] }
    ).data
    expect(checks.find(({ check }) => check === 'etcd')).toMatchObject({
      status: 'warning',
      message: expect.stringContaining(gone?.url ?? '-'),
    })
    expect(checks.find(({ check }) => check === 'credential store')).toMatchObject({
      status: 'ok',
      message: expect.stringContaining('readable with the key'),
    })
  })

  it('a wrong password and missing rights end with exit code 4 and what to check', async () => {
    const fleet = await createFleet(cluster)
    const wrong = await fleet.run(['auth', 'token', '--json'], { env: { MAILCLAIM_STORE_PASSWORD: 'x' } })
    expect(endingOf(wrong)).toBe('4 store_refused')
    const elsewhere = await fleet.run(['auth', 'token', '--json'], {
      env: { MAILCLAIM_STORE_PREFIX: '/other' },
    })
    expect(endingOf(elsewhere)).toBe('4 store_refused')
    expect(elsewhere.stderr).toContain('MAILCLAIM_STORE_USER')
  })

  it('logout asks before it signs every machine out', async () => {
    const fleet = await createFleet(cluster)
    expect(endingOf(await fleet.run(['logout', '--json']))).toBe('2 logout_not_confirmed')
    expect(endingOf(await fleet.run(['auth', 'token']))).toBe('0')
    expect(endingOf(await fleet.run(['logout', '--yes', '--json']))).toBe('0')
    expect(endingOf(await fleet.run(['auth', 'token', '--json']))).toBe('4 not_signed_in')
  })
})
