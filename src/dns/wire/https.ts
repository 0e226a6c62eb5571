import { type DnsExchange, DnsTransportError, type HttpTransport, TransportError } from '../../context.ts'
import { excerpt } from '../../terminal/sanitize.ts'
import { limit } from './network.ts'

const MEDIA_TYPE = 'application/dns-message'
/** Messages have a length of two bytes elsewhere; more is no answer, and isn't worth reading. */
const MAX_BYTES = 65_535

/**
 * DNS over HTTPS: a POST (RFC 8484 section 4.1) by the program's own HTTP, so through its proxy, and with the certificates that
 * it trusts. Redirects aren't followed. The message of the error is for people.
 */
export async function exchangeHttps(
  exchange: DnsExchange<URL>,
  http: Pick<HttpTransport, 'send'>,
): Promise<Uint8Array> {
  const { server, message, timeoutMs, accept } = exchange
  const over = new AbortController()
  let release = () => {}
  const post = async () => {
    const { status, headers, text, brokenBy } = await http.send({
      method: 'POST',
      url: server,
      headers: { accept: MEDIA_TYPE, 'content-type': MEDIA_TYPE },
      body: Buffer.from(message).toString('latin1'),
      isBinary: true,
      timeoutMs: Math.ceil(timeoutMs),
      signal: over.signal,
    })
    if (status !== 200) throw unusable(`HTTP ${status}`)
    const [type = ''] = (headers['content-type'] ?? '').split(';')
    if (type.trim().toLowerCase() !== MEDIA_TYPE)
      throw unusable(`${excerpt(type, 40) || 'something'} instead of ${MEDIA_TYPE}`)
    if (brokenBy !== undefined) throw unusable(brokenBy.message)
    const wire = Buffer.from(text, 'latin1')
    if (wire.length > MAX_BYTES || !accept(wire)) throw unusable('no DNS message for this question')
    return wire
  }
  try {
    return await new Promise((resolve, reject) => {
      release = limit(exchange, reject)
      post().then(resolve, (error) =>
        reject(error instanceof TransportError ? unusable(error.message, error) : error),
      )
    })
  } finally {
    release()
    over.abort()
  }
}

const unusable = (reason: string, cause?: Error) => new DnsTransportError('unreachable', reason, cause)
