import { setMaxListeners } from 'node:events'
import type { Interrupts } from './context.ts'
import { type ExitCode, InterruptedError } from './errors.ts'

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const
/** How long the current work may take to clean up after a signal, in milliseconds. */
const GRACE_MS = 1500

/**
 * Turns SIGINT, SIGTERM and SIGHUP into an abort. Shielded work is never interrupted: the signal waits for its end.
 * Otherwise a second signal ends the process immediately, as a person who presses Ctrl-C twice expects.
 */
export function watchSignals(
  source: Pick<NodeJS.Process, 'on' | 'off' | 'kill' | 'pid'>,
  hasTerminal: boolean,
) {
  const controller = new AbortController()
  // Any number of requests and writes follow it.
  setMaxListeners(0, controller.signal)
  let shields = 0
  const onShielded = new Set<(signal: NodeJS.Signals) => void>()
  let pendingSignal: NodeJS.Signals | undefined
  let graceTimer: NodeJS.Timeout | undefined
  let giveUp: (code: ExitCode) => void
  const abandoned = new Promise<ExitCode>((resolve) => {
    giveUp = resolve
  })

  const abort = (signal: NodeJS.Signals) => {
    const reason = new InterruptedError(signal === 'SIGINT' ? 'SIGINT' : 'SIGTERM')
    controller.abort(reason)
    graceTimer ??= setTimeout(() => giveUp(reason.exit), GRACE_MS).unref()
  }
  const handleSignal = (signal: NodeJS.Signals) => {
    // Node undoes what nohup has set: without a terminal there is none that hangs up.
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
    /** Settles with the signal's exit code if the current work doesn't end in time. */
    abandoned,
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
