import { closeSync, openSync } from 'node:fs'
import { HttpTransportError } from '../context.ts'
import { catchError, errnoCode } from '../storage/file-errors.ts'
import { excerpt } from '../terminal/sanitize.ts'

const UNTRUSTED = 'is not signed by a certificate authority that this machine trusts'
/**
 * Matches an error of a closed connection, as "CODE SYSCALL MESSAGE". A UND_ERR_SOCKET whose message begins with "bad" doesn't
 * match: it is undici's error for an unexpected response.
 */
const CLOSED =
  /^(ECONNRESET|EPIPE|ECONNABORTED|HPE_INVALID_EOF_STATE|UND_ERR_RES_CONTENT_LENGTH_MISMATCH|UND_ERR_SOCKET(?! \S* bad )) /

/**
 * Kinds and messages of transport errors; the first entry whose pattern matches "CODE SYSCALL MESSAGE" of an error applies. PEER,
 * CODE and MESSAGE are placeholders in the messages.
 */
const ERRORS: readonly (readonly [pattern: RegExp, kind: HttpTransportError['kind'], message: string])[] = [
  // 20 is the `code` of the `DOMException` (AbortError) that an aborted signal causes.
  [/^(20|UND_ERR_DESTROYED|UND_ERR_CLOSED) /, 'aborted', 'the request was canceled'],
  // undici's HTTP parser is WebAssembly, for which V8 reserves gigabytes of address space; `ulimit -v` may forbid that.
  [/WebAssembly|Wasm/, 'memory', "this machine's limits leave too little memory for HTTP (WebAssembly)"],
  [/^(EMFILE|ENFILE) /, 'descriptors', 'too many files are open on this machine (CODE)'],
  [/^(ENOTFOUND|EAI_AGAIN) |^\S* getaddrinfo /, 'lookup', "couldn't resolve the host name"],
  [
    /^ERR_SSL_\w+_ALERT_(\w*CERTIFICATE\w*|UNKNOWN_CA) /,
    'tls',
    'the PEER asks for a client certificate that it accepts (CODE)',
  ],
  [/^ERR_TLS_CERT_ALTNAME_INVALID /, 'tls', 'the certificate of the PEER is for another host'],
  [/^CERT_HAS_EXPIRED /, 'dated', 'the certificate of the PEER has expired'],
  [/^CERT_NOT_YET_VALID /, 'dated', 'the certificate of the PEER is not valid yet'],
  [/^(DEPTH_ZERO|SELF_SIGNED|UNABLE_TO_)/, 'untrusted', `the certificate of the PEER ${UNTRUSTED}`],
  [/^(CERT_|HOSTNAME_MISMATCH|INVALID_)/, 'tls', 'the certificate of the PEER is not valid (CODE)'],
  [/:wrong version number:/i, 'tls', "the PEER doesn't speak TLS at that address: use http://"],
  [/^(ERR_TLS|ERR_SSL|EPROTO)|before secure TLS /, 'tls', "couldn't establish a TLS connection: MESSAGE"],
  [/^ECONNREFUSED /, 'connect', 'nothing is listening at that address (connection refused)'],
  [
    /^(ETIMEDOUT connect|UND_ERR_CONNECT_TIMEOUT) /,
    'connect',
    'the host did not respond (connection timeout)',
  ],
  [/^(EHOSTUNREACH|ENETUNREACH) |^\S* connect /, 'connect', "couldn't reach the host (CODE)"],
  [/^(ETIMEDOUT|UND_ERR_HEADERS_TIMEOUT) /, 'timeout', 'the PEER did not respond in time'],
  [/^\S* write /, 'reset', "couldn't send the whole request (CODE)"],
  [CLOSED, 'reset', 'the connection was closed before the response was complete'],
  [/^UND_ERR_INVALID_ARG /, 'protocol', "couldn't send the request: MESSAGE"],
  [/^/, 'protocol', 'invalid HTTP response: MESSAGE'],
]

/**
 * Converts an error of undici or Node into an `HttpTransportError` with its kind and a message for users; returns an
 * `HttpTransportError` unchanged.
 *
 * @param sent whether a byte of the request can have left this machine
 * @param peer the other end of the connection, named in the message
 */
export function toHttpTransportError(
  error: unknown,
  sent: HttpTransportError['sent'],
  peer: 'server' | 'proxy' = 'server',
): HttpTransportError {
  if (error instanceof HttpTransportError) return error
  const { code: reported = '', syscall = '', message } = rootCause(error)
  const code = syscall === 'getaddrinfo' && hasNoDescriptor() ? 'EMFILE' : reported
  const quoted = excerpt(`${message ?? error}`, 200)
  const [, kind, text] = ERRORS.find(([pattern]) => pattern.test(`${code} ${syscall} ${quoted}`)) ?? []
  const filled = text
    ?.replace('PEER', peer)
    .replace('CODE', code)
    .replace('MESSAGE', () => quoted)
  return new HttpTransportError(kind ?? 'protocol', sent, filled ?? quoted, error)
}

/**
 * Whether this process has no file descriptor left. Then a failed lookup looks like an unknown host (glibc 2.41: `ENOTFOUND`), and
 * the message would blame DNS.
 */
function hasNoDescriptor(): boolean {
  return errnoCode(catchError(() => closeSync(openSync(process.execPath, 'r')))) === 'EMFILE'
}

/**
 * Returns the first error in the chain of causes that names a failed system call, otherwise the innermost cause. Of the errors that
 * Happy Eyeballs (RFC 8305) collects, one per address, the first is followed.
 */
function rootCause(error: unknown): Partial<NodeJS.ErrnoException> {
  if (!(error instanceof Error) || 'syscall' in error) return error ?? {}
  const inner = error instanceof AggregateError ? error.errors[0] : error.cause
  return inner instanceof Error ? rootCause(inner) : error
}
