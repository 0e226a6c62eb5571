import { randomBytes } from 'node:crypto'
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type Context, type HttpRequest, TransportError } from '../../src/context.ts'
import { describeSession } from '../../src/session/describe.ts'
import { forgetSession } from '../../src/session/forget.ts'
import { sessionPaths } from '../../src/session/paths.ts'
import { renew } from '../../src/session/refresh.ts'
import { replaceSession } from '../../src/session/replace.ts'
import type { Settings } from '../../src/settings/settings.ts'
import {
  createFakeContext,
  createFakeKeychain,
  type FakeKeychain,
  fakeSettings,
  jsonResponse,
  textResponse,
} from '../fake-context.ts'
import { endOf, withEffects } from './sandbox-session.ts'

/** What happens to one refresh. */
const SCENARIOS = [
  'answered',
  'unreachable',
  'refused by the service',
  'lost before the service processed it',
  'lost after the service processed it',
  'answered 503 after the service processed it',
  'killed before the journal',
  'killed after the journal',
  'killed after the service processed it',
  'killed after the new token was stored',
  'answered while the keychain refuses',
  'answered after the lock file was deleted',
] as const
type Scenario = (typeof SCENARIOS)[number]

/** The service, as simple as it can be: one token is current, and each earlier one must never come again. */
class Service {
  current = 'none'
  readonly spent = new Set<string>()
  readonly dead = new Set<string>()
  reuse = 0

  issue(): string {
    this.current = randomBytes(9).toString('hex')
    return this.current
  }

  refresh(token: string): { refresh_token: string } | undefined {
    if (token === this.current) {
      this.spent.add(token)
      return { refresh_token: this.issue() }
    }
    if (this.spent.has(token)) {
      this.reuse++
      this.current = 'none'
    }
    return undefined
  }
}

/** The parts that a command of the model changes for real. */
interface Real {
  readonly context: Context
  readonly keychain: FakeKeychain
  readonly settings: Settings
  readonly service: Service
  readonly store: 'keychain' | 'file'
}

/** The stored state, as docs/token-safety.md has it in its table. */
interface Model {
  /** `none`: nobody signed in; `over`: the service ended the session. */
  session: 'none' | 'signed in' | 'over'
  /** Whether the newest stored token may have been sent with no known outcome. */
  journal: 'none' | 'this token'
  /** Whether the service has consumed the newest stored token. */
  consumed: boolean
  /** Whether the newest token lies in a file, because the keychain refused it. */
  fallback: boolean
}

const respond = (body: unknown) =>
  jsonResponse(200, { access_token: 'a', token_type: 'Bearer', expires_in: 900, ...(body as object) })
const invalidGrant = () => jsonResponse(400, { error: 'invalid_grant' })

/** One refresh with a given scenario. @returns its end as the person sees it; `killed` if nobody saw it. */
async function refreshThatIs(scenario: Scenario, real: Real, retryInterrupted: boolean): Promise<string> {
  const { context, keychain, service } = real
  const home = dirname(context.directories.state)
  /** The disk and the keychain as they were when the process was killed: what it did afterwards never happened. */
  let killed: { directory: string; items: Map<string, string> } | undefined
  const kill = () => {
    const directory = `${home}.at-death`
    rmSync(directory, { recursive: true, force: true })
    cpSync(home, directory, { recursive: true })
    killed = { directory, items: new Map(keychain.items) }
  }
  const journals = () =>
    readdirSync(home, { recursive: true, encoding: 'utf8' }).filter((name) =>
      /journal\.[0-9a-f]{64}\.json$/.test(name),
    )
  let noted: string[] = []

  const send = async (request: HttpRequest) => {
    if (scenario === 'unreachable')
      throw new TransportError('tls', 'no', 'no secure connection could be made')
    const lock = sessionPaths(context, 'default').lock
    if (scenario === 'answered after the lock file was deleted') rmSync(lock, { force: true })
    if (scenario === 'killed before the journal') kill()
    try {
      request.beforeSend?.()
    } catch (error) {
      throw new TransportError('aborted', 'no', 'the request was not sent', error)
    }
    noted = journals()
    if (scenario === 'killed before the journal' || scenario === 'killed after the journal') {
      if (scenario === 'killed after the journal') kill()
      throw new TransportError('reset', 'maybe', 'killed')
    }
    if (scenario === 'refused by the service') return jsonResponse(401, { error: 'invalid_client' })
    if (scenario === 'lost before the service processed it')
      throw new TransportError('reset', 'maybe', 'reset')
    const token = new URLSearchParams(request.body).get('refresh_token') ?? ''
    const answer = service.refresh(token)
    if (scenario === 'killed after the service processed it') kill()
    if (scenario === 'lost after the service processed it')
      throw new TransportError('reset', 'maybe', 'reset')
    if (scenario === 'answered 503 after the service processed it') return textResponse(503, 'upstream reset')
    if (scenario === 'answered while the keychain refuses') keychain.trouble = 'refused'
    return answer === undefined ? invalidGrant() : respond(answer)
  }
  const end = await endOf(() =>
    renew(withEffects(context as never, { http: { send, close: async () => {} } }), real.settings, {
      reason: 'asked',
      retryInterrupted,
    }),
  )
  keychain.trouble = 'none'
  if (scenario === 'killed after the new token was stored') {
    // The journal goes last: as if it had not come to that.
    for (const name of noted)
      if (!existsSync(join(home, name)) && existsSync(dirname(join(home, name))))
        writeFileSync(join(home, name), '')
    return 'killed'
  }
  if (killed === undefined) return end
  for (const name of readdirSync(home)) rmSync(join(home, name), { recursive: true, force: true })
  cpSync(killed.directory, home, { recursive: true })
  rmSync(killed.directory, { recursive: true })
  keychain.items.clear()
  for (const [account, secret] of killed.items) keychain.items.set(account, secret)
  return 'killed'
}

class Refresh implements fc.AsyncCommand<Model, Real> {
  readonly scenario: Scenario
  readonly retry: boolean
  constructor(scenario: Scenario, retry: boolean) {
    this.scenario = scenario
    this.retry = retry
  }
  check = () => true

  async run(model: Model, real: Real): Promise<void> {
    const before = real.service.reuse
    // The promise itself: only a person who says so sends a token twice.
    const consented = this.retry && model.journal === 'this token' && model.consumed
    const end = await refreshThatIs(this.scenario, real, this.retry)
    const expected = this.#expect(model, real.store)
    if (expected !== undefined) expect(end).toBe(expected)
    expect(real.service.reuse - before).toBeLessThanOrEqual(consented ? 1 : 0)
    const { state } = await describeSession(real.context, real.settings)
    expect(state).toBe(stateOf(model))
  }

  /** The end according to the model, and what is stored then; undefined if nobody saw the end. */
  #expect(model: Model, store: 'keychain' | 'file'): string | undefined {
    if (model.session === 'none')
      return this.scenario === 'killed after the new token was stored' ? 'killed' : 'not_signed_in'
    if (model.session === 'over')
      return this.scenario === 'killed after the new token was stored' ? 'killed' : 'session_over'
    if (model.journal === 'this token' && !this.retry)
      return this.scenario === 'killed after the new token was stored' ? 'killed' : 'refresh_interrupted'
    const unknown = (consumed: boolean) => {
      model.journal = 'this token'
      model.consumed ||= consumed
    }
    const over = () => {
      model.session = 'over'
      model.journal = 'none'
      return 'session_over'
    }
    switch (this.scenario) {
      case 'unreachable':
        return 'service_unreachable'
      case 'refused by the service':
        return 'invalid_client'
      case 'lost before the service processed it':
        unknown(false)
        return 'refresh_unknown'
      case 'lost after the service processed it':
      case 'answered 503 after the service processed it':
        unknown(true)
        return 'refresh_unknown'
      case 'killed before the journal':
        return 'killed'
      case 'killed after the journal':
        unknown(false)
        return 'killed'
      case 'killed after the service processed it':
        unknown(true)
        return 'killed'
      case 'answered after the lock file was deleted':
        // Deleted at every attempt: nothing is ever sent.
        return 'session_busy'
      case 'killed after the new token was stored':
        if (model.consumed) over()
        else {
          model.journal = 'none'
          model.fallback = false
        }
        return 'killed'
      case 'answered':
      case 'answered while the keychain refuses':
        if (model.consumed) return over()
        model.journal = 'none'
        model.fallback = store === 'keychain' && this.scenario !== 'answered'
        return 'ok'
    }
  }

  toString = () => `refresh, ${this.scenario}${this.retry ? ', retrying' : ''}`
}

function stateOf(model: Model): string {
  if (model.session === 'none') return 'none'
  if (model.session === 'over') return 'ended'
  return model.journal === 'this token' ? 'interrupted' : 'fine'
}

class Login implements fc.AsyncCommand<Model, Real> {
  check = () => true
  async run(model: Model, real: Real): Promise<void> {
    await replaceSession(real.context, real.settings, {
      base: new URL('https://api.example.com'),
      clientId: 'client-1',
      scope: undefined,
      resource: undefined,
      tokens: {
        accessToken: 'a',
        refreshToken: real.service.issue(),
        expiresInSeconds: 900,
        scope: undefined,
      },
      store: real.store,
    })
    Object.assign(model, { session: 'signed in', journal: 'none', consumed: false, fallback: false })
    expect((await describeSession(real.context, real.settings)).state).toBe('fine')
  }
  toString = () => 'login'
}

class Logout implements fc.AsyncCommand<Model, Real> {
  check = () => true
  async run(model: Model, real: Real): Promise<void> {
    expect((await forgetSession(real.context, real.settings, 'default')).kept).toEqual([])
    Object.assign(model, { session: 'none', journal: 'none', consumed: false, fallback: false })
    expect(real.keychain.items.size).toBe(0)
    const files = existsSync(sessionPaths(real.context, 'default').directory)
      ? readdirSync(sessionPaths(real.context, 'default').directory)
      : []
    expect(files.filter((name) => name !== 'lock')).toEqual([])
  }
  toString = () => 'logout'
}

/** Somebody puts an older secret back, as a restored backup does: it must not be sent. */
class RestoreOldSecret implements fc.AsyncCommand<Model, Real> {
  check = (model: Readonly<Model>) =>
    model.session === 'signed in' && model.journal === 'none' && !model.fallback
  async run(_model: Model, real: Real): Promise<void> {
    const { context, settings, keychain, service } = real
    const { directory } = sessionPaths(context, 'default')
    const secrets = () => readdirSync(directory).filter((name) => name.startsWith('secret.'))
    const take = () => ({
      items: new Map(keychain.items),
      files: secrets().map((name): [string, string] => [name, readFileSync(join(directory, name), 'utf8')]),
    })
    const put = ({ items, files }: ReturnType<typeof take>) => {
      for (const [account, secret] of items) keychain.items.set(account, secret)
      for (const name of secrets()) rmSync(join(directory, name))
      for (const [name, text] of files) writeFileSync(join(directory, name), text)
    }
    const older = take()
    expect(await refreshThatIs('answered', real, false)).toBe('ok')
    const newer = take()
    put(older)
    const reuse = service.reuse
    expect(await refreshThatIs('answered', real, false)).toBe('refresh_token_outdated')
    expect(service.reuse).toBe(reuse)
    expect((await describeSession(context, settings)).problem?.code).toBe('refresh_token_outdated')
    put(newer)
  }
  toString = () => 'restore an old secret'
}

describe.each(['file', 'keychain'] as const)('the stored states of a session (%s)', (store) => {
  it('no sequence of events leads to a second use of a token or to an untrue message', async () => {
    const commands = [
      fc
        .constantFrom(...SCENARIOS)
        .chain((scenario) => fc.boolean().map((retry) => new Refresh(scenario, retry))),
      fc.constantFrom(...SCENARIOS).map((scenario) => new Refresh(scenario, false)),
      fc.constant(new Login()),
      fc.constant(new Logout()),
      fc.constant(new RestoreOldSecret()),
    ]
    await fc.assert(
      fc.asyncProperty(fc.commands(commands, { maxCommands: 12 }), async (sequence) => {
        const keychain = createFakeKeychain()
        const fake = createFakeContext({ keychain })
        const random = { bytes: (length: number) => randomBytes(length), fraction: () => 1 }
        const context = withEffects(fake, { random })
        const settings = await fakeSettings(context, {
          baseUrl: 'https://api.example.com',
          clientId: 'client-1',
        })
        const real: Real = { context, keychain, settings, service: new Service(), store }
        const setup = async () => ({
          model: { session: 'none', journal: 'none', consumed: false, fallback: false } as Model,
          real,
        })
        mkdirSync(dirname(context.directories.state), { recursive: true })
        await new Login().run({} as Model, real)
        await forgetSession(context, settings, 'default')
        await fc.asyncModelRun(setup, sequence)
        rmSync(dirname(context.directories.state), { recursive: true, force: true })
      }),
      { numRuns: 40 },
    )
  }, 120_000)
})
