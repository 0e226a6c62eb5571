import { type Context, type HttpRequest, type HttpResponse, TransportError } from '../context.ts'
import { CliError, Exit, usageError } from '../errors.ts'
import { operationUrl } from '../settings/addresses.ts'
import { requireBaseUrl, type Settings } from '../settings/settings.ts'
import { formatDuration } from '../terminal/duration.ts'
import { note, withWaitingNote } from '../terminal/notices.ts'
import {
  describeCredential,
  MAX_BODY_BYTES,
  MAX_ERROR_BODY_BYTES,
  parseObject,
  readBody,
  responseError,
} from './answers.ts'
import { type Authorizer, type Credential, isBearerToken } from './authorizer.ts'
import { logExchanges } from './exchange-log.ts'
import {
  backoff,
  DEADLINE_MS,
  isTemporary,
  MAX_ATTEMPTS,
  MAX_CONNECTS,
  MAX_RETRY_AFTER_MS,
  parseRetryAfter,
  RECONNECT_MS,
  renewalTooLate,
  TOO_LATE,
  tooLate,
} from './retry.ts'

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
  /** How long each attempt may take, in milliseconds, if that is less than the setting. */
  readonly timeoutMs?: number
  /**
   * When nobody waits anymore, on `clock.monotonic()`. It bounds everything: the wait for a turn, the pauses between
   * attempts, `Retry-After` and the request itself.
   */
  readonly deadline?: number
  /** A request that, once sent, is left its time even after the deadline: cut off, nobody would know what it did. */
  readonly isWhole?: true
  /** Whether it goes on with what an earlier request began: if the service limits them, it comes first. */
  readonly goesOn?: boolean
  /** What to do if the service may have acted on the request, although there is no response. */
  readonly lostHint?: string
  /** Whether the path or the query has an id in it, as most do: then a 404 may mean that the id is wrong. */
  readonly namesItem?: boolean
  /** What to do after a 404, if that is something else. */
  readonly notFoundHint?: string | undefined
}

/** Undefined values are left out. */
type Query = Readonly<Record<string, string | number | undefined>>

/** Sends requests to the service with the profile's credential. Every failure is a `CliError` with its exit code. */
export interface ServiceClient {
  get(path: string, query?: Query, options?: RequestOptions): Promise<ServiceAnswer>
  post(path: string, body?: object, options?: RequestOptions): Promise<ServiceAnswer>
}

export interface ServiceClientOptions {
  readonly context: Pick<
    Context,
    'http' | 'clock' | 'random' | 'interrupts' | 'stderr' | 'environment' | 'program' | 'platform'
  >
  readonly settings: Pick<Settings, 'baseUrl' | 'httpTimeoutMs' | 'profile' | 'verbose' | 'quiet'>
  readonly authorizer: Authorizer
}

/**
 * A client for the operations of section 4 that need a credential.
 *
 * A GET is retried after network errors, 429 and 5xx, with exponential backoff and jitter; a POST only if nothing can
 * have been sent, or after a 429 or 503 with `Retry-After`. All of it takes 45 seconds at most (or one timeout, if that
 * is longer) and as long as the service asks to wait, but ends by the deadline of whoever asks; after two seconds of
 * silence stderr says what it waits for. After a 401 the authorizer is asked for another credential, once. Redirects are
 * not followed.
 *
 * @throws CliError exit 3 if the base URL is missing or unusable
 */
export function createServiceClient({ context, settings, authorizer }: ServiceClientOptions): ServiceClient {
  const base = requireBaseUrl(settings)
  const http = settings.verbose ? logExchanges(context) : context.http

  async function perform(request: ServiceRequest, options: RequestOptions = {}): Promise<ServiceAnswer> {
    const { interrupts, random, clock } = context
    const signal = options.signal ?? interrupts.signal
    const { namesItem = true, notFoundHint, lostHint, goesOn = false } = options
    const { deadline = Number.POSITIVE_INFINITY } = options
    const latest = { start: deadline, end: options.isWhole ? Number.POSITIVE_INFINITY : deadline }
    let end = clock.monotonic() + Math.max(DEADLINE_MS, settings.httpTimeoutMs)
    // The request has its own time, whatever a renewal of the session takes.
    const waitFor = async <T>(ask: () => Promise<T>): Promise<T> => {
      const begun = clock.monotonic()
      const credential = await ask()
      const now = clock.monotonic()
      if (begun < deadline && now >= deadline) throw renewalTooLate()
      end += now - begun
      return credential
    }
    let credential = requireSendable(await waitFor(() => authorizer.credential(deadline)))
    let isRenewed = false
    const start = clock.monotonic()

    for (let attempts = 1; ; attempts++) {
      signal.throwIfAborted()
      const longest = Math.min(settings.httpTimeoutMs, options.timeoutMs ?? Number.POSITIVE_INFINITY)
      const timeoutMs = Math.min(longest, Math.min(end, latest.end) - clock.monotonic())
      const prepared = { ...request, namesItem, notFoundHint, lostHint, timeoutMs, latest, goesOn }
      const outcome = await withWaitingNote(
        `Waiting for ${base.host} …`,
        context,
        // Who polls says itself what it waits for.
        { quiet: settings.quiet || options.maxAttempts === 1 },
        attempt(prepared, credential, signal),
      )
      if ('answer' in outcome) return outcome.answer
      const { failure, isRetryable, isUnconnected } = outcome
      if (failure.status === 401 && !isRenewed) {
        isRenewed = true
        const other = await waitFor(() => authorizer.refused(credential, deadline))
        if (other !== undefined) {
          credential = requireSendable(other)
          attempts--
          continue
        }
      }
      const { message, retryAfterMs = 0 } = failure
      const most = Math.min(options.maxAttempts ?? MAX_ATTEMPTS, isUnconnected ? MAX_CONNECTS : MAX_ATTEMPTS)
      if (!isRetryable || attempts >= most || retryAfterMs > MAX_RETRY_AFTER_MS)
        throw afterAll(failure, attempts, clock.monotonic() - start)
      end += retryAfterMs
      const delay = isUnconnected ? RECONNECT_MS : Math.max(retryAfterMs, backoff(attempts, random))
      if (clock.monotonic() + delay + SHORTEST_ATTEMPT_MS > Math.min(end, deadline))
        throw afterAll(failure, attempts, clock.monotonic() - start)
      if (delay >= MIN_NOTICED_DELAY_MS) {
        await note(`${message}; retrying in ${formatDuration(delay / 1000)}`, context, settings)
      }
      await clock.sleep(delay, signal)
    }
  }

  async function attempt(
    {
      method,
      path,
      query = {},
      body,
      namesItem,
      notFoundHint,
      lostHint,
      timeoutMs,
      latest,
      goesOn,
    }: PreparedRequest,
    credential: Credential,
    signal: AbortSignal,
  ): Promise<AttemptResult> {
    const url = operationUrl(base, path)
    for (const [name, value] of Object.entries(query)) {
      if (value !== undefined) url.searchParams.set(name, String(value))
    }
    const isIdempotent = method === 'GET'
    try {
      if (timeoutMs <= 0) throw tooLate()
      const response = await http.send({
        method,
        url,
        headers: {
          accept: 'application/json',
          authorization: `Bearer ${credential.value}`,
          'user-agent': userAgent(context),
          ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
        timeoutMs,
        latest,
        goesOn,
        signal,
      })
      const { status } = response
      if (status >= 200 && status < 300) {
        const text = await readBody(response, MAX_BODY_BYTES)
        return { answer: { status, body: parseObject(status, text, [credential.value]) } }
      }
      // If the body doesn't arrive, the status is enough.
      const text = await readBody(response, MAX_ERROR_BODY_BYTES).catch(() => ({
        text: '',
        isTruncated: true,
      }))
      signal.throwIfAborted()
      const now = context.clock.now()
      const failure = responseError(
        response,
        text,
        {
          operation: `${method} ${path}`,
          namesItem,
          notFoundHint,
          lostHint: isIdempotent ? undefined : lostHint,
          base: base.href,
          credential,
          profile: settings.profile.value,
        },
        now,
      )
      return { failure, isRetryable: isRetryableResponse(response, isIdempotent, now) }
    } catch (error) {
      if (signal.aborted) throw signal.reason
      if (!(error instanceof TransportError)) throw error
      return {
        failure: transportFailure(error, url, method, lostHint, latest.start < Number.POSITIVE_INFINITY),
        isRetryable: isRetryableError(error, isIdempotent),
        isUnconnected: error.kind === 'connect' || error.kind === 'lookup',
      }
    }
  }

  return {
    get: (path, query, options) => perform({ method: 'GET', path, query }, options),
    post: (path, body, options) => perform({ method: 'POST', path, body }, options),
  }
}

/** The failure of the last attempt. If it was too short to explain the wait, it names the whole. */
function afterAll(failure: CliError, attempts: number, ms: number): CliError {
  const { code, exit, message } = failure
  if (code !== 'timeout' || attempts === 1) return failure
  const all = `${attempts} tries in ${formatDuration(ms / 1000)}`
  return new CliError(code, exit, `${message} (${all})`, { ...failure, cause: failure.cause })
}

/** A shorter delay needs no explanation. */
const MIN_NOTICED_DELAY_MS = 3000
/** With less time left, a request is not sent again. */
const SHORTEST_ATTEMPT_MS = 1000

interface ServiceRequest {
  readonly method: 'GET' | 'POST'
  readonly path: string
  readonly query?: Query | undefined
  readonly body?: object | undefined
}

interface PreparedRequest extends ServiceRequest {
  readonly namesItem: boolean
  readonly notFoundHint: string | undefined
  readonly lostHint: string | undefined
  readonly timeoutMs: number
  readonly latest: HttpRequest['latest'] & object
  readonly goesOn: boolean
}

type AttemptResult =
  | { readonly answer: ServiceAnswer }
  | {
      readonly failure: CliError
      readonly isRetryable: boolean
      /** Whether not even a connection was made. */
      readonly isUnconnected?: boolean
    }

/**
 * An id as one segment of a path.
 *
 * @throws CliError exit 2 for "", "." and "..", which would change the path however they are encoded, and for half of a
 *   surrogate pair, which cannot be encoded
 */
export function pathSegment(id: string): string {
  const trimmed = id.trim()
  if (['', '.', '..'].includes(trimmed) || /\p{Cs}/u.test(trimmed)) {
    throw usageError(`${JSON.stringify(id)} is not an id`, 'copy the id from a list')
  }
  return encodeURIComponent(trimmed)
}

/** The `User-Agent` header. */
export function userAgent(context: Pick<Context, 'program' | 'platform'>): string {
  const node = process.versions.node
  return `mailclaim/${context.program.version} (node ${node}; ${context.platform})`
}

/** A header can hold visible ASCII only; anything else is a copying mistake, and must not be sent or shown. */
function requireSendable(credential: Credential): Credential {
  if (isBearerToken(credential.value)) return credential
  throw new CliError(
    'credential_unusable',
    Exit.notSignedIn,
    `${describeCredential(credential)} ${credential.value === '' ? 'is empty' : 'contains a space, a line break or another character that no credential has'}`,
    { hint: 'copy it again, without the text around it' },
  )
}

/** Whether a request without a response can be sent again. */
function isRetryableError({ kind, sent }: TransportError, idempotent: boolean): boolean {
  // Canceled, but not by the signal: the program is ending.
  if (kind === 'aborted' || kind === 'certificate') return false
  return sent === 'no' ? kind !== 'tls' : idempotent && kind !== 'protocol'
}

function isRetryableResponse(response: HttpResponse, idempotent: boolean, now: number): boolean {
  if (idempotent) return isTemporary(response.status)
  // With Retry-After the service says that it has done nothing yet.
  const hasRetryAfter = parseRetryAfter(response.headers['retry-after'], now) !== undefined
  return hasRetryAfter && (response.status === 429 || response.status === 503)
}

/** The error for a request without a response: exit 7. @param hasDeadline whether `--timeout` may have ended it */
export function transportFailure(
  error: TransportError,
  url: URL,
  method: string,
  lostHint = 'the service may have acted on the request: check before you send it again',
  hasDeadline = false,
): CliError {
  const codes: Partial<Record<TransportError['kind'], string>> = {
    timeout: 'timeout',
    limited: 'rate_limited',
  }
  const hints: Partial<Record<TransportError['kind'], string>> = {
    lookup: 'check the base URL and the network',
    connect: 'check the base URL, and that the service is running',
    tls: 'for a private certificate authority, set NODE_EXTRA_CA_CERTS to its certificate file',
    proxy: 'check HTTPS_PROXY, HTTP_PROXY and NO_PROXY',
    timeout: `try again, or allow more time with ${hasDeadline ? '--timeout and ' : ''}--http-timeout SECONDS`,
    limited: 'allow more time with --timeout SECONDS',
  }
  const hint =
    method === 'POST' && error.sent === 'maybe'
      ? lostHint
      : (hints[error.kind] ?? 'check the network and any proxy in between')
  const isWaiting = error.message === TOO_LATE || error.kind === 'limited'
  const message = isWaiting ? error.message : `no response from ${url.origin}: ${error.message}`
  return new CliError(codes[error.kind] ?? 'unreachable', Exit.unavailable, message, { hint, cause: error })
}
