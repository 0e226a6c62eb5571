import type { HttpResponse, TransportError } from '../context.ts'
import { CliError, type ErrorCode } from '../errors.ts'
import { issuerOf, maskUrl } from '../settings/addresses.ts'
import { withProfile } from '../settings/profiles.ts'
import type { Io } from '../terminal/io.ts'
import { redact } from '../terminal/redact.ts'
import { clip, excerpt, sanitizeLine } from '../terminal/sanitize.ts'
import { formatDuration, relativeTime } from '../terminal/time.ts'
import { isTemporaryStatus, parseRetryAfter } from './retry.ts'
import type { Credential } from './types.ts'

/** More of a response than this is not searched for something to quote. */
const MAX_QUOTED = 64 * 1024
/** Far deeper than any object of the interface; JavaScript's own functions fail at some thousands. */
const MAX_DEPTH = 100

/** The error for a response that doesn't match the interface: exit 7. */
export function unexpectedAnswer(what: string, status?: number): CliError {
  return new CliError('unexpected_answer', `unexpected response: ${what}`, {
    status,
    hint: 'check the base URL and any proxy in between',
  })
}

/** The answer is about another thing than the one asked for: another try gets no better one. */
export class MismatchError extends CliError {
  constructor(what: string) {
    const { code, message, hint } = unexpectedAnswer(what)
    super(code, message, { hint })
  }
}

/** Parses a JSON object; undefined if the text is not one. */
export function parseObject(text: string): Record<string, unknown> | undefined {
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
 * Reads the object in a 2xx response.
 *
 * @param secrets what no message may quote
 * @throws CliError exit 7; what ended the body too early
 */
export function readJsonObject(
  { status, headers, text, brokenBy }: HttpResponse,
  secrets: readonly string[],
): Record<string, unknown> {
  if (brokenBy !== undefined) throw brokenBy
  if (text.trim() === '') throw unexpectedAnswer('it is empty', status)
  const object = parseObject(text)
  if (object === undefined) {
    const start = excerpt(redact(text.slice(0, MAX_QUOTED), secrets), 120)
    throw unexpectedAnswer(unreadableBody(headers, text) ?? `it is not a JSON object: ${start}`, status)
  }
  if (isDeeperThan(MAX_DEPTH, object))
    throw unexpectedAnswer(`it has objects inside of each other, over ${MAX_DEPTH} levels deep`, status)
  return object
}

/** Why a body can't be read as text: compressed or binary, as a sentence; undefined for text. */
function unreadableBody(headers: HttpResponse['headers'], text: string): string | undefined {
  const encoding = text.startsWith('\u001f\ufffd') ? 'gzip' : headers['content-encoding']
  if (encoding !== undefined && encoding !== 'identity') return `it is compressed with ${clip(encoding, 20)}`
  return /[\0-\b\u000e-\u001a\ufffd]/.test(text.slice(0, MAX_QUOTED)) ? 'it is binary data' : undefined
}

function isDeeperThan(levels: number, value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false
  return levels === 0 || Object.values(value).some((inside) => isDeeperThan(levels - 1, inside))
}

/**
 * Checks the fields of an object: each is null, is missing, or is of the example's type.
 *
 * @param where names the object in the message
 * @param anyOf without all of these it is another object, such as an error with the status 200
 * @throws CliError exit 7 that names the expected and the actual type
 */
export function checkFields(
  object: Record<string, unknown>,
  example: object,
  where: string,
  anyOf?: readonly string[],
): void {
  if (anyOf?.every((name) => (object[name] ?? null) === null))
    throw unexpectedAnswer(`${where} has none of the fields ${anyOf.join(', ')}`)
  for (const [name, value] of Object.entries(example)) {
    const [expected, actual] = [nameOfType(value), nameOfType(object[name] ?? null)]
    if (actual === 'null') continue
    if (actual !== expected)
      throw unexpectedAnswer(`"${name}" of ${where} should be ${expected}, but is ${actual}`)
    if (actual === 'an object')
      checkFields(object[name] as Record<string, unknown>, value, `the ${name} of ${where}`)
  }
}

export function nameOfType(value: unknown): string {
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'an array'
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`
}

/**
 * What the body of an error says: the name of the error, and for a person its message with the name, either alone, or "". Of a
 * proxy's page an excerpt.
 *
 * @param body the JSON in the text, if it is an object
 * @param clean prepares each text for a message, such as by leaving out secrets
 */
export function parseProblem(
  body: Record<string, unknown> | undefined,
  { headers, text: whole }: Pick<HttpResponse, 'headers' | 'text'>,
  clean: (text: string) => string,
): { readonly name?: string | undefined; readonly details: string } {
  if (body === undefined) {
    // What begins like JSON may contain tokens.
    const isPage = !/^\s*[{[]/.test(whole)
    const start = isPage ? excerpt(clean(whole.slice(0, MAX_QUOTED)), 160) : ''
    return { details: unreadableBody(headers, whole) ?? start }
  }
  // Some services nest the error: {"error":{"name","message"}}.
  const fields = isObject(body['error']) ? body['error'] : body
  const text = (...names: readonly string[]) => {
    // A validation may fail for several reasons.
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
 * The error for a response whose status is not 2xx, with its exit code. If the body doesn't arrive, the status is enough.
 *
 * @param base the base URL
 */
export function responseError(
  response: HttpResponse,
  { method, path }: { readonly method: string; readonly path: string },
  base: URL,
  credential: Credential,
  { clock, settings }: Pick<Io, 'clock' | 'settings'>,
): CliError {
  const { status, headers, text } = response
  const object = parseObject(text)
  const { name = '', details } = parseProblem(object, response, (said) => redact(said, [credential.value]))
  const retryAfterMs = parseRetryAfter(headers['retry-after'], clock.now())
  // Scripts compare codes: of a refusal the service's own, if it looks like one.
  const isNamed = status !== 401 && !isTemporaryStatus(status) && /^[a-z][a-z0-9_]{1,63}$/.test(name)
  const options = { status, retryAfterMs, shownCode: isNamed ? name : undefined }
  const failure = (code: ErrorCode, what: string, hint?: string) =>
    new CliError(code, /\w/.test(details) ? `${what}: ${details}` : what, { ...options, hint })

  if (status < 400) return redirectError(response, `${method} ${path}`, [credential.value])
  const sent = credential.description
  if (status === 401) {
    const what = `the service refused ${sent} (401)`
    const login = withProfile('mailclaim login', settings.profile.value)
    if (credential.kind !== 'api_key') return failure('credential_refused', what, `sign in again: ${login}`)
    const end = readJwtExpiry(credential.value)
    if (end === undefined) return failure('credential_refused', what, 'check the API key')
    const when = `${end <= clock.now() ? 'expired' : 'expires'} ${relativeTime(end, clock.now())}`
    const hint = 'get another where the session is: mailclaim auth token'
    return failure('credential_refused', `${what}, an access token that ${when}`, hint)
  }
  if (status === 403) {
    // A reason of the service's own is better than a guess.
    const hint = details === '' ? `${sent} may lack a scope or belong to another team` : undefined
    return failure('forbidden', 'the service does not allow this (403)', hint)
  }
  if (status === 404 || status === 410) {
    // What the service says of something new is better than a guess.
    const isExplained = method === 'POST' && object !== undefined && details !== ''
    // Lists have two words, as `/oauth/grants`; what has an id has more.
    const ofId = path.split('/').length > 3 ? 'the id and its team, and ' : ''
    const hint = `check ${ofId}that ${issuerOf(base)} is the base URL of the service`
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
 * The error for a redirect (RFC 9110 section 15.4), which no request of this program follows: exit 7. A base URL with the wrong host
 * is its usual cause.
 *
 * @param request its method and path
 * @param secrets that the message leaves out
 */
export function redirectError(response: HttpResponse, request: string, secrets: readonly string[]): CliError {
  const { status, headers } = response
  const target = sanitizeLine(maskUrl(redact(headers['location'] ?? '', secrets)).slice(0, 300))
  const what = `${request} was answered with a redirect (${status})${target && ` to ${target}`}, which is not followed`
  const hint = "set the base URL to the service's actual address"
  return new CliError('redirected', what, { status, hint })
}

/** When an access token ends, in milliseconds; undefined of what isn't a JWT that says so (RFC 7519 section 4.1.4). */
export function readJwtExpiry(text: string): number | undefined {
  const [, claims = '', signature] = text.split('.')
  const end = parseObject(Buffer.from(claims, 'base64url').toString())?.['exp']
  return signature !== undefined && typeof end === 'number' ? end * 1000 : undefined
}

/** Remedies that don't depend on the request. */
export const TRANSPORT_HINTS: Partial<Record<TransportError['kind'], string>> = {
  memory: 'raise the limit on address space (ulimit -v) and run the command again',
  descriptors: 'raise the limit on open files (ulimit -n) and run the command again',
  aborted: 'run the command again; if mailclaim was just removed or updated, install it again',
  untrusted: 'for a private certificate authority, set NODE_EXTRA_CA_CERTS to its certificate file',
  dated: "check this machine's clock, and when the certificate is valid",
  proxy: 'check HTTPS_PROXY and NO_PROXY',
  timeout: 'try again, or allow more time with --http-timeout SECONDS',
}

/** The error for a request without a response: exit 7. */
export function transportFailure(error: TransportError, url: URL, method: string): CliError {
  const isLost = method === 'POST' && error.sent === 'maybe'
  const hint = isLost ? MAY_BE_DONE : (TRANSPORT_HINTS[error.kind] ?? 'check the base URL and the network')
  const code = error.kind === 'timeout' ? 'timeout' : 'unreachable'
  const message = `no response from ${url.origin}: ${error.message}`
  return new CliError(code, message, { hint, cause: error })
}
