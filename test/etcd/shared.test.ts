import { chmodSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { command as logout } from '../../src/commands/logout.ts'
import { type Clock, HttpTransportError } from '../../src/context.ts'
import { CliError } from '../../src/errors.ts'
import { findCredentialWithoutRenewal } from '../../src/session/credential.ts'
import { profileFiles, type RenewOptions, tryReadSession } from '../../src/session/session-file.ts'
import { endEtcdSession, readEtcdSessionWithState } from '../../src/session/shared/sign-in.ts'
import { openEtcdStore } from '../../src/session/shared/store.ts'
import { prepareLocalSignIn } from '../../src/session/sign-in.ts'
import type { Io } from '../../src/terminal/io.ts'
import type { FakeClock } from '../fake-context.ts'
import { createFleet, type ServiceFate } from './fleet.ts'
import type { Fate } from './memory-etcd.ts'

const failureOf = (work: Promise<unknown>): Promise<CliError> =>
  work.then(
    () => expect.fail('it should have failed'),
    (error: unknown) => {
      expect(error).toBeInstanceOf(CliError)
      return error as CliError
    },
  )

/** Creates two machines that are signed in. */
async function pair() {
  const fleet = createFleet()
  const [a, b] = [await fleet.machine('build-a'), await fleet.machine('build-b')]
  await fleet.signIn(a)
  return { ...fleet, a, b, clock: fleet.clock as FakeClock }
}

const outcomeFilesOf = (io: Io) =>
  readdirSync(join(io.directories.state, 'profiles', 'default')).filter((name) => name.startsWith('pending.'))

/** Returns fates for transactions: the listed ones in order, then the last one for all later ones. */
function fates(...all: readonly Fate[]) {
  const left = [...all]
  return (path: string) =>
    path === '/v3/kv/txn' ? ((left.length > 1 ? left.shift() : left[0]) ?? 'pass') : 'pass'
}

describe('a session that machines share', () => {
  test('an access token that another machine renewed is read from etcd once, and from then on from the local cache', async () => {
    const { a, b, etcd, service, renew } = await pair()
    const token = await renew(a)
    expect(await renew(b, { always: false })).toEqual(token)
    expect(service.refreshes).toBe(1)
    const asked = etcd.asked
    expect(await findCredentialWithoutRenewal(b)).toMatchObject({ kind: 'access_token', value: token.value })
    expect(etcd.asked).toBe(asked)
  })

  test('during an outage of etcd, a machine with a valid access token can use it, and a machine without one fails with exit 7', async () => {
    const { a, b, etcd, service, renew } = await pair()
    await renew(a)
    etcd.fate = () => 'lost'
    expect(await findCredentialWithoutRenewal(a)).toMatchObject({ kind: 'access_token' })
    expect((await readEtcdSessionWithState(a)).state).toBe('active')
    expect(a.stderr.text).toMatch(
      /^warning: etcd doesn't answer.*; this machine's access token is still good\n$/,
    )
    expect(await failureOf(renew(b))).toMatchObject({ code: 'unreachable', exit: 7 })
    expect(await failureOf(readEtcdSessionWithState(b))).toMatchObject({ code: 'unreachable', exit: 7 })
    expect(service.refreshes).toBe(1)
  })

  test('`readEtcdSessionWithState` reads the session from the second member of etcd if the first does not answer', async () => {
    const { a, b, clock, etcd, renew } = await pair()
    await renew(a)
    await endEtcdSession(b, 'default')
    const { handle } = etcd
    etcd.handle = async (request) => {
      if (request.url.hostname !== 'a.test') return handle(request)
      clock.advance(request.timeoutMs)
      throw new HttpTransportError('timeout', 'maybe', 'no complete response')
    }
    expect(await failureOf(readEtcdSessionWithState(a))).toMatchObject({ code: 'session_over' })
  })

  test('a renewal for a narrower scope stores the new refresh token in etcd, but not the access token', async () => {
    const { a, service, renew } = await pair()
    const { value } = await renew(a, { scope: 'emails:send' })
    const found = await openEtcdStore(a).read()
    expect(found?.session.access).toBeUndefined()
    expect(value).toBe('access-2')
    expect(service.isCurrent(found?.session.refreshToken)).toBe(true)
  })

  test('if etcd has invalidated the authentication token of a client, the client authenticates again and repeats the request', async () => {
    const { a, etcd, renew } = await pair()
    const store = openEtcdStore(a)
    await store.read()
    etcd.forgetTokens()
    expect((await store.read())?.marker).toBeNull()
    await renew(a)
  })

  test('a renewal whose authentication at etcd gets no answer sends no refresh token', async () => {
    const { a, etcd, service, renew } = await pair()
    let isForgotten = false
    etcd.fate = (path) => {
      if (path === '/v3/kv/txn') {
        etcd.forgetTokens()
        isForgotten = true
      }
      return isForgotten && path === '/v3/auth/authenticate' ? 'unanswered' : 'pass'
    }
    expect(await failureOf(renew(a))).toMatchObject({ code: 'unreachable', exit: 7 })
    expect(service.refreshes).toBe(0)
    etcd.fate = () => 'pass'
    await renew(a)
    expect([service.refreshes, service.reuse, outcomeFilesOf(a)]).toEqual([1, 0, []])
  })

  test.each<[string, Fate[]]>([
    ['is lost', ['lost', 'lost', 'pass']],
    ['is applied without an answer', ['unanswered', 'pass']],
    ['is lost, and its repetition is applied without an answer', ['lost', 'unanswered', 'lost', 'pass']],
  ])('a renewal succeeds even if the first write of its marker or outcome to etcd %s', async (_what, all) => {
    for (const before of [[], ['pass'] as const]) {
      const { a, etcd, service, renew } = await pair()
      etcd.fate = fates(...before, ...all)
      await renew(a)
      etcd.fate = () => 'pass'
      expect(await openEtcdStore(a).read()).toMatchObject({ marker: null, session: { generation: 2 } })
      expect([service.refreshes, service.reuse, outcomeFilesOf(a)]).toEqual([1, 0, []])
    }
  })

  test('a renewal sends no refresh token if etcd does not confirm the marker that announces the renewal', async () => {
    const { a, b, etcd, service, renew } = await pair()
    etcd.fate = fates('late')
    const failure = await failureOf(renew(a))
    expect(failure).toMatchObject({ code: 'unreachable', exit: 7 })
    expect(failure.message).toContain('nothing was sent')
    etcd.arrive()
    etcd.fate = () => 'pass'
    expect((await readEtcdSessionWithState(b)).state).toBe('refreshing')
    await renew(a)
    expect([service.refreshes, service.reuse, outcomeFilesOf(a)]).toEqual([1, 0, []])
  })

  test('etcd rejects a renewal marker that arrives late, after another command of the same machine has rewritten the session', async () => {
    const { a, b, etcd, service, renew } = await pair()
    await renew(a)
    etcd.fate = fates('late')
    await failureOf(renew(a))
    etcd.fate = () => 'pass'
    await renew(a, { always: false })
    etcd.arrive()
    await renew(b)
    expect([service.refreshes, service.reuse]).toEqual([2, 0])
  })

  test('after a refresh with unknown outcome, a renewal on another machine fails at once with exit 4 and the hint to sign in again', async () => {
    const { a, b, clock, service, renew } = await pair()
    service.fate = () => 'consumed'
    expect(await failureOf(renew(a))).toMatchObject({ code: 'refresh_interrupted', exit: 4 })
    const before = clock.monotonic()
    for (const failure of [await failureOf(renew(b)), await failureOf(readEtcdSessionWithState(b))])
      expect(failure).toMatchObject({
        code: 'refresh_interrupted',
        exit: 4,
        message: expect.stringContaining('may have been sent by build-a'),
        hint: 'sign in again: mailclaim login',
      })
    expect(clock.monotonic()).toBe(before)
    expect(service.refreshes).toBe(1)
  })

  test('if a machine is killed after sending the refresh token, a renewal on another machine waits 60 s and then reports an unknown outcome', async () => {
    const { a, b, clock, machine, service, renew } = await pair()
    service.fate = () => 'killed'
    void renew(a)
    await expect.poll(() => service.refreshes).toBe(1)
    const before = clock.monotonic()
    const hint =
      'build-a may hold the new token; sign in again unless it does, as this says there: mailclaim auth status'
    expect(await failureOf(renew(b))).toMatchObject({ code: 'refresh_interrupted', hint })
    expect(clock.monotonic() - before).toBeGreaterThanOrEqual(60_000)
    expect(clock.monotonic() - before).toBeLessThan(65_000)
    expect(await failureOf(readEtcdSessionWithState(b))).toMatchObject({ hint })
    const hintOfTwin = hint.replace('build-a', 'another machine named build-a')
    const twin = await machine('build-a', undefined, undefined, 'another directory')
    expect(await failureOf(renew(twin))).toMatchObject({ hint: hintOfTwin })
    expect(await failureOf(renew(a))).toMatchObject({ hint: 'sign in again: mailclaim login' })
  })

  test('a renewal with `--retry-interrupted` waits at least 60 s for a machine that may still be renewing', async () => {
    const { a, b, clock, service, renew } = await pair()
    service.fate = () => 'killed'
    void renew(a)
    await expect.poll(() => service.refreshes).toBe(1)
    const before = clock.monotonic()
    service.fate = () => 'consumed'
    await failureOf(renew(b, { retryInterrupted: true }))
    expect(clock.monotonic() - before).toBeGreaterThanOrEqual(60_000)
  })

  test.each<[ServiceFate, string | undefined]>([
    ['refused', 'invalid_request'],
    ['unreachable', 'unreachable'],
    ['busy', undefined],
  ])('an unused refresh token (service: %s) can be sent by another machine', async (fate, code) => {
    const { a, b, service, renew } = await pair()
    let times = 0
    service.fate = () => (code !== undefined || ++times === 1 ? fate : 'tokens')
    const ended = await renew(a).catch((error: CliError) => error.code)
    if (code !== undefined) expect(ended).toBe(code)
    service.fate = () => 'tokens'
    await renew(b)
    expect([service.refreshes, service.reuse, outcomeFilesOf(a)]).toEqual([code === undefined ? 2 : 1, 0, []])
  })

  test('after an interrupted renewal, `invalid_request` for a retry with `--retry-interrupted` leaves the outcome unknown, and `invalid_grant` ends the session', async () => {
    const { a, b, service, renew } = await pair()
    service.fate = () => 'consumed'
    await failureOf(renew(a))
    service.fate = () => 'refused'
    expect(await failureOf(renew(b, { retryInterrupted: true }))).toMatchObject({
      code: 'refresh_interrupted',
    })
    expect(await failureOf(renew(a))).toMatchObject({ code: 'refresh_interrupted' })
    service.fate = () => 'tokens'
    expect(await failureOf(renew(b, { retryInterrupted: true }))).toMatchObject({ code: 'session_over' })
    expect(service.reuse).toBe(1)
    expect(await failureOf(renew(a))).toMatchObject({ code: 'session_over' })
  })

  test('new tokens that etcd does not confirm stay on the machine until a later command there delivers them to etcd', async () => {
    const { a, b, clock, etcd, service, renew } = await pair()
    etcd.fate = fates('pass', 'lost')
    expect((await renew(a)).value).toBe('access-2')
    expect(outcomeFilesOf(a)).toHaveLength(1)
    expect(a.stderr).toMatchObject({ text: expect.stringContaining('this machine keeps it') })
    etcd.fate = () => 'lost'
    const before = clock.monotonic()
    expect(await findCredentialWithoutRenewal(a)).toMatchObject({ value: 'access-2' })
    expect(clock.monotonic() - before).toBeLessThanOrEqual(2000)
    expect((await readEtcdSessionWithState(a)).state).toBe('active')
    expect(a.stderr.text).toContain('this machine holds the new token')
    etcd.fate = () => 'pass'
    expect(await failureOf(renew(b))).toMatchObject({ code: 'refresh_interrupted' })
    await findCredentialWithoutRenewal(a)
    expect([outcomeFilesOf(a), service.refreshes]).toEqual([[], 1])
    await renew(b)
    expect([service.refreshes, service.reuse]).toEqual([2, 0])
  })

  test.each<[string, ServiceFate, Partial<RenewOptions>, string, string | undefined]>([
    ['unused token', 'refused', {}, 'invalid_request', undefined],
    ['unknown use of the token', 'consumed', {}, 'refresh_interrupted', 'refresh_interrupted'],
    ['end of the session', 'tokens', { retryInterrupted: true }, 'session_over', 'session_over'],
  ])(
    'the outcome of a renewal (%s), if etcd does not confirm it, is delivered to etcd by the next command of the same machine',
    async (_what, fate, options, code, later) => {
      const { a, b, clock, etcd, service, renew } = await pair()
      if (options.retryInterrupted) {
        service.fate = () => 'consumed'
        await failureOf(renew(b))
      }
      service.fate = () => fate
      etcd.fate = fates('pass', 'lost')
      expect(await failureOf(renew(a, options))).toMatchObject({ code })
      expect(outcomeFilesOf(a)).toHaveLength(1)
      etcd.fate = () => 'pass'
      service.fate = () => 'tokens'
      const before = clock.monotonic()
      for (const io of [a, b])
        expect(await renew(io).catch((error: CliError) => error.code)).toEqual(later ?? expect.anything())
      expect([clock.monotonic(), outcomeFilesOf(a)]).toEqual([before, []])
    },
  )

  test('the tokens in a damaged outcome file (`pending.…`) are not delivered to etcd', async () => {
    const { a, b, etcd, renew } = await pair()
    etcd.fate = fates('pass', 'lost')
    await renew(a)
    etcd.fate = () => 'pass'
    const path = join(a.directories.state, 'profiles', 'default', outcomeFilesOf(a)[0] ?? '')
    const text = readFileSync(path, 'utf8')
    // Damage the file like a power loss that kept only some of its blocks.
    writeFileSync(path, `${text.slice(0, 200)}${' '.repeat(100)}${text.slice(300)}`)
    expect(await failureOf(renew(a))).toMatchObject({ exit: 4 })
    expect(await failureOf(renew(b))).toMatchObject({ code: 'refresh_interrupted' })
  })

  test('a machine suspended for 75 s after sending the refresh token still delivers the new tokens to etcd', async () => {
    const { a, b, clock, service, renew } = await pair()
    service.received = () => clock.advance(75_000)
    await renew(a)
    expect([outcomeFilesOf(a), a.stderr.text]).toEqual([[], ''])
    await renew(b, { always: false })
    expect([service.refreshes, service.reuse]).toEqual([1, 0])
  })

  test('for a profile other than the default, the warning that etcd did not confirm the new tokens names the profile', async () => {
    const { machine, signIn, renew, etcd } = createFleet()
    const [a, b] = [
      await machine('build-a', undefined, 'fleet'),
      await machine('build-b', undefined, 'fleet'),
    ]
    await signIn(a)
    etcd.fate = fates('pass', 'lost')
    await renew(a)
    expect(a.stderr.text).toContain('its next command in profile fleet brings it there\n')
    etcd.fate = () => 'pass'
    expect(await failureOf(renew(b))).toMatchObject({
      hint: expect.stringMatching(/^build-a may hold .*: mailclaim auth status --profile fleet$/),
    })
  })

  test('if the key of the session is removed from etcd during a renewal, the new tokens stay on the machine until its next login', async () => {
    const { a, etcd, service, signIn, renew } = await pair()
    service.connected = () => etcd.put(undefined)
    await renew(a)
    expect(await failureOf(renew(a))).toMatchObject({ code: 'not_signed_in' })
    expect(outcomeFilesOf(a)).toHaveLength(1)
    await signIn(a)
    expect(outcomeFilesOf(a)).toEqual([])
  })

  test('a machine suspended for 16 s after writing its renewal marker sends no refresh token', async () => {
    const { a, clock, service, renew } = await pair()
    const wall = () => clock.setWall(clock.now() + 16_000)
    const monotonic = () => {
      clock.advance(16_000)
      clock.setWall(clock.now() - 16_000)
    }
    for (const stop of [wall, monotonic]) {
      service.connected = stop
      expect(await failureOf(renew(a))).toMatchObject({ code: 'unreachable', exit: 7 })
    }
    service.connected = () => {}
    await renew(a)
    expect([service.refreshes, service.reuse]).toEqual([1, 0])
  })

  test('a logout on one machine signs the other machine out, and a login on one signs the other in', async () => {
    const { a, b, signIn, renew, service } = await pair()
    await renew(a)
    expect((await endEtcdSession(b, 'default')).wasSignedIn).toBe(true)
    expect(await failureOf(renew(a))).toMatchObject({ code: 'session_over', exit: 4 })
    expect((await endEtcdSession(a, 'default')).wasSignedIn).toBe(false)
    await signIn(b)
    await renew(a)
    expect(service.reuse).toBe(0)
  })

  test('`mailclaim logout` with the store etcd also removes the session that the machine had before it used etcd', async () => {
    const { a, signIn } = await pair()
    await signIn(a, prepareLocalSignIn(a, 'file', 'session'))
    await logout.run({ arguments: [], options: {} }, a)
    expect(tryReadSession(profileFiles(a, 'default'))).toBeUndefined()
    expect(await failureOf(readEtcdSessionWithState(a))).toMatchObject({ code: 'session_over' })
  })

  test('the next renewal discards new tokens that etcd did not confirm if another machine has logged in or out since', async () => {
    for (const end of ['login', 'logout'] as const) {
      const { a, b, etcd, signIn, renew, service } = await pair()
      etcd.fate = fates('pass', 'lost')
      await renew(a)
      etcd.fate = () => 'pass'
      if (end === 'login') await signIn(b)
      else await endEtcdSession(b, 'default')
      await renew(a).catch((error: CliError) => expect(error.code).toBe('session_over'))
      expect([outcomeFilesOf(a), service.reuse]).toEqual([[], 0])
    }
  })

  test('a renewal fails with exit 4 if etcd was restored from a backup and holds an older refresh token than the machine has seen', async () => {
    const { a, etcd, service, renew } = await pair()
    const early = etcd.value()
    await renew(a)
    etcd.put(early)
    expect(await failureOf(renew(a))).toMatchObject({ code: 'store_unavailable', exit: 4 })
    expect([service.refreshes, service.reuse]).toEqual([1, 0])
  })

  test('a renewal fails with exit 4 if the encryption key is wrong or the value in etcd was changed', async () => {
    const { a, machine, etcd, signIn, renew, service } = await pair()
    const stranger = await machine('build-c', Buffer.alloc(32, 9).toString('base64'))
    expect(await failureOf(renew(stranger))).toMatchObject({ code: 'store_unavailable', exit: 4 })
    const value = Buffer.from(etcd.value() ?? '', 'base64').toString()
    etcd.put(Buffer.from(`${value.slice(0, -4)}AAAA`).toString('base64'))
    expect(await failureOf(renew(a))).toMatchObject({ code: 'store_unavailable', exit: 4 })
    expect(service.refreshes).toBe(0)
    await signIn(stranger)
    await renew(stranger)
  })

  test('an etcd password file that others can read is rejected', async () => {
    const { a } = await pair()
    const { storePassword: _in, ...environment } = a.environment
    const storePasswordFile = join(a.directories.state, 'password')
    writeFileSync(storePasswordFile, 'secret\n', { mode: 0o640 })
    const io = { ...a, environment: { ...environment, storePasswordFile } }
    expect(() => openEtcdStore(io)).toThrow(`others may read the file ${storePasswordFile}`)
    chmodSync(storePasswordFile, 0o600)
    expect(openEtcdStore(io).access.user).toEqual({ name: 'mailclaim', password: 'secret' })
  })
})

/** Returns a clock that runs 20 times as fast as the real one. */
function fastClock(): Clock {
  const start = performance.now()
  const now = () => (performance.now() - start) * 20
  return {
    now: () => Date.parse('2026-11-20T12:00:00Z') + now(),
    monotonic: now,
    alarm: () => () => {},
    sleep: (ms) => new Promise((resolve) => setTimeout(resolve, ms / 20)),
  } as Partial<Clock> as Clock
}

test('20 machines that need a new access token at the same time send one refresh request', async () => {
  const fleet = createFleet(fastClock())
  const machines = await Promise.all(Array.from({ length: 20 }, (_, at) => fleet.machine(`build-${at}`)))
  await fleet.signIn(machines[0] as Io)
  let outdated: string | undefined
  for (let round = 1; round <= 5; round++) {
    const given = { always: false, outdated }
    const tokens = await Promise.all(machines.map((io) => fleet.renew(io, given)))
    expect(new Set(tokens.map(({ value }) => value)).size).toBe(1)
    expect([fleet.service.refreshes, fleet.service.reuse]).toEqual([round, 0])
    outdated = tokens[0]?.value
  }
})

test('random faults of etcd, service and processes cause no reuse of a refresh token', async () => {
  const etcdFate = fc.constantFrom<Fate>(...Array(4).fill('pass'), 'lost', 'unanswered', 'late', 'killed')
  const serviceFates = ['tokens', 'tokens', 'refused', 'busy', 'consumed', 'killed'] as const
  const step = fc.record({
    does: fc.constantFrom('renew', 'renew', 'renew', 'renew', 'login', 'logout'),
    machine: fc.nat(2),
    etcd: fc.array(etcdFate, { minLength: 1, maxLength: 8 }),
    service: fc.constantFrom(...serviceFates),
    arrives: fc.boolean(),
  })
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 2, maxLength: 8 }), async (steps) => {
      const { etcd, service, ...fleet } = createFleet()
      const machines = await Promise.all(['a', 'b', 'c'].map((host) => fleet.machine(host)))
      await fleet.signIn(machines[0] as Io)
      for (const { does, machine, etcd: all, service: fate, arrives } of steps) {
        const io = machines[machine] as Io
        let isKilled = () => {}
        const killed = new Promise<void>((resolve) => {
          isKilled = resolve
        })
        const next = fates(...all)
        etcd.fate = (path) => {
          const chosen = next(path)
          if (chosen === 'killed') isKilled()
          return chosen
        }
        service.fate = () => {
          if (fate === 'killed') isKilled()
          return fate
        }
        const work: Promise<unknown> =
          does === 'renew'
            ? fleet.renew(io)
            : does === 'login'
              ? fleet.signIn(io)
              : endEtcdSession(io, 'default')
        const ended = await Promise.race([work.catch((error: unknown) => error), killed])
        if (ended instanceof Error) expect(ended).toBeInstanceOf(CliError)
        if (arrives) etcd.arrive()
        expect(service.reuse).toBe(0)
      }
      etcd.arrive()
      etcd.fate = () => 'pass'
      service.fate = () => 'tokens'
      const ends = []
      for (const io of machines) ends.push(await fleet.renew(io).catch((error: CliError) => error))
      expect(service.reuse).toBe(0)
      const mayBeLost = steps.some(
        ({ does, service: fate, etcd: all }) =>
          does === 'logout' || ['consumed', 'killed'].includes(fate) || all.includes('killed'),
      )
      expect(mayBeLost || ends.some((end) => !(end instanceof Error))).toBe(true)
    }),
    { numRuns: 60 },
  )
}, 60_000)
