import { beforeAll, describe, expect, it } from 'vitest'
import { needs } from '../../test/requirements.ts'
import {
  bytesSent,
  type Call,
  compileShim,
  describeCall,
  FAULTS,
  type Fault,
  type FaultExtent,
  isKill,
  isOnDisk,
  isOnNetwork,
  isOwnCode,
  isSend,
  LASTING_FAULTS,
  readCalls,
  shimEnvironment,
  wroteNote,
} from './fault-shim.ts'
import { sample, seed } from './options.ts'
import { type Client, inParallel, type Run, shareClients } from './run-mailclaim.ts'
import { endingOf, findMalfunctions, findUntruths } from './statements.ts'
import { type Outcome, report } from './table.ts'

/** Timeout of a test in milliseconds, generous for slow machines; a hanging process is reported much earlier. */
const HOURS = 4 * 3600 * 1000

const ALL_FAULTS = Object.keys(FAULTS) as Fault[]
const NEXT = ['grants', 'list', '--json']

/** How far the first command's refresh request had come, for a session with which the next command fails. */
type Stranded =
  | 'a byte had left'
  | 'the answer had arrived'
  | 'killed between note and first byte'
  | 'nothing had left'

interface Verified {
  readonly stranded?: Stranded
  /** Mistakes of the program in a run, one text each; empty for a good run. */
  readonly wrong: readonly string[]
}

/** A run with an injected fault, and the system calls that the shim logged. */
interface Aftermath {
  readonly first: Run
  readonly fault: Fault
  readonly lasts: FaultExtent | undefined
  readonly calls: readonly Call[]
}

/** A command to run with a fault in one of its system calls. If there is a session, its access token has expired. */
interface Operation {
  readonly name: string
  readonly faults: readonly Fault[]
  /** State before the command: `nothing` is a home without state; the default is a signed-in home. */
  readonly from?: 'nothing'
  start(client: Client, env: Record<string, string>): Promise<Run>
  /** Runs further commands without a fault, and returns the promises that these or the command with the fault broke. */
  verify(client: Client, aftermath: Aftermath): Promise<Verified>
}

const REFRESH: Operation = {
  name: 'a refresh (grants list)',
  faults: ALL_FAULTS,
  start: (client, env) => client.run(NEXT, env),
  verify: (client, aftermath) => verifyRefresh(client, aftermath, () => client.run(NEXT)),
}

const NARROWED: Operation = {
  name: 'a refresh for a narrower token (auth token --scope)',
  faults: ALL_FAULTS.filter((fault) => !isKill(fault)),
  start: (client, env) => client.run(['auth', 'token', '--scope', 'emails:send', '--json'], env),
  async verify(client, aftermath) {
    let printed = ''
    const verified = await verifyRefresh(client, aftermath, async () => {
      const next = await client.run(['auth', 'token', '--json'])
      printed = /at_[0-9a-f-]+/.exec(next.stdout)?.[0] ?? ''
      return next
    })
    const isKept = client.service.scopeOf(printed) === 'emails:send'
    return isKept ? { ...verified, wrong: [...verified.wrong, 'a narrower token was kept'] } : verified
  },
}

const LOGIN: Operation = {
  name: 'a login over a session',
  faults: ALL_FAULTS,
  start: (client, env) => client.login(env),
  async verify(client, { first }) {
    const next = await client.run(NEXT)
    const wrong: string[] = []
    if (next.code !== 0) wrong.push(`neither the old nor the new session works: ${endingOf(next)}`)
    if (first.code === 0 && !client.service.servedNewGrant)
      wrong.push('untrue: signed in, and the previous session is active')
    if (first.code !== 0 && client.service.servedNewGrant && /untouched|still active/.test(first.stderr))
      wrong.push('untrue: the previous session is active, and the new one is')
    return { wrong: [...wrong, ...findMalfunctions(next), ...(await leftAfterLogout(client))] }
  },
}

const FIRST_LOGIN: Operation = {
  name: 'a first login',
  faults: ALL_FAULTS,
  from: 'nothing',
  start: (client, env) => client.login(env),
  async verify(client, { first }) {
    const next = await client.run(NEXT)
    const wrong: string[] = []
    if (first.code === 0 && next.code !== 0)
      wrong.push(`signed in, and the next command ends with ${endingOf(next)}`)
    if (first.code !== 0 && next.code !== 0 && next.error?.code !== 'not_signed_in')
      wrong.push(`neither signed in nor signed out: ${endingOf(next)}`)
    return { wrong: [...wrong, ...findMalfunctions(next), ...(await leftAfterLogout(client))] }
  },
}

const LOGOUT: Operation = {
  name: 'a logout',
  faults: ALL_FAULTS,
  start: (client, env) => client.run(['logout', '--json'], env),
  async verify(client, { first }) {
    const wrong: string[] = []
    const onDisk = client.tokensOnDisk().length > 0
    if (onDisk && (first.code === 0 || /is signed out|was not signed in/.test(first.stderr)))
      wrong.push('untrue: signed out, and a refresh token is on the disk')
    const next = await client.run(NEXT)
    if (first.code === 0 && next.error?.code !== 'not_signed_in')
      wrong.push(`signed out, and the next command ends with ${endingOf(next)}`)
    return { wrong: [...wrong, ...findMalfunctions(next), ...(await leftAfterLogout(client))] }
  },
}

/**
 * Logs out without a fault, and returns the promises that the logout breaks, for example if a refresh token remains on the disk.
 */
async function leftAfterLogout(client: Client): Promise<string[]> {
  const logout = await client.run(['logout', '--json'])
  const wrong = findMalfunctions(logout)
  if (logout.code !== 0) wrong.push(`the logout after it ends with ${endingOf(logout)}`)
  if (client.tokensOnDisk().length > 0) wrong.push('the logout after it leaves a refresh token on the disk')
  return wrong
}

async function verifyRefresh(
  client: Client,
  { first, fault, lasts, calls }: Aftermath,
  runNext: () => Promise<Run>,
): Promise<Verified> {
  const { service } = client
  const { bytes, processed } = service.counts
  const next = await runNext()
  const works = next.code === 0
  const wrong = [
    ...findUntruths(first, { bytes, processed, nextWorks: works }),
    // The next command's statements about a request refer to the first command's request, unless the next one sent its own. So
    // check them against the counts of both.
    ...findUntruths(next, { bytes: service.counts.bytes, processed: service.counts.processed }),
    ...findMalfunctions(next),
  ]
  const isLost =
    lasts !== undefined && processed > 0 && /new refresh token .* could not be stored/.test(first.stderr)
  if (first.code === 0 && !works && !isLost)
    wrong.push(`done, and the next command ends with ${endingOf(next)}`)
  if (works) return { wrong }
  if (lasts !== undefined) {
    // If the disk stays broken after the answer, the new refresh token can't be stored: the command has to report that.
    if (processed > 0 && !isLost) wrong.push(`an answer was lost: ${endingOf(first)}`)
    // If the note file (`next.…`) can't be removed either, the next command has to end with `refresh_interrupted`, with a remedy.
    const isNamed = next.error?.code === 'refresh_interrupted' && wroteNote(calls)
    if (bytes === 0 && !isNamed) wrong.push(`stranded, and nothing had left: ${endingOf(next)}`)
    return { stranded: bytes > 0 ? 'the answer had arrived' : 'nothing had left', wrong }
  }
  const hit = calls.find((call) => call.hit)
  // A lost answer is a broken promise here: after one failed file operation, the program can still write the new refresh token to
  // the space reserved for it.
  if (processed > 0 && !isKill(fault) && hit !== undefined && !isOnNetwork(hit))
    return { stranded: 'the answer had arrived', wrong: [...wrong, `an answer was lost: ${endingOf(first)}`] }
  if (bytes > 0 || (hit !== undefined && isSend(hit) && !isKill(fault)))
    return { stranded: 'a byte had left', wrong }
  if (isKill(fault) && next.error?.code === 'refresh_interrupted' && wroteNote(calls))
    return { stranded: 'killed between note and first byte', wrong }
  // The note file exists, but its creation was reported as failed: the program has to take it for another process's and leave it,
  // as after a kill.
  const isUnknown = hit?.name === 'create' && hit.about.includes('/next.')
  if (isUnknown && fault === 'done but reported failed' && next.error?.code === 'refresh_interrupted')
    return { stranded: 'killed between note and first byte', wrong }
  return {
    stranded: 'nothing had left',
    wrong: [...wrong, `stranded, and nothing had left: ${endingOf(next)}`],
  }
}

interface Result extends Outcome, Verified {
  readonly wrong: readonly string[]
  readonly reached: boolean
  readonly reuse: number
}

const stranded = (kind: Stranded) => (result: Result) => result.stranded === kind
const COLUMNS = {
  missed: ({ reached }: Result) => !reached,
  reuse: ({ reuse }: Result) => reuse > 0,
  'stranded: byte': stranded('a byte had left'),
  answer: stranded('the answer had arrived'),
  note: stranded('killed between note and first byte'),
  nothing: stranded('nothing had left'),
}

describe.runIf(process.platform === 'linux' && needs('cc'))('one fault at any system call', () => {
  const { clients, onEnd } = shareClients()
  let library = ''
  beforeAll(() => {
    library = compileShim(onEnd)
  })

  it.each([REFRESH, NARROWED, FIRST_LOGIN, LOGIN, LOGOUT])(
    '$name with a fault or a kill at any one system call sends no used refresh token, and prints no untrue message',
    async (operation) => {
      const began = performance.now()
      const { length: count } = await listCalls(operation)
      const positions = sample(Array.from({ length: count }, (_, index) => index + 1))
      const runs = positions.flatMap((at) => operation.faults.map((fault) => ({ at, fault })))
      const results = await inParallel(clients, runs, (client, { at, fault }) =>
        runOnce(client, operation, at, fault),
      )
      const seconds = Math.round((performance.now() - began) / 1000)
      const heading = `${operation.name}: ${count} calls, ${positions.length} of them tried, seed ${seed}, ${seconds} s`
      expect(report(heading, results, COLUMNS)).toEqual({})
    },
    HOURS,
  )

  it.each([REFRESH, NARROWED, FIRST_LOGIN, LOGIN, LOGOUT])(
    '$name on a disk that keeps failing from any system call on sends no used refresh token, and prints no untrue message',
    async (operation) => {
      const began = performance.now()
      const positions = sample((await listCalls(operation)).filter(isOnDisk).map(({ number }) => number))
      const extents = ['same', 'changes'] as const
      const runs = positions.flatMap((at) =>
        LASTING_FAULTS.flatMap((fault) => extents.map((lasts) => ({ at, fault, lasts }))),
      )
      const results = await inParallel(clients, runs, (client, { at, fault, lasts }) =>
        runOnce(client, operation, at, fault, lasts),
      )
      const seconds = Math.round((performance.now() - began) / 1000)
      const heading = `${operation.name}, lasting: ${positions.length} calls, seed ${seed}, ${seconds} s`
      expect(report(heading, results, COLUMNS)).toEqual({})
    },
    HOURS,
  )

  async function listCalls(operation: Operation): Promise<Call[]> {
    const [client] = clients
    if (client === undefined) throw new Error('no client')
    client.rewind(operation.from)
    const run = await operation.start(client, shimEnvironment(library, client))
    if (run.code !== 0)
      throw new Error(`without a fault, ${operation.name} ends with ${run.code}: ${run.stderr}`)
    const calls = readCalls(client)
    if (calls.length === 0) throw new Error('the shim sees none of the calls')
    return calls
  }

  async function runOnce(
    client: Client,
    operation: Operation,
    at: number,
    fault: Fault,
    lasts?: FaultExtent,
  ): Promise<Result> {
    client.rewind(operation.from)
    const first = await operation.start(client, shimEnvironment(library, client, { at, fault, lasts }))
    const calls = readCalls(client)
    await client.service.settled(bytesSent(calls))
    const hit = calls.find((call) => call.hit)
    const verified = await operation.verify(client, { first, fault, lasts, calls })
    const { reuse, leaks } = client.service.counts
    // Ignore malfunctions if Node couldn't read the program's own code: Node then prints an error and exits by its own rules.
    const ownCode = hit !== undefined && isOwnCode(hit)
    const wrong = [...(ownCode ? [] : findMalfunctions(first, isKill(fault))), ...verified.wrong]
    if (reuse > 0) wrong.push('a rotated refresh token was sent')
    if (leaks > 0) wrong.push('a refresh token was sent elsewhere')
    return {
      ...verified,
      wrong,
      group: fault,
      how: lasts === undefined ? fault : `${fault}, ${lasts}`,
      where: hit === undefined ? `call ${at}, which did not come` : describeCall(hit),
      reached: hit !== undefined,
      reuse,
    }
  }
})
