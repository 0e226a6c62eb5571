import { Readable } from 'node:stream'
import type { Dispatcher } from 'undici'
import decompress from 'undici/lib/interceptor/decompress.js'
import { TransportError } from '../context.ts'

/** More than this is not read from the connection until it is asked for. */
const BUFFERED_BYTES = 64 * 1024

let decompression: Dispatcher.DispatcherComposeInterceptor | undefined

/**
 * The body of an answer, decompressed piece by piece as it is read: a reader that stops at its own limit has not had a
 * small body blown up in memory, and one that stops early closes the connection. What has arrived can be read even where
 * the rest is missing; the failure is thrown behind it.
 *
 * @param failure why the exchange ended early, if it did; asked at the end of the body
 * @returns what is to be told of the answer, from `onRequestStart` on, and what can be read
 */
export function responseBody(failure: () => TransportError | undefined): {
  handler: Dispatcher.DispatchHandler
  body: AsyncIterable<Uint8Array>
} {
  let source: Dispatcher.DispatchController | undefined
  let broken: TransportError | undefined
  let ended = false
  const stream = new Readable({
    highWaterMark: BUFFERED_BYTES,
    read: () => source?.resume(),
    destroy(_error, done) {
      if (!ended) source?.abort(new TransportError('aborted', 'maybe', 'the answer was not read to its end'))
      done(null)
    },
  })
  const end = (error?: TransportError) => {
    broken = error
    ended = true
    stream.push(null)
  }
  const reader: Dispatcher.DispatchHandler = {
    onRequestStart: (controller) => {
      source = controller
    },
    onResponseStart: (controller, _status, { 'content-encoding': encoding = 'identity' }) => {
      const what = `the answer is encoded in a way that was not asked for: ${encoding}`
      if (encoding !== 'identity') controller.abort(new TransportError('protocol', 'maybe', what))
    },
    onResponseData: (controller, chunk) => {
      if (!stream.push(chunk)) controller.pause()
    },
    onResponseEnd: () => end(),
    onResponseError: (_controller, error) => end(undecodable(error)),
  }
  let handler = reader
  decompression ??= quietly(() => decompress({ skipErrorResponses: false }))
  decompression((_options, decompressing) => {
    handler = decompressing
    return true
  })({ path: '/', method: 'GET' }, reader)
  return { handler, body: read() }

  async function* read(): AsyncGenerator<Uint8Array> {
    yield* stream
    const error = failure() ?? broken
    if (error !== undefined) throw error
  }
}

/** @param cause what the decompression said, or a failure that explains itself. */
export function undecodable(cause: Error): TransportError {
  if (cause instanceof TransportError) return cause
  return new TransportError('protocol', 'maybe', 'the answer could not be decompressed', cause)
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
