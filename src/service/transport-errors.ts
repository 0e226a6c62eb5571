import { TransportError } from '../context.ts'
import { excerpt } from '../terminal/sanitize.ts'

/**
 * Says what kind of failure an error of the HTTP client is, in words a person can act on.
 *
 * @param started whether the request had begun to be written: before that, nothing can have left this machine.
 * @param peer who was spoken with
 */
export function classify(
  error: unknown,
  started: boolean,
  peer: 'service' | 'proxy' = 'service',
): TransportError {
  if (error instanceof TransportError) return error
  const sent = started ? 'maybe' : 'no'
  const { code, syscall, message } = innermost(error)
  const is = (...codes: readonly string[]) => codes.includes(code)

  if (syscall === 'getaddrinfo' || is('ENOTFOUND', 'EAI_AGAIN')) {
    return new TransportError('lookup', sent, 'the name of the host could not be looked up', error)
  }
  if (isTls(code, message)) return new TransportError('tls', sent, tlsMessage(code, message, peer), error)
  if (syscall === 'connect' || is('ECONNREFUSED', 'EHOSTUNREACH', 'ENETUNREACH', 'UND_ERR_CONNECT_TIMEOUT')) {
    return new TransportError('connect', sent, connectMessage(code), error)
  }
  if (is('ETIMEDOUT', 'UND_ERR_HEADERS_TIMEOUT')) {
    return new TransportError('timeout', sent, `the ${peer} did not answer in time`, error)
  }
  if (syscall === 'write') {
    return new TransportError('reset', sent, `the request could not be written whole (${code})`, error)
  }
  if (isEnd(code, message)) {
    const what = 'the connection was closed before the answer was complete'
    return new TransportError('reset', sent, what, error)
  }
  const what = code === 'UND_ERR_INVALID_ARG' ? 'the request cannot be sent' : 'the answer is not valid HTTP'
  return new TransportError('protocol', sent, `${what}: ${message}`, error)
}

/** Happy Eyeballs reports one failure per address, and errors wrap others: the first cause tells most. */
function innermost(error: unknown): { code: string; syscall: string; message: string } {
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

/** undici calls bytes that it has not asked for an error of the socket as well. */
function isEnd(code: string, message: string): boolean {
  const ends = /^(ECONNRESET|EPIPE|ECONNABORTED|HPE_INVALID_EOF_STATE|UND_ERR_RES_CONTENT_LENGTH_MISMATCH)$/
  return ends.test(code) || (code === 'UND_ERR_SOCKET' && !message.startsWith('bad '))
}

function isTls(code: string, message: string): boolean {
  return (
    /^(ERR_TLS|ERR_SSL|CERT_|UNABLE_TO_|DEPTH_ZERO|SELF_SIGNED|HOSTNAME_MISMATCH|INVALID_CA|EPROTO)/.test(
      code,
    ) || message.includes('before secure TLS connection')
  )
}

function tlsMessage(code: string, message: string, peer: string): string {
  const certificate = `the certificate of the ${peer}`
  if (code === 'ERR_TLS_CERT_ALTNAME_INVALID') return `${certificate} is for another host`
  if (code === 'CERT_HAS_EXPIRED') return `${certificate} has expired`
  if (/^(DEPTH_ZERO|SELF_SIGNED|UNABLE_TO_)/.test(code)) {
    return `${certificate} is not signed by an authority that this machine trusts`
  }
  return `no secure connection could be made: ${message}`
}

function connectMessage(code: string): string {
  if (code === 'ECONNREFUSED') return 'nothing listens at that address (connection refused)'
  if (code === 'ETIMEDOUT' || code === 'UND_ERR_CONNECT_TIMEOUT')
    return 'the host did not answer (connect time-out)'
  return `the host cannot be reached${code === '' ? '' : ` (${code})`}`
}
