import type { Dispatcher } from 'undici'
import decompress from 'undici/lib/interceptor/decompress.js'
import { TransportError } from '../context.ts'

/** How much may wait to be read before the connection is paused. */
const MAX_UNREAD_BYTES = 64 * 1024

let decompression: Dispatcher.DispatcherComposeInterceptor | undefined

/**
 * The body of a response, decompressed chunk by chunk as it is read: a reader with a limit never has more than that in
 * memory, and one that stops early closes the connection. If the body is cut short, what has arrived can be read before the
 * failure is thrown.
 *
 * @param failure why the exchange ended early, if it did; called at the end of the body
 * @returns the handler to pass the response to, from `onRequestStart` on, and the body
 */
export function responseBody(failure: () => TransportError | undefined): {
  handler: Dispatcher.DispatchHandler
  body: AsyncIterable<Uint8Array>
} {
  let source: Dispatcher.DispatchController | undefined
  let broken: TransportError | undefined
  let ended = false
  const chunks: Uint8Array[] = []
  let unreadBytes = 0
  let wake = () => {}
  const end = (error?: TransportError) => {
    broken = error
    ended = true
    wake()
  }
  const reader: Dispatcher.DispatchHandler = {
    onRequestStart: (controller) => {
      source = controller
    },
    onResponseStart: (controller, _status, { 'content-encoding': encoding = 'identity' }) => {
      if (encoding === 'identity') return
      const message = `unexpected content encoding: ${encoding}`
      controller.abort(new TransportError('protocol', 'maybe', message))
    },
    onResponseData: (controller, chunk) => {
      chunks.push(chunk)
      unreadBytes += chunk.length
      if (unreadBytes >= MAX_UNREAD_BYTES) controller.pause()
      wake()
    },
    onResponseEnd: () => end(),
    onResponseError: (_controller, error) => end(decodingError(error)),
  }
  let handler = reader
  decompression ??= withoutWarnings(() => decompress({ skipErrorResponses: false }))
  decompression((_options, decompressing) => {
    handler = decompressing
    return true
  })({ path: '/', method: 'GET' }, reader)
  // Not a generator: V8 keeps what one held alive until its next full collection, some 8 kB for every response.
  const body: AsyncIterableIterator<Uint8Array, undefined> = {
    [Symbol.asyncIterator]: () => body,
    async next() {
      while (chunks.length === 0 && !ended) {
        await new Promise<void>((resolve) => {
          wake = resolve
        })
      }
      const value = chunks.shift()
      if (value !== undefined) {
        unreadBytes -= value.length
        if (unreadBytes < MAX_UNREAD_BYTES) source?.resume()
        return { done: false, value }
      }
      const error = failure() ?? broken
      if (error !== undefined) throw error
      return { done: true, value }
    },
    async return() {
      if (!ended)
        source?.abort(new TransportError('aborted', 'maybe', 'the response was not read to its end'))
      return { done: true, value: undefined }
    },
  }
  return { handler, body }
}

/** @param cause an error of the decompression, or one that is a `TransportError` already */
export function decodingError(cause: Error): TransportError {
  if (cause instanceof TransportError) return cause
  return new TransportError('protocol', 'maybe', "couldn't decompress the response", cause)
}

/** At first use undici warns that the interceptor is experimental, which would only confuse the person at the terminal. */
function withoutWarnings<T>(create: () => T): T {
  const { emitWarning } = process
  process.emitWarning = () => {}
  try {
    return create()
  } finally {
    process.emitWarning = emitWarning
  }
}
