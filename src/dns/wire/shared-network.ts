import { type Clock, type DnsExchange, type DnsNetwork, DnsTransportError } from '../../context.ts'
import { createTurns } from '../../turns.ts'
import { decodeQuestion } from './message.ts'

/** Sockets at once: fewer than systems with the smallest limit of open files allow (256), beside everything else. */
const MAX_SOCKETS = 160
/** Of these, how many may wait for one server that hasn't answered yet: dead servers must not use up all of them. */
const MAX_UNPROVEN = 24
/** A server is silent about a zone if this many queries about it in a row timed out, each after at least … */
const SILENT_AFTER = 3
/** … this long. */
const MIN_SILENCE_MS = 1000
/** A server is dead if it has left queries about this many zones unanswered, and has answered nothing since. */
const DEAD_AFTER_ZONES = 3
/** How long a silent server isn't queried. */
const SILENT_MS = 120_000
/** How long queries to a dead server wait for the one that tries whether it answers again. */
const TRIAL_MS = 500
/** However long a query has waited for a socket, its server gets this long to answer. */
const MIN_TIMEOUT_MS = 1000

interface ServerState {
  /** By zone: queries that timed out since it last answered one about that zone, and until when no more are sent. */
  readonly silence: Map<string, { timeouts: number; until: number }>
  /** Zones with a query that timed out since it last answered anything. */
  readonly unanswered: Set<string>
  lastAnswer: number
  deadUntil: number
  open: number
  /** The query that tries whether a dead server answers again: until when others wait for it, and its end. */
  trial: { readonly until: number; readonly ended: Promise<void> } | undefined
}

/**
 * A network for the checks of many domains at once: it keeps the number of sockets low, runs at most `checks` checks at
 * the same time, and doesn't wait again and again for a name server that is known to be silent. Silence counts for one zone,
 * because some servers drop queries about zones that they don't serve; a server that is silent about several and answers
 * nothing else is dead, and gets one query at a time, about the other zones, until it answers. Resolvers are never taken for
 * dead: their silence is about the question.
 *
 * @param options.zoneOf the zone that a name is counted for
 */
export function shareNetwork(
  dns: DnsNetwork,
  clock: Pick<Clock, 'monotonic' | 'sleep'>,
  { checks, zoneOf }: { readonly checks: number; readonly zoneOf: (name: string) => string },
): DnsNetwork {
  const sockets = createTurns(MAX_SOCKETS)
  const inTurn = createTurns(checks)
  const servers = new Map<string, ServerState>()
  const leftOut = new Set<string>()

  const shared = (transport: 'udp' | 'tcp') => async (exchange: DnsExchange) => {
    const { server, message, signal, timeoutMs } = exchange
    const key = `${server.address} ${server.port}`
    const state: ServerState = servers.get(key) ?? {
      silence: new Map(),
      unanswered: new Set(),
      lastAnswer: -1,
      deadUntil: 0,
      open: 0,
      trial: undefined,
    }
    servers.set(key, state)
    const called = clock.monotonic()
    const { question, recursionDesired } = decodeQuestion(message)
    const zone = zoneOf(question.name)
    const isDead = () => clock.monotonic() < state.deadUntil
    const isSilent = () => clock.monotonic() < (state.silence.get(zone)?.until ?? 0)
    const leaveOut = () => {
      leftOut.add(zone)
      throw new DnsTransportError('timeout', `${server.address}: no answer to earlier queries`)
    }
    // A dead or silent server doesn't wait for a socket: the check has others to ask.
    if (isSilent()) leaveOut()
    if (isDead() && state.trial !== undefined) {
      const left = state.trial.until - clock.monotonic()
      if (left > 0) await Promise.race([clock.sleep(left, signal).catch(() => {}), state.trial.ended])
      if (isSilent() || (isDead() && state.trial !== undefined)) leaveOut()
    }
    let endTrial: (() => void) | undefined
    if (isDead()) {
      const ended = new Promise<void>((resolve) => {
        endTrial = resolve
      })
      state.trial = { until: clock.monotonic() + TRIAL_MS, ended }
    }
    try {
      if (state.lastAnswer < 0 && state.open >= MAX_UNPROVEN) await waitForOther(state, signal)
      return await sockets(async () => {
        if (isSilent() || (isDead() && endTrial === undefined)) leaveOut()
        if (signal?.aborted) throw new DnsTransportError('aborted', 'canceled')
        const start = clock.monotonic()
        const left = Math.max(timeoutMs - (start - called), Math.min(timeoutMs, MIN_TIMEOUT_MS))
        state.open += 1
        try {
          const answer = await dns[transport]({ ...exchange, timeoutMs: left })
          state.silence.delete(zone)
          state.unanswered.clear()
          Object.assign(state, { deadUntil: 0, lastAnswer: clock.monotonic() })
          return answer
        } catch (error) {
          const isTimeout = error instanceof DnsTransportError && error.kind === 'timeout'
          if (isTimeout && !recursionDesired) countSilence(state, zone, start)
          throw error
        } finally {
          state.open -= 1
          wake(state)
        }
      })
    } finally {
      if (endTrial !== undefined) state.trial = undefined
      endTrial?.()
    }
  }

  function countSilence(state: ServerState, zone: string, start: number): void {
    const now = clock.monotonic()
    if (now - start < MIN_SILENCE_MS) return
    const { timeouts } = state.silence.get(zone) ?? { timeouts: 0 }
    const isSilent = timeouts + 1 >= SILENT_AFTER
    state.silence.set(zone, { timeouts: timeouts + 1, until: isSilent ? now + SILENT_MS : 0 })
    // What was sent before the last answer says nothing about the time since.
    if (now - Math.max(start, state.lastAnswer) >= MIN_SILENCE_MS) state.unanswered.add(zone)
    if (state.unanswered.size >= DEAD_AFTER_ZONES) state.deadUntil = now + SILENT_MS
  }

  const waiting = new Map<ServerState, (() => void)[]>()
  function waitForOther(state: ServerState, signal: AbortSignal | undefined): Promise<void> {
    return new Promise((resolve) => {
      const queue = waiting.get(state) ?? []
      waiting.set(state, queue)
      queue.push(resolve)
      signal?.addEventListener('abort', () => resolve(), { once: true })
    })
  }
  function wake(state: ServerState): void {
    const queue = waiting.get(state)
    if (queue === undefined) return
    // Once it answers, or is dead, nobody has to wait any longer.
    const count = state.deadUntil > 0 || state.lastAnswer >= 0 || isSomeSilent(state) ? queue.length : 1
    for (const resolve of queue.splice(0, count)) resolve()
    if (queue.length === 0) waiting.delete(state)
  }
  const isSomeSilent = ({ silence }: ServerState) => [...silence.values()].some(({ until }) => until > 0)

  return {
    udp: shared('udp'),
    tcp: shared('tcp'),
    systemResolvers: () => dns.systemResolvers(),
    inTurn,
    wasLeftOut: (name) => leftOut.delete(zoneOf(name)),
  }
}
