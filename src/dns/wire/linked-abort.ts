import { setMaxListeners } from 'node:events'

/** Work that can be aborted by itself, and is aborted with the work it is part of. */
export interface LinkedAbort {
  readonly signal: AbortSignal
  /** Aborts what is still running and stops listening to the outer signal. Always call it at the end. */
  end(): void
}

/** What an ended signal rejects with, made once: each has a stack trace, and a check ends twenty signals. */
const ENDED = new DOMException('the work has ended', 'AbortError')

/** A signal that follows another one. Dozens of queries listen to it, so Node's warning about a leak is turned off. */
export function linkedAbort(outer: AbortSignal): LinkedAbort {
  const controller = new AbortController()
  setMaxListeners(0, controller.signal)
  const onAbort = () => controller.abort(outer.reason)
  if (outer.aborted) onAbort()
  outer.addEventListener('abort', onAbort, { once: true })
  return {
    signal: controller.signal,
    end: () => {
      outer.removeEventListener('abort', onAbort)
      controller.abort(ENDED)
    },
  }
}
