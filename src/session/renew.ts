import type { CliError } from '../errors.ts'
import { type AccessToken, type RefreshOutcome, refresh } from '../oauth/token-endpoint.ts'
import { backoff } from '../service/retry.ts'
import { parseBaseUrl } from '../settings/addresses.ts'
import type { Io } from '../terminal/io.ts'
import { keepsChanging, noAccessToken, replacedMeanwhile, sessionOver } from './messages.ts'
import { isFresh, requireSameService, type Session } from './session-file.ts'

export interface RenewOptions {
  /** Renew whatever there is. Otherwise an access token that another process got meanwhile will do. */
  readonly always?: boolean
  /** The access token that won't do: it expires, or the service answered it with 401. */
  readonly outdated?: string | undefined
  /** Narrows the new access token, which isn't kept then. */
  readonly scope?: string | undefined
  /** A person wants a token sent whose last use has no known outcome. */
  readonly retryInterrupted?: boolean
}

/** One renewal, which may take several passes. */
export interface Renewal {
  /** Ctrl-C aborts its signal, until `commit`. */
  readonly io: Io
  readonly options: RenewOptions
  /** Called before the note is made. From here to the end of the pass, Ctrl-C waits. @throws the signal's reason if it came before. */
  commit(): void
}

/** What one pass of the steps came to. */
type Pass =
  | { readonly kind: 'done'; readonly token: AccessToken }
  /** The session has changed: everything has to be read again. */
  | { readonly kind: 'changed' }
  /** The token is unused, and waiting is enough. */
  | { readonly kind: 'later'; readonly error: CliError }

/**
 * Where the session of a profile is kept. The steps are the same in this machine's files and in etcd but for the note: a file can be
 * created in the moment between the connection and the first byte, which can't wait for anything (step 4); a swap in etcd has to be
 * waited for, so it comes before the connection, and what is left for that moment is to see that the note isn't too old.
 */
export interface SessionStore {
  /** Runs the work while no other process of this machine is at the session. */
  hold(work: () => Promise<AccessToken>): Promise<AccessToken>
  /** Steps 2 and 3; in etcd the note too. @throws CliError if there is no token that may be sent. */
  read(): Promise<Exclude<Pass, { kind: 'later' }> | SendableToken>
}

/** A refresh token that nobody else sends. */
export interface SendableToken {
  readonly kind: 'sendable'
  readonly session: Session
  readonly value: string
  /** Its generation: a keychain may be ahead of the session. */
  readonly generation: number
  /** With the time limit for the answer. */
  readonly settings: Io['settings']
  /** Whether it was sent before, with no known outcome: a refusal says nothing of that. */
  readonly isRetry: boolean
  /**
   * The end of step 4: the connection stands, and no byte has left. Makes the note if it isn't there yet, and takes space for the
   * answer from the disk.
   *
   * @returns false if the session has changed meanwhile.
   * @throws CliError if the token can't be sent.
   */
  beforeSend(): boolean
  /** Leaves the note for everybody to see: nobody knows what became of the token. */
  leave(): Promise<void>
  /** Removes the note of a token that is unused. @param refusal why; absent if nothing was sent. */
  clear(refusal: CliError | undefined): Promise<void>
  /**
   * Stores the next value, which removes the note.
   *
   * @param refreshToken absent if the session is over.
   * @returns `changed` if a later value is there, `elsewhere` if it is that of another sign-in, or of none.
   */
  store(next: Session, refreshToken: string | undefined): Promise<'stored' | 'changed' | 'elsewhere'>
  /** The error of a token that may have been sent. */
  interrupted(why: string): CliError
  /** Never throws. */
  close(): void
}

/** How long a refusal that passes, such as a 429, is waited for, in milliseconds. */
export const RETRY_LIMIT_MS = 30_000
/** How often a service that can't be reached at all is tried. */
const UNREACHABLE_TRIES = 3
/** How often a session that keeps changing is read. */
const READS = 10

/**
 * Renews the access token of the profile, in the steps of docs/token-safety.md and docs/fleet.md. Step 1, an access token that is
 * good, is the caller's.
 *
 * @returns the new access token, or the one that another process got meanwhile.
 * @throws CliError of custody; that of the service if it refused in another way (section 7.1 of the interface), exit 6 or 7;
 *   `store_unavailable`, exit 7, if etcd doesn't answer.
 */
export async function renewIn(
  open: (renewal: Renewal) => SessionStore,
  io: Io,
  options: RenewOptions,
): Promise<AccessToken> {
  const { interrupts } = io
  const stop = new AbortController()
  let isPressed = false
  let isCommitted = false
  const onSignal = () => {
    isPressed = true
    if (isCommitted) void io.note('Stopping as soon as the service has answered …')
    else stop.abort()
  }
  const renewal: Renewal = {
    io: { ...io, interrupts: { ...interrupts, signal: stop.signal } },
    options,
    commit() {
      stop.signal.throwIfAborted()
      isCommitted = true
    },
  }
  const store = open(renewal)
  const work = async () => {
    const end = io.clock.monotonic() + RETRY_LIMIT_MS
    let reads = 1
    for (let tries = 1; ; ) {
      const found = await store.read()
      const result = found.kind === 'sendable' ? await send(found, renewal) : found
      if (result.kind === 'done') return result.token
      isCommitted = false
      if (isPressed) stop.abort()
      stop.signal.throwIfAborted()
      if (result.kind === 'changed') {
        if (++reads > READS) throw keepsChanging(io.settings.profile.value)
        continue
      }
      const wait = Math.max(result.error.retryAfterMs ?? 0, backoff(tries, io.random))
      const isUnreachable = result.error.code === 'service_unreachable' && tries >= UNREACHABLE_TRIES
      if (isUnreachable || io.clock.monotonic() + wait >= end) throw result.error
      tries++
      await io.clock.sleep(wait, stop.signal)
    }
  }
  interrupts.signal.throwIfAborted()
  try {
    return await interrupts.shield(() => store.hold(work), onSignal)
  } catch (error) {
    if (!isCommitted) interrupts.signal.throwIfAborted()
    throw error
  }
}

/** The access token that another process has stored meanwhile, if there is one. */
export function adoptable(
  session: Session | undefined,
  io: Io,
  { always, outdated, scope }: RenewOptions,
): AccessToken | undefined {
  if (always || scope !== undefined || session?.ended !== undefined) return undefined
  const access = session?.access
  if (session === undefined || access?.value === outdated || !isFresh(access, io.clock.now()))
    return undefined
  // While the lock was waited for, a sign-in at another service may have taken the session's place.
  requireSameService(session, io)
  return access
}

/** Steps 4 to 6, of one token. */
async function send(token: SendableToken, renewal: Renewal): Promise<Pass> {
  const { io, options } = renewal
  const { session, settings, value: refreshToken } = token
  let isSent = false
  let hasChanged = false
  try {
    // Step 5. It doesn't throw, whatever the network or the service does.
    const request = refresh(
      { ...io, settings },
      {
        base: parseBaseUrl(session.service ?? '', 'the service of the session'),
        clientId: session.client ?? '',
        refreshToken,
        scope: options.scope,
        grantedScope: session.scope ?? undefined,
        beforeSend() {
          renewal.commit()
          hasChanged = !token.beforeSend()
          if (hasChanged) throw new Error('the session has changed')
          isSent = true
        },
      },
    )
    const outcome = await io.waiting('Waiting for the service to renew the session …', request)
    return hasChanged ? { kind: 'changed' } : await settle(token, renewal, outcome, isSent)
  } finally {
    token.close()
  }
}

/** Step 6. */
async function settle(
  token: SendableToken,
  { io, options }: Renewal,
  outcome: RefreshOutcome,
  isSent: boolean,
): Promise<Pass> {
  switch (outcome.kind) {
    case 'unknown':
      await token.leave()
      throw token.interrupted(outcome.why)
    case 'unused':
      await token.clear(isSent ? outcome.error : undefined)
      if (isSent && token.isRetry) throw token.interrupted(outcome.error.message)
      if (!outcome.passes) throw outcome.error
      return { kind: 'later', error: outcome.error }
  }
  const now = io.clock.now()
  const { refreshToken: _usedUp, access: _former, ...rest } = token.session
  const base = { ...rest, generation: token.generation + 1 }
  const isOver = outcome.kind === 'over'
  const access = isOver ? undefined : outcome.access
  // A narrowed access token is only for the one who asked for it.
  const isKept = access !== undefined && options.scope === undefined
  const next: Session = isOver
    ? { ...base, ended: { at: now, why: outcome.description ?? null } }
    : { ...base, issuedAt: now, ...(isKept && { access }) }
  const end = await token.store(next, isOver ? undefined : outcome.refreshToken)
  if (end === 'elsewhere') throw replacedMeanwhile(next.profile)
  if (end === 'changed') return { kind: 'changed' }
  if (isOver) throw sessionOver(next)
  if (access === undefined) throw noAccessToken(next.profile, outcome.why ?? 'it is missing')
  return { kind: 'done', token: access }
}
