import { type DnsRequest, DnsTransportError, type HttpTransport, HttpTransportError } from '../../context.ts'
import { excerpt } from '../../terminal/sanitize.ts'
import { runDnsExchangeWithTimeout } from './network.ts'

/** Media type of DNS messages (RFC 8484 section 6). */
const MEDIA_TYPE = 'application/dns-message'
/** Maximum bytes of a DNS message, as over TCP, where the length field has two bytes (RFC 1035 section 4.2.2). */
const MAX_BYTES = 65_535

/**
 * Sends a DNS query over HTTPS (POST, RFC 8484 section 4.1) through mailclaim's HTTP client, so with its proxy and trusted
 * certificates. Rejects with a `DnsTransportError`, whose message is for users.
 */
export function exchangeDnsOverHttps(
  exchange: DnsRequest<URL>,
  http: Pick<HttpTransport, 'send'>,
): Promise<Uint8Array> {
  return runDnsExchangeWithTimeout(exchange, (resolve, reject) => {
    const controller = new AbortController()
    post(exchange, http, controller.signal).then(resolve, reject)
    return () => controller.abort()
  })
}

/** Sends the POST request, and returns the response's body; rejects unless it is a DNS message that `accept` accepts. */
async function post(
  { server, message, timeoutMs, accept }: DnsRequest<URL>,
  http: Pick<HttpTransport, 'send'>,
  signal: AbortSignal,
): Promise<Uint8Array> {
  const request = {
    ...({ method: 'POST', url: server, timeoutMs: Math.ceil(timeoutMs), signal, isBinary: true } as const),
    headers: { accept: MEDIA_TYPE, 'content-type': MEDIA_TYPE },
    body: Buffer.from(message).toString('latin1'),
  }
  const { status, headers, text, brokenBy } = await http.send(request).catch((error) => {
    throw error instanceof HttpTransportError ? createUnusableError(error.message, error) : error
  })
  if (status !== 200) throw createUnusableError(`HTTP ${status}`)
  const [type = ''] = (headers['content-type'] ?? '').split(';')
  if (type.trim().toLowerCase() !== MEDIA_TYPE)
    throw createUnusableError(`${excerpt(type, 40) || 'something'} instead of ${MEDIA_TYPE}`)
  if (brokenBy !== undefined) throw createUnusableError(brokenBy.message)
  const wire = Buffer.from(text, 'latin1')
  if (wire.length > MAX_BYTES || !accept(wire)) throw createUnusableError('no DNS message for this question')
  return wire
}

/** Creates the error of a query without a usable response over HTTPS. */
const createUnusableError = (reason: string, cause?: Error) =>
  new DnsTransportError('unreachable', reason, cause)
