/**
 * Works on items as they come, at most `limit` at once, until all are done. It stops taking items when the signal aborts or
 * `work` throws, waits for what has begun, and throws that.
 */
export async function runPool<T>(
  items: AsyncIterator<T, void>,
  limit: number,
  work: (item: T) => Promise<void>,
  signal: AbortSignal,
): Promise<void> {
  let failure: { readonly error: unknown } | undefined
  let running = 0
  let wake = () => {}
  const isStopped = () => failure !== undefined || signal.aborted
  const change = () => new Promise<'change'>((resolve) => (wake = () => resolve('change')))
  const onAbort = () => wake()
  signal.addEventListener('abort', onAbort)
  try {
    while (!isStopped()) {
      // Reading may take as long as somebody types.
      const reading = items.next()
      reading.catch(() => {})
      let next: IteratorResult<T, void> | 'change' = 'change'
      while (next === 'change' && !isStopped()) next = await Promise.race([reading, change()])
      if (next === 'change' || next.done) break
      running += 1
      void work(next.value)
        .catch((error: unknown) => {
          failure ??= { error }
        })
        .finally(() => {
          running -= 1
          wake()
        })
      while (running >= limit && !isStopped()) await change()
    }
    while (running > 0) await change()
  } finally {
    signal.removeEventListener('abort', onAbort)
  }
  if (failure !== undefined) throw failure.error
  signal.throwIfAborted()
}
