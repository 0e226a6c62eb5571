import type { Dispatcher } from 'undici'
import { TransportError } from '../context.ts'

/** More than this is not read from the connection until it is asked for. */
const BUFFERED_BYTES = 64 * 1024

/**
 * The body of an answer as it arrives. What has arrived can be read even where the rest is missing: the failure is thrown
 * behind it. A reader that stops early closes the connection.
 */
export class ResponseBody implements Dispatcher.DispatchHandler, AsyncIterable<Uint8Array> {
  readonly #failure: () => TransportError | undefined
  readonly #chunks: Uint8Array[] = []
  #buffered = 0
  #controller: Dispatcher.DispatchController | undefined
  #ended = false
  #undecodable: TransportError | undefined
  #wake = () => {}

  /** @param failure why the exchange ended early, if it did; asked at the end of the body. */
  constructor(failure: () => TransportError | undefined) {
    this.#failure = failure
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller
  }

  onResponseStart(
    controller: Dispatcher.DispatchController,
    _status: number,
    headers: Record<string, unknown>,
  ): void {
    const encoding = headers['content-encoding'] ?? 'identity'
    if (encoding !== 'identity')
      controller.abort(
        new TransportError(
          'protocol',
          'maybe',
          `the answer is encoded in a way that was not asked for: ${encoding}`,
        ),
      )
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Uint8Array): void {
    this.#chunks.push(chunk)
    this.#buffered += chunk.length
    if (this.#buffered >= BUFFERED_BYTES) controller.pause()
    this.#wake()
  }

  onResponseEnd(): void {
    this.#ended = true
    this.#wake()
  }

  onResponseError(_controller: unknown, error: Error): void {
    this.#undecodable = undecodable(error)
    this.onResponseEnd()
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array> {
    try {
      while (true) {
        const chunk = this.#chunks.shift()
        if (chunk !== undefined) {
          this.#buffered -= chunk.length
          yield chunk
        } else if (this.#ended) {
          const failure = this.#failure() ?? this.#undecodable
          if (failure !== undefined) throw failure
          return
        } else {
          const arrived = new Promise<void>((resolve) => {
            this.#wake = resolve
          })
          this.#controller?.resume()
          await arrived
        }
      }
    } finally {
      if (!this.#ended)
        this.#controller?.abort(new TransportError('aborted', 'maybe', 'the answer was not read to its end'))
    }
  }
}

/** @param cause what the decompression said, or a failure that explains itself. */
export function undecodable(cause: Error): TransportError {
  if (cause instanceof TransportError) return cause
  return new TransportError('protocol', 'maybe', 'the answer could not be decompressed', cause)
}
