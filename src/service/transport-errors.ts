import { TransportError } from '../context.ts'
import { excerpt } from '../terminal/sanitize.ts'

/**
 * Turns an error of the HTTP client into one with a kind and a clear message.
 *
 * @param started whether writing the request had begun: before that, nothing can have left this machine
 * @param peer the other end of the connection
 */
export function classify(
  error: unknown,
  started: boolean,
  peer: 'service' | 'proxy' = 'service',
): TransportError {
  if (error instanceof TransportError) return error
  const sent = started ? 'maybe' : 'no'
  const { code, syscall, message } = rootCause(error)
  const is = (...codes: readonly string[]) => codes.includes(code)

  if (syscall === 'getaddrinfo' || is('ENOTFOUND', 'EAI_AGAIN')) {
    return new TransportError('lookup', sent, "couldn't resolve the host name", error)
  }
  const certificate = certificateMessage(code, peer)
  if (certificate !== undefined) return new TransportError('tls', sent, certificate, error)
  if (isTls(code, message))
    return new TransportError('tls', sent, `couldn't establish a TLS connection: ${message}`, error)
  if (syscall === 'connect' || is('ECONNREFUSED', 'EHOSTUNREACH', 'ENETUNREACH', 'UND_ERR_CONNECT_TIMEOUT')) {
    return new TransportError('connect', sent, connectMessage(code), error)
  }
  if (is('ETIMEDOUT', 'UND_ERR_HEADERS_TIMEOUT')) {
    return new TransportError('timeout', sent, `the ${peer} did not respond in time`, error)
  }
  if (syscall === 'write') {
    return new TransportError('reset', sent, `couldn't send the whole request (${code})`, error)
  }
  if (isConnectionClosed(code, message)) {
    const closed = 'the connection was closed before the response was complete'
    return new TransportError('reset', sent, closed, error)
  }
  const problem = code === 'UND_ERR_INVALID_ARG' ? "couldn't send the request" : 'invalid HTTP response'
  return new TransportError('protocol', sent, `${problem}: ${message}`, error)
}

/** Happy Eyeballs reports one error per address, and errors wrap others: the first cause is the most useful. */
function rootCause(error: unknown): { code: string; syscall: string; message: string } {
  let found = error
  for (let depth = 0; depth < 5; depth++) {
    if (found instanceof AggregateError && found.errors.length > 0) found = found.errors[0]
    else if (found instanceof Error && found.cause instanceof Error && !('syscall' in found))
      found = found.cause
    else break
  }
  const fields = (found ?? {}) as { code?: unknown; syscall?: unknown; message?: unknown }
  return {
    code: String(fields.code ?? ''),
    syscall: String(fields.syscall ?? ''),
    message: excerpt(String(fields.message ?? found), 200),
  }
}

/** undici also reports unexpected bytes as UND_ERR_SOCKET, with a message that begins with "bad". */
function isConnectionClosed(code: string, message: string): boolean {
  const codes = /^(ECONNRESET|EPIPE|ECONNABORTED|HPE_INVALID_EOF_STATE|UND_ERR_RES_CONTENT_LENGTH_MISMATCH)$/
  return codes.test(code) || (code === 'UND_ERR_SOCKET' && !message.startsWith('bad '))
}

function isTls(code: string, message: string): boolean {
  return /^(ERR_TLS|ERR_SSL|EPROTO)/.test(code) || message.includes('before secure TLS connection')
}

/** Which certificate is not accepted, and why; undefined if that isn't the problem. */
function certificateMessage(code: string, peer: string): string | undefined {
  const alert = /^ERR_SSL_\w+_ALERT_(?<name>\w*CERTIFICATE\w*|UNKNOWN_CA)$/.exec(code)?.groups?.['name']
  if (alert !== undefined) {
    const said = alert.toLowerCase().replaceAll('_', ' ')
    return `the ${peer} asks for a client certificate that it accepts (TLS alert: ${said})`
  }
  const certificate = `the certificate of the ${peer}`
  if (code === 'ERR_TLS_CERT_ALTNAME_INVALID') return `${certificate} is for another host`
  if (code === 'CERT_HAS_EXPIRED') return `${certificate} has expired`
  if (/^(DEPTH_ZERO|SELF_SIGNED|UNABLE_TO_)/.test(code)) {
    return `${certificate} is not signed by a certificate authority that this machine trusts`
  }
  return /^(CERT_|HOSTNAME_MISMATCH|INVALID_)/.test(code)
    ? `${certificate} is not valid (${code})`
    : undefined
}

function connectMessage(code: string): string {
  if (code === 'ECONNREFUSED') return 'nothing is listening at that address (connection refused)'
  if (code === 'ETIMEDOUT' || code === 'UND_ERR_CONNECT_TIMEOUT')
    return 'the host did not respond (connection timeout)'
  return `couldn't reach the host${code === '' ? '' : ` (${code})`}`
}
