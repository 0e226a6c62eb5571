import type { Dispatcher } from 'undici'
import decompress from 'undici/lib/interceptor/decompress.js'
import { TransportError } from '../context.ts'

/** How much may wait to be read before the connection is paused. */
const MAX_UNREAD_BYTES = 64 * 1024

/** What can be decompressed. */
const CODINGS = ['gzip', 'x-gzip', 'deflate', 'br', 'zstd']

const OPENING_BRACE = 0x7b

let decompression: Dispatcher.DispatcherComposeInterceptor | undefined

/**
 * The body of a response, decompressed chunk by chunk as it is read: a reader with a limit never has more than that in
 * memory, and one that stops early closes the connection. If the body is cut short, what has arrived can be read before the
 * failure is thrown.
 *
 * @param connection where the body comes from
 * @param encoding the `Content-Encoding` header: see `codingsOf`
 * @param failure why the exchange ended early, if it did; called at the end of the body
 * @returns the handler to pass the response to, once its head has arrived, and the body
 */
export function responseBody(
  connection: Dispatcher.DispatchController,
  encoding: string,
  failure: () => TransportError | undefined,
): {
  handler: Dispatcher.DispatchHandler
  body: AsyncIterable<Uint8Array>
} {
  let source = connection
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
    onResponseData: (controller, chunk) => {
      chunks.push(chunk)
      unreadBytes += chunk.length
      if (unreadBytes >= MAX_UNREAD_BYTES) controller.pause()
      wake()
    },
    onResponseEnd: () => end(),
    onResponseError: (_controller, error) => end(decodingError(error)),
  }
  let decoder: Dispatcher.DispatchHandler | undefined
  const handler: Dispatcher.DispatchHandler = {
    onResponseData: (_controller, chunk) => {
      decoder ??= createDecoder(connection, codingsOf(encoding, chunk), reader)
      decoder.onResponseData?.(connection, chunk)
    },
    onResponseEnd: () => (decoder ?? reader).onResponseEnd?.(connection, {}),
    onResponseError: (_controller, error) => (decoder ?? reader).onResponseError?.(connection, error),
  }
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
        if (unreadBytes < MAX_UNREAD_BYTES) source.resume()
        return { done: false, value }
      }
      const error = failure() ?? broken
      if (error !== undefined) throw error
      return { done: true, value }
    },
    async return() {
      if (!ended) source.abort(new TransportError('aborted', 'maybe', 'the response was not read to its end'))
      return { done: true, value: undefined }
    },
  }
  return { handler, body }
}

/**
 * The codings to undo (RFC 9110 section 8.4). Servers and proxies also name what is no compression (`utf-8`, `none`,
 * `aws-chunked`), and keep the header of a body that they have decompressed. The body may hold the only copy of a
 * refresh token, so the header alone doesn't make it unreadable: JSON is read as it is, as no compressed body begins with
 * a brace.
 */
function codingsOf(encoding: string, start: Uint8Array): string {
  if (start[0] === OPENING_BRACE) return ''
  const names = encoding.toLowerCase().split(',')
  return names.filter((name) => CODINGS.includes(name.trim())).join(',')
}

/** Passes a body on, decompressed. */
function createDecoder(
  connection: Dispatcher.DispatchController,
  codings: string,
  reader: Dispatcher.DispatchHandler,
): Dispatcher.DispatchHandler {
  if (codings === '') return reader
  let decoder = reader
  decompression ??= withoutWarnings(() => decompress({ skipErrorResponses: false }))
  decompression((_options, handler) => {
    decoder = handler
    return true
  })({ path: '/', method: 'GET' }, reader)
  decoder.onRequestStart?.(connection, null)
  decoder.onResponseStart?.(connection, 200, { 'content-encoding': codings })
  return decoder
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
