import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Context, TransportError } from '../../src/context.ts'
import { renew } from '../../src/session/refresh.ts'
import { forgetShared } from '../../src/session/shared/forget.ts'
import { sealAgain } from '../../src/session/shared/replace.ts'
import { SharedVault } from '../../src/session/shared/vault.ts'
import { jsonResponse } from '../fake-context.ts'
import { needs } from '../requirements.ts'
import { endOf, withEffects } from '../session/sandbox-session.ts'
import { type Cluster, startCluster } from './cluster.ts'
import { createFleet, type Fleet } from './fleet.ts'
import { createMemoryEtcd, type EtcdState } from './memory-etcd.ts'

type Send = Context['http']['send']
type Machine = Awaited<ReturnType<Fleet['inProcess']>>

/** The machines have the clock of this one. */
const START = Date.now()
const HOUR = 3_600_000
/** The last one has nowhere to remember anything. */
const MACHINES = 4

const STEPS = {
  /** Renews the session. */
  refresh: 8,
  /** Uses it, and renews it if the access token has expired. */
  use: 4,
  /** The service takes the refresh token, and its answer is lost. */
  'lose the answer': 2,
  /** The service refuses for a while, without taking the token. */
  'be refused': 1,
  /** etcd is gone when the successor is to be stored: the machine keeps it. */
  'keep the successor': 3,
  login: 2,
  'login with a clock ahead': 1,
  'login with a clock behind': 1,
  logout: 2,
  rekey: 1,
} as const
type Act = keyof typeof STEPS
type Step = { readonly act: Act; readonly by: number } | { readonly act: 'save etcd' | 'set etcd back' }

const act = fc.oneof(
  ...Object.entries(STEPS).map(([name, weight]) => ({ weight, arbitrary: fc.constant(name as Act) })),
)
const acts = (maxLength: number) => fc.array(fc.record({ act, by: fc.nat(MACHINES - 1) }), { maxLength })

/** Often, what is set back has been used meanwhile. */
const history: fc.Arbitrary<Step[]> = fc
  .array(fc.tuple(acts(3), acts(5), acts(3)), { minLength: 1, maxLength: 2 })
  .map((parts) =>
    parts.flatMap(([before, between, after]): Step[] => [
      ...before,
      { act: 'save etcd' },
      ...between,
      { act: 'set etcd back' },
      ...after,
    ]),
  )
/** Nothing is set back. */
const simple: fc.Arbitrary<Step[]> = acts(12)

/** A fleet whose etcd can be set back, and that knows which writes each machine has seen or done. */
async function createHistory(cluster: Cluster) {
  const fleet = await createFleet(cluster)
  const state: EtcdState = { kept: new Map(), revision: 1 }
  const etcd = createMemoryEtcd('1', state)
  /** The writes that led to the state of etcd. */
  let writes: number[] = []
  let written = 0
  let saved = { state: structuredClone(state), writes }
  const seen = Array.from({ length: MACHINES }, () => new Set<number>())
  /** The last write before each refresh token was taken. */
  const taken = new Map<string, number | undefined>()
  const problems: string[] = []

  const passTo = (by: number, send: Send): Send => {
    return async (request) => {
      const before = state.revision
      const answer = etcd(request)
      if (answer !== undefined) {
        if (state.revision > before) writes = [...writes, ++written]
        for (const write of writes) seen[by]?.add(write)
        return answer
      }
      const sent = new URLSearchParams(request.body ?? '').get('refresh_token')
      if (sent === null) return send(request)
      const { reuse } = await fleet.harm()
      const response = await send(request)
      if ((await fleet.harm()).reuse === reuse) taken.set(sent, writes.at(-1))
      else if (by < MACHINES - 1 && seen[by]?.has(taken.get(sent) ?? -1))
        problems.push(`machine ${by} sent a refresh token again`)
      return response
    }
  }
  const machines: Machine[] = []
  for (let by = 0; by < MACHINES; by++) {
    const { context, settings } = await fleet.inProcess(by < MACHINES - 1 ? { home: fleet.machine() } : {})
    const { http } = context
    const send = passTo(by, (request) => http.send(request))
    machines.push({ context: withEffects(context, { http: { ...http, send } }), settings })
  }
  const machine = (by: number) => machines[by] ?? expect.fail()
  const signIn = ({ context, settings }: Machine, signedInAt: number) =>
    endOf(() => fleet.signIn(new SharedVault(context, settings), { signedInAt }))
  return {
    fleet,
    problems,
    machine,
    signIn,
    save: () => {
      saved = { state: structuredClone(state), writes }
    },
    setBack: () => {
      Object.assign(state, structuredClone(saved.state))
      writes = saved.writes
    },
  }
}

const renewOf = ({ context, settings }: Machine, reason: 'asked' | 'stale') =>
  endOf(() => renew(context, settings, { reason }))

const lost = () => new TransportError('reset', 'maybe', 'the connection was closed')

function between(
  { context, settings }: Machine,
  send: (...given: [...Parameters<Send>, Send]) => ReturnType<Send>,
) {
  const { http } = context
  const own: Send = (request) => send(request, (passed) => http.send(passed))
  return { context: withEffects(context, { http: { ...http, send: own } }), settings }
}

const isRefresh = ({ url }: { url: URL }) => url.pathname.endsWith('/oauth/token')

function take(
  step: Step['act'],
  machine: Machine,
  { signIn, save, setBack }: Awaited<ReturnType<typeof createHistory>>,
) {
  const { context, settings } = machine
  switch (step) {
    case 'refresh':
      return renewOf(machine, 'asked')
    case 'use':
      return renewOf(machine, 'stale')
    case 'lose the answer':
      return renewOf(
        between(machine, async (request, pass) => {
          const answer = await pass(request)
          if (isRefresh(request)) throw lost()
          return answer
        }),
        'asked',
      )
    case 'be refused':
      return renewOf(
        between(machine, async (request, pass) => {
          if (!isRefresh(request)) return pass(request)
          await request.beforeSend?.()
          return jsonResponse(429, { error: 'slow_down' })
        }),
        'asked',
      )
    case 'keep the successor': {
      let isTaken = false
      return renewOf(
        between(machine, async (request, pass) => {
          isTaken ||= isRefresh(request)
          if (isTaken && request.url.pathname === '/v3/kv/txn') throw lost()
          return pass(request)
        }),
        'asked',
      )
    }
    case 'login':
      return signIn(machine, START)
    case 'login with a clock ahead':
      return signIn(machine, START + HOUR)
    case 'login with a clock behind':
      return signIn(machine, START - HOUR)
    case 'logout':
      return endOf(() => forgetShared(context, new SharedVault(context, settings)))
    case 'rekey':
      return endOf(() => sealAgain(new SharedVault(context, settings)))
    case 'save etcd':
      return save()
    case 'set etcd back':
      return setBack()
  }
}

describe.runIf(needs('etcd'))('whatever happens to a fleet', () => {
  let cluster: Cluster
  beforeAll(async () => {
    cluster = await startCluster()
  })
  afterAll(() => cluster?.stop())

  it('no machine sends a refresh token that it knows to be taken, and a new sign-in serves all of them', async () => {
    await fc.assert(
      fc.asyncProperty(fc.oneof({ weight: 4, arbitrary: history }, simple), async (steps) => {
        const world = await createHistory(cluster)
        await world.signIn(world.machine(0), START)
        let isSetBack = false
        for (const step of steps) {
          isSetBack ||= step.act === 'set etcd back'
          const end = await take(step.act, world.machine('by' in step ? step.by : 0), world)
          expect(world.problems).toEqual([])
          if (!isSetBack) expect(end).not.toBe('store_restored')
        }
        expect(await world.signIn(world.machine(steps.length % MACHINES), START + 5 * HOUR)).toBe('ok')
        for (const reason of ['stale', 'asked'] as const)
          for (let by = 0; by < MACHINES; by++) expect(await renewOf(world.machine(by), reason)).toBe('ok')
      }),
      { numRuns: Number(process.env['RUNS'] ?? 25), endOnFailure: false },
    )
  }, 3_600_000)
})
