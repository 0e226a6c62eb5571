import { type Clock, type DnsExchange, type DnsNetwork, DnsTransportError } from '../../context.ts'
import { createTurns } from '../../turns.ts'

/** Sockets at once: fewer than systems with the smallest limit of open files allow (256), beside everything else. */
const MAX_SOCKETS = 160
/** Of these, how many may wait for one server that hasn't answered yet: dead servers must not use up all of them. */
const MAX_UNPROVEN = 24
/** A server is dead if this many of its queries in a row timed out, each after at least … */
const DEAD_AFTER = 3
/** … this long. */
const MIN_SILENCE_MS = 1000
/** How long a dead server isn't queried. */
const DEAD_MS = 120_000
/** However long a query has waited for a socket, its server gets this long to answer. */
const MIN_TIMEOUT_MS = 1000

interface ServerState {
  /** Queries that timed out since its last answer. */
  timeouts: number
  lastAnswer: number
  deadUntil: number
  open: number
}

/**
 * A network for the checks of many domains at once: it keeps the number of sockets low, runs at most `checks` checks at
 * the same time, and doesn't wait again and again for a name server that is known to be dead. Resolvers are never taken for
 * dead: their silence is about the question.
 */
export function shareNetwork(
  dns: DnsNetwork,
  clock: Pick<Clock, 'monotonic'>,
  { checks }: { readonly checks: number },
): DnsNetwork {
  const sockets = createTurns(MAX_SOCKETS)
  const inTurn = createTurns(checks)
  const servers = new Map<string, ServerState>()

  const shared = (transport: 'udp' | 'tcp') => async (exchange: DnsExchange) => {
    const { server, message, signal, timeoutMs } = exchange
    const key = `${server.address} ${server.port}`
    const state = servers.get(key) ?? { timeouts: 0, lastAnswer: -1, deadUntil: 0, open: 0 }
    servers.set(key, state)
    const called = clock.monotonic()
    // A dead or silent server doesn't wait for a socket: the check has others to ask.
    const isSilent = () => clock.monotonic() < state.deadUntil
    const timeout = () => new DnsTransportError('timeout', `${server.address}: no answer to earlier queries`)
    if (isSilent()) throw timeout()
    const isUnproven = state.lastAnswer < 0 || state.timeouts > 0
    if (isUnproven && state.open >= MAX_UNPROVEN) await waitForOther(state, signal)
    return await sockets(async () => {
      if (isSilent()) throw timeout()
      if (signal?.aborted) throw new DnsTransportError('aborted', 'canceled')
      const start = clock.monotonic()
      const left = Math.max(timeoutMs - (start - called), Math.min(timeoutMs, MIN_TIMEOUT_MS))
      state.open += 1
      try {
        const answer = await dns[transport]({ ...exchange, timeoutMs: left })
        Object.assign(state, { timeouts: 0, deadUntil: 0, lastAnswer: clock.monotonic() })
        return answer
      } catch (error) {
        const isTimeout = error instanceof DnsTransportError && error.kind === 'timeout'
        const silentMs = clock.monotonic() - Math.max(start, state.lastAnswer)
        if (isTimeout && !desiresRecursion(message) && silentMs >= MIN_SILENCE_MS) {
          state.timeouts += 1
          if (state.timeouts >= DEAD_AFTER) state.deadUntil = clock.monotonic() + DEAD_MS
        }
        throw error
      } finally {
        state.open -= 1
        wake(state)
      }
    })
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
    // Once it answers, or is dead, nobody has to wait any longer.
    const count = state.deadUntil > 0 || state.timeouts === 0 ? queue?.length : 1
    for (const resolve of queue?.splice(0, count ?? 0) ?? []) resolve()
    if (queue?.length === 0) waiting.delete(state)
  }

  return {
    udp: shared('udp'),
    tcp: shared('tcp'),
    systemResolvers: () => dns.systemResolvers(),
    inTurn,
  }
}

/** The RD bit (RFC 1035 section 4.1.1). */
function desiresRecursion(message: Uint8Array): boolean {
  return ((message[2] ?? 0) & 1) === 1
}
