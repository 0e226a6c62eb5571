import {
  type Context,
  type HttpRequest,
  type HttpResponse,
  type HttpTransport,
  TransportError,
} from '../context.ts'
import { CliError, Exit, usageError } from '../errors.ts'
import { below } from '../settings/addresses.ts'
import { requireBaseUrl, type Settings } from '../settings/settings.ts'
import { note } from '../terminal/notices.ts'
import {
  LONGEST_ANSWER,
  LONGEST_REFUSAL,
  parseObject,
  readBody,
  refusal,
  spokenCredential,
} from './answers.ts'
import { type Authorizer, type Credential, isBearerToken } from './authorizer.ts'
import { logExchanges } from './exchange-log.ts'
import { backoff, LONGEST_RETRY_AFTER_MS, MOST_TRIES, parseRetryAfter, spokenSpan } from './retry.ts'

export interface ServiceAnswer {
  /** 2xx. */
  readonly status: number
  /** As it was received: unknown fields and their order kept. */
  readonly body: Record<string, unknown>
}

export interface RequestOptions {
  readonly signal?: AbortSignal
  /** How often to send at most. A poll that comes again anyway sends once. */
  readonly tries?: number
}

/** Requests to the service with the credential of the profile. Every failure is a `CliError` with its exit code. */
export interface ServiceClient {
  /** @param query what is undefined is left out */
  get(
    path: string,
    query?: Readonly<Record<string, string | number | undefined>>,
    options?: RequestOptions,
  ): Promise<ServiceAnswer>
  post(path: string, body?: object, options?: RequestOptions): Promise<ServiceAnswer>
}

export interface ServiceClientOptions {
  readonly context: Context
  readonly settings: Settings
  readonly authorizer: Authorizer
}

/**
 * A client for the operations of section 4 that need a credential.
 *
 * A GET is tried again after network failures, 429 and 5xx, with exponential backoff and jitter; a POST only where
 * nothing can have been sent, or after a 429 or 503 that says `Retry-After`. A 401 asks the authorizer for another
 * credential, once. Redirects are not followed.
 *
 * @throws CliError exit 3 where the base URL is missing or unusable.
 */
export function createServiceClient(options: ServiceClientOptions): ServiceClient {
  const base = requireBaseUrl(options.settings)
  const http = options.settings.verbose ? logExchanges(options.context) : options.context.http
  return {
    get(path, query = {}, requestOptions = {}) {
      const url = below(base, path)
      for (const [name, value] of Object.entries(query)) {
        if (value !== undefined) url.searchParams.set(name, String(value))
      }
      return perform({ method: 'GET', url, asked: `GET ${path}` }, requestOptions, http, options)
    },
    post(path, body, requestOptions = {}) {
      return perform(
        {
          method: 'POST',
          url: below(base, path),
          asked: `POST ${path}`,
          ...(body === undefined ? {} : { body: JSON.stringify(body) }),
        },
        requestOptions,
        http,
        options,
      )
    },
  }
}

/**
 * An id as one segment of a path.
 *
 * @throws CliError exit 2 where it would be none, or lead elsewhere: "", "." and ".." whatever their encoding, and half
 *   of a character, which has none.
 */
export function pathSegment(id: string): string {
  const trimmed = id.trim()
  if (['', '.', '..'].includes(trimmed) || /\p{Cs}/u.test(trimmed)) {
    throw usageError(`${JSON.stringify(id)} is not an id`, 'copy the id from a list')
  }
  return encodeURIComponent(trimmed)
}

/** The header that tells the service who is asking. */
export function userAgent(context: Pick<Context, 'program' | 'platform'>): string {
  const node = process.versions.node
  return `mailclaim/${context.program.version} (node ${node}; ${context.platform})`
}

interface Asked {
  readonly method: 'GET' | 'POST'
  readonly url: URL
  readonly body?: string
  /** For messages: the method and the path, without values. */
  readonly asked: string
}

async function perform(
  request: Asked,
  requestOptions: RequestOptions,
  http: HttpTransport,
  { context, settings, authorizer }: ServiceClientOptions,
): Promise<ServiceAnswer> {
  const signal =
    requestOptions.signal === undefined
      ? context.interrupts.signal
      : AbortSignal.any([context.interrupts.signal, requestOptions.signal])
  const most = requestOptions.tries ?? MOST_TRIES
  let credential = requireSendable(await authorizer.credential())
  let renewed = false

  for (let tries = 1; ; tries++) {
    signal.throwIfAborted()
    const outcome = await attempt(request, credential, signal, http, context, settings)
    if ('answer' in outcome) return outcome.answer
    if (outcome.failure.status === 401 && !renewed) {
      renewed = true
      const other = await authorizer.refused(credential)
      if (other !== undefined) {
        credential = requireSendable(other)
        tries--
        continue
      }
    }
    if (!outcome.repeatable || tries >= most) throw outcome.failure
    const asked = outcome.failure.retryAfterMs
    if (asked !== undefined && asked > LONGEST_RETRY_AFTER_MS) throw outcome.failure
    const pause = Math.max(asked ?? 0, backoff(tries, context.random))
    if (pause >= 3000) {
      await note(`${outcome.failure.message}; trying again in ${spokenSpan(pause)}`, context, settings)
    }
    await context.clock.sleep(pause, signal)
  }
}

/** A header holds visible ASCII only; anything else was pasted wrongly, and must not reach the wire or a message. */
function requireSendable(credential: Credential): Credential {
  if (isBearerToken(credential.value)) return credential
  throw new CliError(
    'credential_unusable',
    Exit.notSignedIn,
    `${spokenCredential(credential)} ${credential.value === '' ? 'is empty' : 'contains a blank, a line break or another character that no credential has'}`,
    { hint: 'copy it again, without anything around it' },
  )
}

type Outcome =
  | { readonly answer: ServiceAnswer }
  | {
      readonly failure: CliError /** Whether the same request may be sent again. */
      readonly repeatable: boolean
    }

async function attempt(
  { method, url, body, asked }: Asked,
  credential: Credential,
  signal: AbortSignal,
  http: HttpTransport,
  context: Context,
  settings: Settings,
): Promise<Outcome> {
  const request: HttpRequest = {
    method,
    url,
    headers: {
      accept: 'application/json',
      authorization: `Bearer ${credential.value}`,
      'user-agent': userAgent(context),
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    },
    ...(body === undefined ? {} : { body }),
    timeoutMs: settings.httpTimeoutMs,
    signal,
  }
  const idempotent = method === 'GET'
  let response: HttpResponse
  try {
    response = await http.send(request)
    if (response.status >= 200 && response.status < 300) {
      const text = await readBody(response, LONGEST_ANSWER)
      return {
        answer: { status: response.status, body: parseObject(response.status, text, [credential.value]) },
      }
    }
    // The status says enough where the words behind it do not arrive.
    const text = await readBody(response, LONGEST_REFUSAL).catch(() => ({ text: '', cut: true }))
    signal.throwIfAborted()
    const failure = refusal(response, text, asked, credential, settings.profile.value, context.clock.now())
    return { failure, repeatable: mayRepeat(response, idempotent, context.clock.now()) }
  } catch (error) {
    if (signal.aborted) throw signal.reason
    if (!(error instanceof TransportError)) throw error
    return { failure: unreachable(error, url, method), repeatable: maySendAgain(error, idempotent) }
  }
}

/** Whether a request that got no answer may be sent again. */
function maySendAgain({ kind, sent }: TransportError, idempotent: boolean): boolean {
  // Abandoned without the signal: the program is ending.
  if (kind === 'aborted') return false
  return sent === 'no' ? kind !== 'tls' : idempotent && kind !== 'protocol'
}

function mayRepeat(response: HttpResponse, idempotent: boolean, now: number): boolean {
  if (idempotent) return response.status === 429 || response.status >= 500
  // Nothing was done: the service says to come back.
  const invited = parseRetryAfter(response.headers['retry-after'], now) !== undefined
  return invited && (response.status === 429 || response.status === 503)
}

/** The error for an exchange that brought no answer: exit 7. */
export function unreachable(error: TransportError, url: URL, method: string): CliError {
  const code = error.kind === 'timeout' ? 'timeout' : 'unreachable'
  const hints: Partial<Record<TransportError['kind'], string>> = {
    lookup: 'check the base URL and the network',
    connect: 'check the base URL, and that the service runs',
    tls: 'for a private authority, set NODE_EXTRA_CA_CERTS to its certificate file',
    proxy: 'check HTTPS_PROXY, HTTP_PROXY and NO_PROXY',
    timeout: 'try again, or give it longer with --http-timeout SECONDS',
  }
  const hint =
    method === 'POST' && error.sent === 'maybe'
      ? 'the service may have acted on the request: look at the state before you send it again'
      : (hints[error.kind] ?? 'check the network and any proxy in between')
  return new CliError(code, Exit.unavailable, `no answer from ${url.origin}: ${error.message}`, {
    hint,
    cause: error,
  })
}
