import type { HttpResponse, HttpTransportError } from '../context.ts'
import { CliError, type ErrorCode } from '../errors.ts'
import { maskUrlSecrets, normalizeUrl } from '../settings/addresses.ts'
import { addProfileFlag } from '../settings/profiles.ts'
import type { Io } from '../terminal/io.ts'
import { redact } from '../terminal/redact.ts'
import { clip, excerpt, sanitizeLine } from '../terminal/sanitize.ts'
import { formatDuration, formatRelativeTime } from '../terminal/time.ts'
import { isTemporaryStatus, parseRetryAfterMs } from './retry.ts'
import type { Credential } from './types.ts'

/** Maximum number of characters of a response body that are examined for an excerpt or for binary data. */
const MAX_QUOTED_LENGTH = 64 * 1024
/**
 * Maximum nesting of a JSON response: more than the service sends, and less than the thousands of levels at which `JSON.stringify`
 * overflows the stack.
 */
const MAX_DEPTH = 100

/**
 * Creates the error for a response that isn't as documented: `unexpected_answer`, exit 7.
 *
 * @param problem end of the message, such as "it is empty"
 */
export function invalidResponseError(problem: string, status?: number): CliError {
  return new CliError('unexpected_answer', `unexpected response: ${problem}`, {
    status,
    hint: 'check the base URL and any proxy in between',
  })
}

/**
 * Error for a response about another resource than the requested one. `followResource` stops polling after it, because a retry
 * would get the same response.
 */
export class WrongResourceError extends CliError {
  constructor(problem: string) {
    const { code, message, hint } = invalidResponseError(problem)
    super(code, message, { hint })
  }
}

export function parseJsonObject(text: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return isObject(value) ? value : undefined
  } catch {
    return undefined
  }
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/**
 * Parses the JSON object in a 2xx response.
 *
 * @param secrets texts that messages leave out
 * @throws CliError `unexpected_answer`, exit 7, for a body that isn't a JSON object or is nested too deep; the error that cut the
 *   body off (`brokenBy`)
 */
export function requireJsonBody(
  { status, headers, text, brokenBy }: HttpResponse,
  secrets: readonly string[],
): Record<string, unknown> {
  if (brokenBy !== undefined) throw brokenBy
  if (text.trim() === '') throw invalidResponseError('it is empty', status)
  const object = parseJsonObject(text)
  if (object === undefined) {
    const start = excerpt(redact(text.slice(0, MAX_QUOTED_LENGTH), secrets), 120)
    throw invalidResponseError(unreadableBody(headers, text) ?? `it is not a JSON object: ${start}`, status)
  }
  if (isDeeperThan(MAX_DEPTH, object))
    throw invalidResponseError(`it has objects inside of each other, over ${MAX_DEPTH} levels deep`, status)
  return object
}

/** Returns why a body isn't readable text, such as "it is binary data"; undefined for text. */
function unreadableBody(headers: HttpResponse['headers'], text: string): string | undefined {
  const encoding = text.startsWith('\u001f\ufffd') ? 'gzip' : headers['content-encoding']
  if (encoding !== undefined && encoding !== 'identity') return `it is compressed with ${clip(encoding, 20)}`
  return /[\0-\b\u000e-\u001a\ufffd]/.test(text.slice(0, MAX_QUOTED_LENGTH)) ? 'it is binary data' : undefined
}

function isDeeperThan(levels: number, value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false
  return levels === 0 || Object.values(value).some((inside) => isDeeperThan(levels - 1, inside))
}

/**
 * Checks that each field of a shape, also in nested objects, has the same type in the object, or is null or missing.
 *
 * @param where name of the object in the message
 * @param anyOf fields of which at least one must be present and not null; otherwise an error sent with status 200 would pass
 * @throws CliError `unexpected_answer`, exit 7
 */
export function requireFieldTypes(
  object: Record<string, unknown>,
  shape: object,
  where: string,
  anyOf?: readonly string[],
): void {
  if (anyOf?.every((name) => (object[name] ?? null) === null))
    throw invalidResponseError(`${where} has none of the fields ${anyOf.join(', ')}`)
  for (const [name, value] of Object.entries(shape)) {
    const [expected, actual] = [describeJsonType(value), describeJsonType(object[name] ?? null)]
    if (actual === 'null') continue
    if (actual !== expected)
      throw invalidResponseError(`"${name}" of ${where} should be ${expected}, but is ${actual}`)
    if (actual === 'an object')
      requireFieldTypes(object[name] as Record<string, unknown>, value, `the ${name} of ${where}`)
  }
}

/** Returns a JSON value's type for messages, such as "an array". */
export function describeJsonType(value: unknown): string {
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'an array'
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`
}

/**
 * Extracts name and message of the error in a response body. `details` is text for the user: message and name, as far as present,
 * or without a JSON object an excerpt of the body or why it is unreadable; may be empty.
 *
 * @param body the response's JSON object, or the readable part of a truncated one; undefined for any other text
 * @param clean removes secrets from a text
 */
export function parseErrorBody(
  body: Record<string, unknown> | undefined,
  { headers, text: whole }: Pick<HttpResponse, 'headers' | 'text'>,
  clean: (text: string) => string,
): { readonly name?: string | undefined; readonly details: string } {
  if (body === undefined) {
    // Text that begins like JSON may contain tokens, so quote only other text.
    const isPage = !/^\s*[{[]/.test(whole)
    const start = isPage ? excerpt(clean(whole.slice(0, MAX_QUOTED_LENGTH)), 160) : ''
    return { details: unreadableBody(headers, whole) ?? start }
  }
  // Some services nest the error, {"error":{"name","message"}}, so read the fields of `error` if it is an object.
  const fields = isObject(body['error']) ? body['error'] : body
  const text = (...names: readonly string[]) => {
    // A message may be an array of texts, one per failed validation, so join them.
    const texts = names.map((name) => [fields[name]].flat().filter((one) => typeof one === 'string'))
    const found = texts.map((all) => all.join('; ')).find((all) => all.trim() !== '')
    return found === undefined ? undefined : excerpt(clean(found), 300)
  }
  const name = text('name', 'code', 'error', 'type')
  const message = text('message', 'error_description', 'detail', 'title', 'errors')
  if (message === undefined) return { name, details: name ?? '' }
  return { name, details: name === undefined ? message : `${message} (${name})` }
}

const MAY_BE_DONE = 'the service may have acted on the request: check before you send it again'

/**
 * Creates the error for a response with a status other than 2xx.
 *
 * @param base base URL of the service, for hints
 * @param credential the credential that was sent; the message may contain its `description`, but not its `value`
 */
export function unsuccessfulResponseError(
  response: HttpResponse,
  { method, path }: { readonly method: string; readonly path: string },
  base: URL,
  credential: Credential,
  { clock, settings }: Pick<Io, 'clock' | 'settings'>,
): CliError {
  const { status, headers, text } = response
  const object = parseJsonObject(text)
  const { name = '', details } = parseErrorBody(object, response, (part) => redact(part, [credential.value]))
  const retryAfterMs = parseRetryAfterMs(headers['retry-after'], clock.now())
  // Scripts compare the code in JSON errors, so a permanent refusal other than 401 gets the service's own error name, if that looks
  // like a code.
  const isNamed = status !== 401 && !isTemporaryStatus(status) && /^[a-z][a-z0-9_]{1,63}$/.test(name)
  const options = { status, retryAfterMs, shownCode: isNamed ? name : undefined }
  const failure = (code: ErrorCode, what: string, hint?: string) =>
    new CliError(code, /\w/.test(details) ? `${what}: ${details}` : what, { ...options, hint })

  if (status < 400) return redirectError(response, `${method} ${path}`, [credential.value])
  const sent = credential.description
  if (status === 401) {
    const what = `the service refused ${sent} (401)`
    const login = addProfileFlag('mailclaim login', settings.profile.value)
    if (credential.kind !== 'api_key') return failure('credential_refused', what, `sign in again: ${login}`)
    const end = readJwtExpiryMs(credential.value)
    if (end === undefined) return failure('credential_refused', what, 'check the API key')
    const when = `${end <= clock.now() ? 'expired' : 'expires'} ${formatRelativeTime(end, clock.now())}`
    const hint = 'get another where the session is: mailclaim auth token'
    return failure('credential_refused', `${what}, an access token that ${when}`, hint)
  }
  if (status === 403) {
    // The hint guesses a cause, so omit it if the service names a reason.
    const hint = details === '' ? `${sent} may lack a scope or belong to another team` : undefined
    return failure('forbidden', 'the service does not allow this (403)', hint)
  }
  if (status === 404 || status === 410) {
    // Omit the hint if the service explains the refusal of a POST: that the base URL is wrong would only be a guess.
    const isExplained = method === 'POST' && object !== undefined && details !== ''
    // Mention an id only if the path contains one: a path of two segments, such as `/oauth/grants`, doesn't.
    const ofId = path.split('/').length > 3 ? 'the id and its team, and ' : ''
    const hint = `check ${ofId}that ${normalizeUrl(base)} is the base URL of the service`
    const what = `not found: ${method} ${path}`
    return failure('not_found', what, isExplained ? undefined : hint)
  }
  if (!isTemporaryStatus(status)) return failure('refused', `the service refused the request (${status})`)
  const wait =
    retryAfterMs && `the service asks to wait ${formatDuration(retryAfterMs / 1000)}; try again then`
  const hint = wait || (method === 'POST' && status !== 429 ? MAY_BE_DONE : 'try again in a while')
  return status === 429
    ? failure('rate_limited', 'too many requests (429)', hint)
    : failure('service_unavailable', `the service failed (${status})`, hint)
}

export const isRedirect = ({ status }: HttpResponse) => status >= 300 && status < 400

/**
 * Creates the error `redirected`, exit 7, for a redirect (RFC 9110 section 15.4), which this program never follows.
 *
 * @param request method and path of the request
 * @param secrets texts that the message leaves out
 */
export function redirectError(response: HttpResponse, request: string, secrets: readonly string[]): CliError {
  const { status, headers } = response
  const target = sanitizeLine(maskUrlSecrets(redact(headers['location'] ?? '', secrets)).slice(0, 300))
  const what = `${request} was answered with a redirect (${status})${target && ` to ${target}`}, which is not followed`
  const hint = "set the base URL to the service's actual address"
  return new CliError('redirected', what, { status, hint })
}

/**
 * Returns the expiry of a JWT in milliseconds since 1970 (`exp`, RFC 7519 section 4.1.4); undefined for a text that isn't a JWT
 * with `exp`.
 */
export function readJwtExpiryMs(text: string): number | undefined {
  const [, claims = '', signature] = text.split('.')
  const end = parseJsonObject(Buffer.from(claims, 'base64url').toString())?.['exp']
  return signature !== undefined && typeof end === 'number' ? end * 1000 : undefined
}

/** Hints by kind of transport error. For a kind without an entry, the caller gives its own hint. */
export const TRANSPORT_HINTS: Partial<Record<HttpTransportError['kind'], string>> = {
  memory: 'raise the limit on address space (ulimit -v) and run the command again',
  descriptors: 'raise the limit on open files (ulimit -n) and run the command again',
  aborted: 'run the command again; if mailclaim was just removed or updated, install it again',
  untrusted: 'for a private certificate authority, set NODE_EXTRA_CA_CERTS to its certificate file',
  dated: "check this machine's clock, and when the certificate is valid",
  proxy: 'check HTTPS_PROXY and NO_PROXY',
  timeout: 'try again, or allow more time with --http-timeout SECONDS',
}

/**
 * Creates the error for a request without a complete response: `timeout` or `unreachable`, exit 7. If a POST may have been sent,
 * the hint warns that the service may have acted on it.
 */
export function noResponseError(error: HttpTransportError, url: URL, method: string): CliError {
  const isLost = method === 'POST' && error.sent === 'maybe'
  const hint = isLost ? MAY_BE_DONE : (TRANSPORT_HINTS[error.kind] ?? 'check the base URL and the network')
  const code = error.kind === 'timeout' ? 'timeout' : 'unreachable'
  const message = `no response from ${url.origin}: ${error.message}`
  return new CliError(code, message, { hint, cause: error })
}
