import { type HttpRequest, HttpTransportError } from '../context.ts'
import { CliError, usageError } from '../errors.ts'
import { appendPath } from '../settings/addresses.ts'
import { getBaseUrl } from '../settings/settings.ts'
import type { Io } from '../terminal/io.ts'
import { formatDuration } from '../terminal/time.ts'
import { backoffMs, REQUEST_BACKOFF } from '../timeout.ts'
import { noResponseError, requireJsonBody, unsuccessfulResponseError } from './problems.ts'
import { isTemporaryStatus, MAX_AWAITED_RETRY_AFTER_MS } from './retry.ts'
import type { Credential } from './types.ts'

export interface SuccessfulResponse {
  /** HTTP status, 200 to 299. */
  readonly status: number
  /** The JSON object as received, unknown fields included. */
  readonly body: Record<string, unknown>
}

/** Limits and cancellation of one request with its retries. */
export interface RequestLimits {
  /**
   * Signal that cancels the request; default: the interrupt signal. A caller's own signal must abort on interrupts too, so that
   * Ctrl-C works.
   */
  readonly signal?: AbortSignal
  /**
   * Maximum number of attempts, not counting one that is refused with 401 before the credential is renewed; default: 4. With 1, the
   * notice `Waiting for HOST …` is left out: the caller announces the wait itself, or can do without the response.
   */
  readonly maxAttempts?: number
  /**
   * Maximum milliseconds for the request with its retries and delays, if less than the client's own limit. The time for renewing
   * the credential isn't counted, but a delay that `Retry-After` asks for is.
   */
  readonly timeoutMs?: number
}

export interface CredentialProvider {
  /**
   * Returns the credential for a request; may renew it first. @throws CliError exit 4 without a credential; errors of the renewal
   */
  credential(): Promise<Credential>
  /** Returns a new credential after the service refused the given one with 401; undefined if none can be had, as for an API key. */
  replaceRefused(credential: Credential): Promise<Credential | undefined>
}

/** Query parameters by name; undefined and empty values are left out. */
type Query = Readonly<Record<string, string | number | undefined>>

/**
 * Client that sends requests with a credential. A failed request rejects with a `CliError`, a canceled one with its signal's
 * reason.
 */
export interface ServiceClient {
  get(path: string, query?: Query, options?: RequestLimits): Promise<SuccessfulResponse>
  post(path: string, body?: object, options?: RequestLimits): Promise<SuccessfulResponse>
}

const MAX_ATTEMPTS = 4
/** Maximum milliseconds for a request with its retries, except what `Retry-After` adds; a longer `--http-timeout` raises it. */
const MAX_REQUEST_MS = 45_000
/** Minimum retry delay in milliseconds that is announced on stderr. */
const MIN_NOTICED_DELAY_MS = 3000

/**
 * Creates a client for the operations that need a credential. A GET is retried with backoff after most temporary failures. A POST
 * could take effect twice, so it is retried only if nothing can have been sent, or after `Retry-After` in a 429 or 503. After a
 * 401, a new credential is requested once per request.
 *
 * @throws CliError exit 3 if the base URL is missing or unusable
 */
export function createServiceClient(io: Io, credentials: CredentialProvider): ServiceClient {
  const { settings, clock, random, interrupts } = io
  const base = getBaseUrl(settings)

  async function perform(request: ServiceRequest, options: RequestLimits = {}): Promise<SuccessfulResponse> {
    const { maxAttempts = MAX_ATTEMPTS, timeoutMs = Number.POSITIVE_INFINITY } = options
    const signal = options.signal ?? interrupts.signal
    let credential = await credentials.credential()
    let isRenewed = false
    // Start the time limit after `credential()`, which may renew the access token: a slow renewal must not shorten the request.
    let end = clock.monotonic() + Math.min(timeoutMs, Math.max(MAX_REQUEST_MS, settings.httpTimeoutMs))
    for (let attempts = 1; ; attempts++) {
      signal.throwIfAborted()
      const limitMs = Math.min(settings.httpTimeoutMs, end - clock.monotonic())
      const sending = attempt(request, credential, limitMs, signal)
      // Print no notice with a single attempt: the caller announces the wait itself, or can do without the response.
      const failure = await (maxAttempts === 1 ? sending : io.waiting(`Waiting for ${base.host} …`, sending))
      if (!(failure instanceof CliError)) return failure
      if (failure.status === 401 && !isRenewed) {
        isRenewed = true
        const begun = clock.monotonic()
        const other = await credentials.replaceRefused(credential)
        end += clock.monotonic() - begun
        if (other !== undefined) {
          credential = other
          attempts--
          continue
        }
      }
      const { retryAfterMs = 0 } = failure
      const delay = Math.max(retryAfterMs, backoffMs(attempts, REQUEST_BACKOFF, random))
      if (timeoutMs === Number.POSITIVE_INFINITY) end += retryAfterMs
      const isTooLate = clock.monotonic() + delay >= end
      const isLast = attempts >= maxAttempts || retryAfterMs > MAX_AWAITED_RETRY_AFTER_MS || isTooLate
      if (isLast || !mayRetry(failure, request.method)) throw failure
      if (delay >= MIN_NOTICED_DELAY_MS)
        await io.say(`${failure.message}; retrying in ${formatDuration(delay / 1000)}`)
      await clock.sleep(delay, signal)
    }
  }

  /** Sends a request once. @returns the response, or the error, which the caller throws unless it sends the request again */
  async function attempt(
    { method, path, query = {}, body }: ServiceRequest,
    credential: Credential,
    timeoutMs: number,
    signal: AbortSignal,
  ): Promise<SuccessfulResponse | CliError> {
    const url = appendPath(base, path)
    for (const [name, value] of Object.entries(query)) {
      if (value !== undefined && value !== '') url.searchParams.set(name, String(value))
    }
    try {
      const response = await io.http.send({
        method,
        url,
        headers: {
          accept: 'application/json',
          authorization: `Bearer ${credential.value}`,
          'user-agent': formatUserAgent(io),
          ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
        timeoutMs,
        signal,
      })
      const { status } = response
      if (status >= 200 && status < 300)
        return { status, body: requireJsonBody(response, [credential.value]) }
      signal.throwIfAborted()
      return unsuccessfulResponseError(response, { method, path }, base, credential, io)
    } catch (error) {
      signal.throwIfAborted()
      if (!(error instanceof HttpTransportError)) throw error
      return noResponseError(error, url, method)
    }
  }

  return {
    get: (path, query, options) => perform({ method: 'GET', path, query }, options),
    post: (path, body, options) => perform({ method: 'POST', path, body }, options),
  }
}

interface ServiceRequest {
  readonly method: HttpRequest['method']
  readonly path: string
  readonly query?: Query | undefined
  readonly body?: object | undefined
}

/**
 * Whether to send a failed request again: a GET after a temporary failure; a POST only if nothing was sent, or after a 429 or 503
 * with `Retry-After`.
 */
function mayRetry({ status = 0, retryAfterMs, cause }: CliError, method: HttpRequest['method']): boolean {
  if (cause instanceof HttpTransportError) {
    // Never retry these kinds: after `aborted` the program is closing its connections, and the others would fail again in the same
    // way.
    if (['memory', 'aborted', 'tls', 'untrusted', 'dated', 'protocol'].includes(cause.kind)) return false
    return method === 'GET' || cause.sent === 'no'
  }
  if (method === 'GET') return isTemporaryStatus(status)
  return retryAfterMs !== undefined && (status === 429 || status === 503)
}

/**
 * Encodes an id, without surrounding spaces, as one segment of a URL's path.
 *
 * @throws CliError `usage`, exit 2, for "", "." and "..", which would change the path, and for an unpaired surrogate
 */
export function encodeIdForPath(id: string): string {
  const trimmed = id.trim()
  if (['', '.', '..'].includes(trimmed) || /\p{Cs}/u.test(trimmed))
    throw usageError(`${JSON.stringify(id)} is not an id`, 'copy the id from a list')
  return encodeURIComponent(trimmed)
}

export function formatUserAgent({ installation, platform }: Pick<Io, 'installation' | 'platform'>): string {
  return `mailclaim/${installation.version} (node ${process.versions.node}; ${platform})`
}
