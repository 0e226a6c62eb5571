import type { Transform } from 'node:stream'
import { TransportError } from '../context.ts'

/** A body may be packed once or twice; more than that is no honest answer. */
const MOST_LAYERS = 2

/**
 * The body without its content coding (RFC 9110 section 8.4.1). Unpacks piece by piece as it is read: a reader that
 * stops at its own limit has not had a small body blown up in memory.
 */
export function decoded(
  body: AsyncIterable<Uint8Array>,
  encodings: string | undefined,
): AsyncIterable<Uint8Array> {
  const layers = (encodings ?? '')
    .toLowerCase()
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '' && name !== 'identity')
  return layers.length === 0 ? body : unpacked(body, layers)
}

async function* unpacked(
  body: AsyncIterable<Uint8Array>,
  layers: readonly string[],
): AsyncGenerator<Uint8Array> {
  const [{ Readable, pipeline }, zlib] = await Promise.all([import('node:stream'), import('node:zlib')])
  const streams: Transform[] = []
  for (const name of layers.toReversed()) {
    if (name === 'gzip' || name === 'x-gzip') streams.push(zlib.createGunzip())
    else if (name === 'deflate') streams.push(zlib.createInflate())
    else if (name === 'br') streams.push(zlib.createBrotliDecompress())
    else
      throw new TransportError(
        'protocol',
        'maybe',
        `the answer is packed in a way that was not asked for: ${name}`,
      )
  }
  if (streams.length > MOST_LAYERS)
    throw new TransportError('protocol', 'maybe', 'the answer is packed many times over')
  const source = Readable.from(body)
  const last = streams.at(-1) as Transform
  // The failure, if there is one, is thrown where the last stream is read.
  pipeline([source, ...streams], () => {})
  try {
    yield* last as AsyncIterable<Uint8Array>
  } catch (error) {
    if (error instanceof TransportError) throw error
    throw new TransportError('protocol', 'maybe', 'the answer could not be unpacked', error)
  } finally {
    source.destroy()
  }
}
