import { setMaxListeners } from 'node:events'

/** Work that can be withdrawn by itself and ends with the work it is a part of. */
export interface Withdrawal {
  readonly signal: AbortSignal
  /** Withdraws what still runs and lets go of the outer signal. To be called in every case, at the end. */
  end(): void
}

/** A signal below another one. Questions are asked by the dozen, so many listeners on it are no leak. */
export function below(outer: AbortSignal): Withdrawal {
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
