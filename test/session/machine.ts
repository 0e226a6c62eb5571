import type { HttpRequest, KeychainRequest, KeychainResult } from '../../src/context.ts'
import { HttpTransportError } from '../../src/context.ts'
import { CliError } from '../../src/errors.ts'
import { renewLocalSession } from '../../src/session/renew.ts'
import {
  decodeSession,
  encodeSession,
  type ProfileFiles,
  type Session,
} from '../../src/session/session-file.ts'
import { prepareLocalSignIn, signOutLocally } from '../../src/session/sign-in.ts'
import { createIo, type Io } from '../../src/terminal/io.ts'
import { createFakeClock, createFakeContext, fakeSettings, jsonResponse } from '../fake-context.ts'
import { FakeDisk, type Fate, Killed } from './fake-disk.ts'

const DIRECTORY = '/state/profiles/default'
const SESSION = `${DIRECTORY}/session.json`
const LOCK = `${DIRECTORY}/lock`
const BASE = 'https://api.example.com'

export const COMMANDS = ['renew', 'retry', 'login', 'logout'] as const
export type Command = (typeof COMMANDS)[number]
export type Store = 'file' | 'keychain'

/** Fates of a step, by its kind. */
const FATES = {
  disk: ['killed before', 'killed after', 'fails'],
  read: ['killed before', 'fails'],
  write: ['killed before', 'killed after', 'torn', 'fails'],
  get: ['killed before', 'gives nothing', 'fails'],
  set: ['killed before', 'killed after', 'fails', 'hangs, but is done', 'lies'],
  delete: ['killed before', 'killed after', 'fails'],
  send: [
    'killed before',
    'killed after',
    'unreachable',
    'refused',
    'lost, consumed',
    'lost, unused',
    'answered oddly',
  ],
} as const
type Kind = keyof typeof FATES
export type StepFate = (typeof FATES)[Kind][number]

/** A fault at one step of a command. `power`: loses power as well; the number chooses what survives. */
export interface Fault {
  /** The faulty step: its number, or the first step of a kind or system call. */
  readonly step: number | Kind | 'rename'
  readonly fate: StepFate
  readonly power?: number
}

export interface Ran {
  /** How the command ended: `ok`, `killed`, or an error code. */
  readonly end: string
  readonly error: CliError | undefined
  /** Whether the refresh token was sent. */
  readonly isSent: boolean
  /** Kinds of the command's steps, in their order. */
  readonly steps: readonly Kind[]
}

/** Creates the effects that all machines of a test share, all of them fake. */
export async function createBase(): Promise<Io> {
  const context = createFakeContext()
  return createIo(context, await fakeSettings(context, { baseUrl: BASE, clientId: 'client-1', quiet: true }))
}

/**
 * A machine with a disk and a keychain, and a service that revokes a grant on reuse of a refresh token. Violations of the promises
 * are collected in `broken`.
 */
export class Machine {
  disk = new FakeDisk()
  readonly broken: string[] = []
  item: string | undefined
  /** Grants of the service. The Mth refresh token of grant N is `N.M`. */
  grants: { good: number; isRevoked: boolean }[] = []
  /** Refresh tokens that a process sent or was about to send. */
  sent = new Set<string>()
  /** Number of the grant that should be signed in: null after a logout, `any` after a login or logout that was cut off. */
  wanted: number | null | 'any' = 0
  readonly #io: Io
  readonly #store: Store
  #ids = 0
  /** Called at each point where a process waits, so that a test decides when the process continues. */
  turn: (process: number, what: 'works' | 'waits for the lock') => Promise<void> = async () => {}

  constructor(base: Io, store: Store) {
    this.#io = base
    this.#store = store
    this.grants.push({ good: 1, isRevoked: false })
    const session = this.#session('000000000000', '0.1')
    this.disk.put(SESSION, encodeSession(session))
    if (store === 'keychain') this.item = '000000000000.1@0:0.1'
  }

  #session(id: string, token: string): Session {
    const session = {
      kind: 'session',
      profile: 'default',
      id,
      generation: 1,
      store: this.#store,
      service: BASE,
      client: 'client-1',
      // The scope is the number of the grant.
      scope: '0',
      resource: null,
      signedInAt: 0,
      issuedAt: 0,
    } as const
    return this.#store === 'file' ? { ...session, refreshToken: token } : session
  }

  /** Returns a machine in the same state, without running processes. */
  clone(): Machine {
    const machine = new Machine(this.#io, this.#store)
    machine.disk = this.disk.clone()
    machine.item = this.item
    machine.grants = this.grants.map((grant) => ({ ...grant }))
    machine.wanted = this.wanted
    machine.sent = new Set(this.sent)
    machine.#ids = this.#ids
    machine.broken.push(...this.broken)
    return machine
  }

  /** Returns the state that later commands can observe, as text. */
  get state(): string {
    const { disk, item, grants, wanted, sent, broken } = this
    return JSON.stringify([disk.state, item, grants, wanted, [...sent].sort(), broken])
  }

  /** Runs a command until it ends. @param process number of the process, for locks and turns */
  async run(command: Command, faults: Fault | readonly Fault[] = [], process = 0): Promise<Ran> {
    const steps: Kind[] = []
    const calls: string[] = []
    const state = { isDead: false, isSent: false }
    /** Returns the fate of the next step. */
    const fateOf = (kind: Kind, call: string = kind): StepFate | undefined => {
      if (state.isDead) return 'killed before'
      const now = steps.push(kind) - 1
      calls.push(call)
      const fault = [faults]
        .flat()
        .find(({ step }) =>
          typeof step === 'string' ? step === call && calls.indexOf(call) === now : step === now,
        )
      if (fault === undefined) return undefined
      if (!(FATES[kind] as readonly string[]).includes(fault.fate))
        throw new Error(`no ${fault.fate} of ${kind}`)
      if (/^(killed|torn)/.test(fault.fate)) state.isDead = true
      return fault.fate
    }
    const disk = this.disk.asSeenBy(
      process,
      (call) => fateOf(call === 'write' || call === 'read' ? call : 'disk', call.split(' ')[0]) as Fate,
    )
    const files: ProfileFiles = {
      profile: 'default',
      directory: DIRECTORY,
      session: SESSION,
      lock: LOCK,
      disk,
      prepare: async () => {},
    }
    const clock = createFakeClock()
    const io: Io = {
      ...this.#io,
      clock: {
        ...clock,
        sleep: async (ms) => {
          clock.advance(ms)
          await this.turn(process, this.disk.isHeld(LOCK) ? 'waits for the lock' : 'works')
        },
      },
      random: { bytes: () => Buffer.from(String(++this.#ids).padStart(12, '0'), 'hex'), fraction: () => 0 },
      keychain: { call: (request) => this.#keychain(request, fateOf, process) },
      http: {
        close: async () => {},
        send: (request) => this.#send(request, fateOf, state, command === 'retry', process),
      },
    }
    let end = 'ok'
    let error: CliError | undefined
    try {
      if (command === 'renew' || command === 'retry') {
        const options = { always: true, retryInterrupted: command === 'retry' } as const
        await renewLocalSession(io, options, files)
      }
      if (command === 'login') await this.#login(io, files)
      if (command === 'logout') {
        await signOutLocally(io, 'default', files)
        this.wanted = null
      }
    } catch (caught) {
      if (caught instanceof CliError) error = caught
      else if (!(caught instanceof Killed) && !state.isDead) throw caught
      end = error?.code ?? 'killed'
    }
    if (state.isDead) {
      end = 'killed'
      if (command === 'login' || command === 'logout') this.wanted = 'any'
      const power = [faults].flat().find((fault) => fault.power !== undefined)?.power
      if (power !== undefined) this.disk.losePower(power)
    } else if (error !== undefined && (command === 'login' || command === 'logout')) this.wanted = 'any'
    this.disk.release(process)
    if (error?.message.includes('nothing was sent') && state.isSent)
      this.broken.push(`says "nothing was sent", but it was: ${error.message}`)
    if (error?.message.includes('cut off before it sent') && this.sent.has(this.#token ?? ''))
      this.broken.push(`says that ${this.#token} was not sent, but it was`)
    return { end, error: state.isDead ? undefined : error, isSent: state.isSent, steps }
  }

  async #login(io: Io, files: ProfileFiles): Promise<void> {
    const prepared = await prepareLocalSignIn(io, this.#store, 'session', files)
    try {
      prepared.reserve()
      const grant = this.grants.push({ good: 1, isRevoked: false }) - 1
      const { kind, service, client, resource } = this.#session('', '')
      await prepared.complete({ kind, service, client, resource, scope: String(grant), secret: `${grant}.1` })
      this.wanted = grant
    } finally {
      prepared.discard()
    }
  }

  async #keychain(
    request: KeychainRequest,
    fateOf: (kind: Kind) => StepFate | undefined,
    process: number,
  ): Promise<KeychainResult> {
    const { operation, account, secret } = request
    // A login's test item always works.
    if (account.includes('self-test')) return { ok: true, value: operation === 'get' ? 'self-test' : true }
    if (operation !== 'set') await this.turn(process, 'works')
    const fate = fateOf(operation)
    if (fate === 'killed before') throw new Killed(operation)
    if (fate === 'fails') return { ok: false, reason: 'refused', detail: '' }
    if (fate === 'gives nothing') return { ok: true, value: null }
    if (fate === 'lies') return { ok: true, value: true }
    const value = this.item ?? null
    if (operation === 'set') this.item = secret
    if (operation === 'delete') this.item = undefined
    if (fate === 'killed after') throw new Killed(operation)
    if (fate === 'hangs, but is done') return { ok: false, reason: 'timeout', detail: '' }
    return { ok: true, value: operation === 'get' ? value : true }
  }

  async #send(
    request: HttpRequest,
    fateOf: (kind: Kind) => StepFate | undefined,
    state: { isSent: boolean; isDead: boolean },
    isRetry: boolean,
    process: number,
  ) {
    await this.turn(process, 'works')
    const fate = fateOf('send')
    if (fate === 'killed before') throw new Killed('send')
    if (fate === 'unreachable') throw new HttpTransportError('tls', 'no', 'no TLS connection could be made')
    try {
      request.beforeSend?.()
    } catch (error) {
      throw new HttpTransportError('aborted', 'no', 'the request was not sent', error)
    }
    state.isSent = true
    const token = new URLSearchParams(request.body).get('refresh_token') ?? ''
    this.sent.add(token)
    const answer = /unused|refused/.test(fate ?? '') ? undefined : this.#refresh(token, isRetry)
    await this.turn(process, 'works')
    if (fate === 'killed after') throw new Killed('send')
    if (fate === 'refused') return jsonResponse(401, { error: 'invalid_client' })
    if (fate?.startsWith('lost')) throw new HttpTransportError('reset', 'maybe', 'the connection was reset')
    if (fate === 'answered oddly') return jsonResponse(503, { message: 'upstream' })
    return answer === undefined
      ? jsonResponse(400, { error: 'invalid_grant' })
      : jsonResponse(200, {
          access_token: `a${answer}`,
          token_type: 'Bearer',
          expires_in: 900,
          refresh_token: answer,
        })
  }

  #refresh(token: string, isRetry: boolean): string | undefined {
    const [grant = 0, number] = token.split('.').map(Number)
    const found = this.grants[grant]
    if (found === undefined || found.isRevoked) return undefined
    if (number !== found.good) {
      found.isRevoked = true
      if (!isRetry) this.broken.push(`${token} was sent again by a plain renewal`)
      return undefined
    }
    return `${grant}.${++found.good}`
  }

  /** Returns the session in `session.json`; undefined if the file is missing or damaged. */
  get session(): Session | undefined {
    try {
      return decodeSession(this.disk.files.get(SESSION) ?? '')
    } catch {
      return undefined
    }
  }

  /** Returns the refresh token that a renewal would send. */
  get #token(): string | undefined {
    return this.session?.refreshToken ?? this.item?.replace(/^.*:/, '')
  }

  /** Returns every refresh token that is complete in a file or the keychain. */
  get #tokens(): string[] {
    const tokens = [...this.disk.files].flatMap(([path, text]) => {
      try {
        // Skip the reservation of a login that wasn't completed.
        return path.endsWith('.0') ? [] : [decodeSession(text).refreshToken]
      } catch {
        return []
      }
    })
    return [...tokens, this.item?.replace(/^.*:/, '')].filter((token) => token !== undefined)
  }

  /**
   * Returns the violations after all processes have ended. Runs a plain renewal, which must succeed or fail with a true message.
   *
   * @param isCalm whether nothing was killed, cut off or refused for good, so that the renewal must succeed
   */
  async check(isCalm: boolean): Promise<string[]> {
    const { wanted, session } = this
    const isOver = session?.ended !== undefined
    if (wanted === null && session !== undefined) this.broken.push('a finished logout is undone')
    if (typeof wanted === 'number' && session !== undefined && session.scope !== String(wanted))
      this.broken.push(`a finished login is undone (${session.id})`)
    const tokens = this.#tokens
    const good = typeof wanted === 'number' ? `${wanted}.${this.grants[wanted]?.good}` : undefined
    const { end } = await this.run('renew')
    if (end === 'ok') return this.broken
    if (good === undefined || isOver || this.grants[Number(wanted)]?.isRevoked) return this.broken
    if (isCalm) this.broken.push(`nothing was lost, but the next command says ${end}`)
    // "May have been sent" is a true message even if the token on this machine is the current one.
    const isHonest = end === 'refresh_interrupted' || (end === 'store_unavailable' && this.item === undefined)
    if (tokens.includes(good) && !isHonest)
      this.broken.push(`${good} is on this machine, but the next command says ${end}`)
    return this.broken
  }

  deleteLock(): void {
    this.disk.delete(LOCK)
  }

  isLocked(): boolean {
    return this.disk.isHeld(LOCK)
  }
}

/** Returns the fates of a kind of step. */
export function fatesOf(kind: Kind): readonly StepFate[] {
  return FATES[kind]
}
