import { setMaxListeners } from 'node:events'

/** Work that can be aborted by itself, and is aborted with the work it is a part of. */
export interface LinkedAbort {
  readonly signal: AbortSignal
  /** Aborts what still runs and lets go of the outer signal. To be called in every case, at the end. */
  end(): void
}

/** A signal that follows another one. Questions are asked by the dozen, so many listeners on it are not a leak. */
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
      controller.abort()
    },
  }
}
