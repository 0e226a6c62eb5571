import { type HttpRequest, TransportError } from '../context.ts'
import { CliError, usageError } from '../errors.ts'
import { operationUrl } from '../settings/addresses.ts'
import { requireBaseUrl } from '../settings/settings.ts'
import type { Io } from '../terminal/io.ts'
import { formatDuration } from '../terminal/time.ts'
import { backoff, REQUEST_DELAYS } from '../timeout.ts'
import { readObject, responseError, transportFailure } from './problems.ts'
import { isTemporary, MAX_RETRY_AFTER_MS } from './retry.ts'
import type { Credential } from './types.ts'

export interface ServiceAnswer {
  /** 2xx. */
  readonly status: number
  /** As received, with unknown fields, in their order. */
  readonly body: Record<string, unknown>
}

export interface RequestOptions {
  /** Cancels the request; the interrupt signal if absent. A signal that is passed must follow interrupts, too. */
  readonly signal?: AbortSignal
  /** How many times the request is sent at most. Polling repeats it anyway, so it passes 1. */
  readonly maxAttempts?: number
  /** How long it may take with its repetitions, in milliseconds, if that is less than its own limit: see `stepTimeout`. */
  readonly timeoutMs?: number
}

/** Provides the credential of a profile. Implemented in session/. */
export interface Authorizer {
  /** A credential to send, checked and, if necessary, renewed. @throws CliError exit 4 if there isn't one. */
  credential(): Promise<Credential>
  /** After the service answered this credential with 401: another one to try, or undefined. */
  refused(credential: Credential): Promise<Credential | undefined>
}

/** Undefined values are left out. */
type Query = Readonly<Record<string, string | number | undefined>>

/** Sends requests to the service with the profile's credential. Every failure is a `CliError` with its exit code. */
export interface ServiceClient {
  get(path: string, query?: Query, options?: RequestOptions): Promise<ServiceAnswer>
  post(path: string, body?: object, options?: RequestOptions): Promise<ServiceAnswer>
}

/** How many times an idempotent request is sent at most. */
const MAX_ATTEMPTS = 4
/** How long a request with its repetitions may take, in milliseconds, without the waits that the service asks for. */
const LIMIT_MS = 45_000
/** A shorter delay needs no explanation. */
const MIN_NOTICED_DELAY_MS = 3000

/**
 * A client for the operations of section 4 that need a credential.
 *
 * A GET is retried after network errors, 429 and 5xx, with exponential backoff and jitter; a POST only if nothing can
 * have been sent, or after a 429 or 503 with `Retry-After`. All of it takes 45 seconds at most (or one timeout, if that
 * is longer) and as long as the service asks to wait; after two seconds of silence stderr says what it waits for. After a
 * 401 the authorizer is asked for another credential, once. Redirects are not followed.
 *
 * @throws CliError exit 3 if the base URL is missing or unusable
 */
export function createServiceClient(io: Io, authorizer: Authorizer): ServiceClient {
  const { settings, clock, random, interrupts } = io
  const base = requireBaseUrl(settings)

  async function perform(request: ServiceRequest, options: RequestOptions = {}): Promise<ServiceAnswer> {
    const { maxAttempts = MAX_ATTEMPTS, timeoutMs = Number.POSITIVE_INFINITY } = options
    const signal = options.signal ?? interrupts.signal
    let credential = await authorizer.credential()
    let isRenewed = false
    // The request has its own time, whatever a renewal of the session takes.
    let end = clock.monotonic() + Math.min(timeoutMs, Math.max(LIMIT_MS, settings.httpTimeoutMs))
    for (let attempts = 1; ; attempts++) {
      signal.throwIfAborted()
      const limitMs = Math.min(settings.httpTimeoutMs, end - clock.monotonic())
      const sending = attempt(request, credential, limitMs, signal)
      // Who polls says itself what it waits for.
      const failure = await (maxAttempts === 1 ? sending : io.waiting(`Waiting for ${base.host} …`, sending))
      if (!(failure instanceof CliError)) return failure
      if (failure.status === 401 && !isRenewed) {
        isRenewed = true
        const begun = clock.monotonic()
        const other = await authorizer.refused(credential)
        end += clock.monotonic() - begun
        if (other !== undefined) {
          credential = other
          attempts--
          continue
        }
      }
      const { retryAfterMs = 0 } = failure
      const delay = Math.max(retryAfterMs, backoff(attempts, REQUEST_DELAYS, random))
      if (timeoutMs === Number.POSITIVE_INFINITY) end += retryAfterMs
      const isTooLate = clock.monotonic() + delay >= end
      const isLast = attempts >= maxAttempts || retryAfterMs > MAX_RETRY_AFTER_MS || isTooLate
      if (isLast || !mayRetry(failure, request.method)) throw failure
      if (delay >= MIN_NOTICED_DELAY_MS)
        await io.say(`${failure.message}; retrying in ${formatDuration(delay / 1000)}`)
      await clock.sleep(delay, signal)
    }
  }

  /** Sends a request once. @returns the answer, or the error that it ends with unless it is sent again */
  async function attempt(
    { method, path, query = {}, body }: ServiceRequest,
    credential: Credential,
    timeoutMs: number,
    signal: AbortSignal,
  ): Promise<ServiceAnswer | CliError> {
    const url = operationUrl(base, path)
    for (const [name, value] of Object.entries(query)) {
      if (value !== undefined) url.searchParams.set(name, String(value))
    }
    try {
      const response = await io.http.send({
        method,
        url,
        headers: {
          accept: 'application/json',
          authorization: `Bearer ${credential.value}`,
          'user-agent': userAgent(io),
          ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
        timeoutMs,
        signal,
      })
      const { status } = response
      if (status >= 200 && status < 300) return { status, body: readObject(response, [credential.value]) }
      signal.throwIfAborted()
      return responseError(response, { method, path }, base, credential, io)
    } catch (error) {
      signal.throwIfAborted()
      if (!(error instanceof TransportError)) throw error
      return transportFailure(error, url, method)
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

/** Whether the same request can be sent again: a GET after what may pass, a POST only if the service has done nothing yet. */
function mayRetry({ status = 0, retryAfterMs, cause }: CliError, method: HttpRequest['method']): boolean {
  if (cause instanceof TransportError) {
    // Canceled, but not by the signal: the program is ending. The others would only happen again.
    if (['memory', 'aborted', 'tls', 'untrusted', 'dated', 'protocol'].includes(cause.kind)) return false
    return method === 'GET' || cause.sent === 'no'
  }
  if (method === 'GET') return isTemporary(status)
  return retryAfterMs !== undefined && (status === 429 || status === 503)
}

/**
 * An id as one segment of a path.
 *
 * @throws CliError exit 2 for "", "." and "..", which would change the path however they are encoded, and for half of a
 *   surrogate pair, which cannot be encoded
 */
export function pathSegment(id: string): string {
  const trimmed = id.trim()
  if (['', '.', '..'].includes(trimmed) || /\p{Cs}/u.test(trimmed))
    throw usageError(`${JSON.stringify(id)} is not an id`, 'copy the id from a list')
  return encodeURIComponent(trimmed)
}

/** The `User-Agent` header. */
export function userAgent({ program, platform }: Pick<Io, 'program' | 'platform'>): string {
  return `mailclaim/${program.version} (node ${process.versions.node}; ${platform})`
}
