import { setMaxListeners } from 'node:events'
import type { Interrupts } from './context.ts'
import { type ExitCode, InterruptedError } from './errors.ts'

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const
/** Milliseconds that a command may take to clean up after the abort by a signal, before the program exits anyway. */
const ABORT_GRACE_MS = 1500

/**
 * Converts SIGINT, SIGTERM and SIGHUP into an abort of `interrupts.signal`, delayed during shielded work. A signal after the abort,
 * outside of shielded work, kills the process at once, as users expect of a second Ctrl-C.
 *
 * @param hasTerminal whether the process has a terminal; without one, SIGHUP is ignored
 */
export function abortOnSignals(
  source: Pick<NodeJS.Process, 'on' | 'off' | 'kill' | 'pid'>,
  hasTerminal: boolean,
) {
  const controller = new AbortController()
  // Disable Node's warning about more than 10 listeners: requests and writes in progress add one each.
  setMaxListeners(0, controller.signal)
  let shields = 0
  const onShielded = new Set<(signal: NodeJS.Signals) => void>()
  let pendingSignal: NodeJS.Signals | undefined
  let graceTimer: NodeJS.Timeout | undefined
  let forceExit: (code: ExitCode) => void
  const forcedExit = new Promise<ExitCode>((resolve) => {
    forceExit = resolve
  })

  const abort = (signal: NodeJS.Signals) => {
    const reason = new InterruptedError(signal === 'SIGINT' ? 'SIGINT' : 'SIGTERM')
    controller.abort(reason)
    graceTimer ??= setTimeout(() => forceExit(reason.exit), ABORT_GRACE_MS).unref()
  }
  const handleSignal = (signal: NodeJS.Signals) => {
    // nohup makes a process ignore SIGHUP, but Node's listener undoes this. So ignore SIGHUP without a terminal that can hang up.
    if (signal === 'SIGHUP' && !hasTerminal) return
    if (shields > 0) {
      if (pendingSignal === undefined) for (const notify of onShielded) notify(signal)
      pendingSignal = signal
      return
    }
    if (controller.signal.aborted) {
      stop()
      source.kill(source.pid, signal)
      return
    }
    abort(signal)
  }
  const stop = () => {
    for (const signal of SIGNALS) source.off(signal, handleSignal)
    clearTimeout(graceTimer)
  }
  for (const signal of SIGNALS) source.on(signal, handleSignal)

  return {
    /** Resolves `ABORT_GRACE_MS` after the abort, with exit code 130 for SIGINT, else 143, unless `stop` is called first. */
    forcedExit,
    stop,
    interrupts: {
      signal: controller.signal,
      async shield(work, onSignal) {
        shields++
        if (onSignal !== undefined) onShielded.add(onSignal)
        try {
          return await work()
        } finally {
          shields--
          if (onSignal !== undefined) onShielded.delete(onSignal)
          if (shields === 0 && pendingSignal !== undefined) {
            const signal = pendingSignal
            pendingSignal = undefined
            if (!controller.signal.aborted) abort(signal)
          }
        }
      },
    } satisfies Interrupts,
  }
}
