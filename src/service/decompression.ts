import type { Dispatcher } from 'undici'
import createInterceptor from 'undici/lib/interceptor/decompress.js'

let interceptor: Dispatcher.DispatcherComposeInterceptor | undefined

/**
 * Undoes the content coding of an answer (RFC 9110 section 8.4.1): gzip, deflate and br, one or several. It decompresses
 * piece by piece as it is read, so that a reader that stops at its own limit has not had a small body blown up in memory.
 *
 * @returns what takes the answer as it arrives and hands it on to `next`; a coding that it does not know, it leaves.
 */
export function decompressing(next: Dispatcher.DispatchHandler): Dispatcher.DispatchHandler {
  interceptor ??= quietly(() => createInterceptor({ skipErrorResponses: false }))
  let handler = next
  const dispatch = interceptor((_options, created) => {
    handler = created
    return true
  })
  dispatch({ path: '/', method: 'GET' }, next)
  return handler
}

/** undici warns at the first use that the interceptor is experimental: nothing for the person at the terminal. */
function quietly<T>(create: () => T): T {
  const { emitWarning } = process
  process.emitWarning = () => {}
  try {
    return create()
  } finally {
    process.emitWarning = emitWarning
  }
}
