import type { HttpResponse, TransportError } from '../context.ts'
import { CliError, Exit } from '../errors.ts'
import { loginCommand } from '../settings/profiles.ts'
import { redact } from '../terminal/redact.ts'
import { excerpt, sanitizeLine } from '../terminal/sanitize.ts'
import { formatDuration } from '../terminal/time.ts'
import type { Credential } from './authorizer.ts'
import { isTemporary, parseRetryAfter } from './retry.ts'

/** Far more than a page of 100 items. */
const MAX_BODY_BYTES = 8 * 1024 * 1024
/** Only this much of an error response is read. */
const MAX_ERROR_BODY_BYTES = 64 * 1024

/** The error for a response that doesn't match the interface: exit 7. */
export function unexpectedAnswer(what: string, status?: number): CliError {
  return new CliError('unexpected_answer', Exit.unavailable, `unexpected response: ${what}`, {
    status,
    hint: 'check the base URL and any proxy in between',
  })
}

/** The answer is about another thing than the one asked for: another try gets no better one. */
export class OtherAnswerError extends CliError {
  constructor(what: string) {
    const { code, exit, message, hint } = unexpectedAnswer(what)
    super(code, exit, message, { hint })
  }
}

/** Reads a body to its end, or to where it breaks off or gets too long: `brokenBy` then says why. */
export async function readText(
  { status, body }: HttpResponse,
  maxBytes: number,
): Promise<{ readonly text: string; readonly brokenBy: Error | undefined }> {
  const pieces: Uint8Array[] = []
  let size = 0
  let brokenBy: Error | undefined
  try {
    for await (const piece of body) {
      size += piece.length
      if (size > maxBytes) throw unexpectedAnswer(`it is larger than ${maxBytes / 1024 / 1024} MiB`, status)
      pieces.push(piece)
    }
  } catch (error) {
    brokenBy = error instanceof Error ? error : new Error(String(error))
  }
  return { text: new TextDecoder().decode(Buffer.concat(pieces)), brokenBy }
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
 * @throws CliError exit 7
 */
export async function readObject(
  response: HttpResponse,
  secrets: readonly string[],
): Promise<Record<string, unknown>> {
  const { status } = response
  const { text, brokenBy } = await readText(response, MAX_BODY_BYTES)
  if (brokenBy !== undefined) throw brokenBy
  if (text.trim() === '') throw unexpectedAnswer('it is empty', status)
  const object = parseObject(text)
  if (object !== undefined) return object
  const start = excerpt(redact(text.slice(0, MAX_ERROR_BODY_BYTES), secrets), 120)
  throw unexpectedAnswer(`it is not a JSON object: ${start}`, status)
}

const TYPE_NAMES = { string: 'a string', object: 'an object' } as const

/**
 * Checks the fields that the program uses: each has its type, is null or is missing.
 *
 * @param where names the object in the message
 * @param anyOf without all of these it is another object, such as an error with the status 200
 * @throws CliError exit 7 that names the expected and the actual type
 */
export function checkFields(
  object: Record<string, unknown>,
  fields: Readonly<Record<string, keyof typeof TYPE_NAMES>>,
  where: string,
  anyOf?: readonly string[],
): void {
  if (anyOf?.every((name) => (object[name] ?? null) === null))
    throw unexpectedAnswer(`${where} has none of the fields ${anyOf.join(', ')}`)
  for (const [name, type] of Object.entries(fields)) {
    const value = object[name]
    if (value === undefined || value === null) continue
    const actual = nameOfType(value)
    if (actual !== TYPE_NAMES[type])
      throw unexpectedAnswer(`"${name}" of ${where} should be ${TYPE_NAMES[type]}, but is ${actual}`)
  }
}

export function nameOfType(value: unknown): string {
  if (value === null) return 'null'
  if (value === undefined) return 'missing'
  if (Array.isArray(value)) return 'an array'
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`
}

export interface Problem {
  readonly name?: string | undefined
  readonly message?: string | undefined
  /** Both, for a person; "" for nothing. */
  readonly details: string
}

/**
 * What the JSON body of an error says: its message with the name of the error, either alone, or nothing.
 *
 * @param clean prepares each text for a message, such as by leaving out secrets
 */
export function parseProblem(body: Record<string, unknown>, clean: (text: string) => string): Problem {
  // Some services nest the error: {"error":{"name","message"}}.
  const fields = isObject(body['error']) ? body['error'] : body
  const text = (...names: readonly string[]) => {
    // A validation may fail for several reasons.
    const texts = names.map((name) =>
      [fields[name]]
        .flat()
        .filter((one) => typeof one === 'string')
        .join('; '),
    )
    const found = texts.find((one) => one.trim() !== '')
    return found === undefined ? undefined : excerpt(clean(found), 300)
  }
  const name = text('name', 'code', 'error', 'type')
  const message = text('message', 'error_description', 'detail', 'title', 'errors')
  if (message === undefined) return { name, details: name ?? '' }
  return { name, message, details: name === undefined ? message : `${message} (${name})` }
}

/** What was asked, for the error. */
export interface AskedOperation {
  readonly method: string
  readonly path: string
  /** The base URL. */
  readonly base: string
  readonly credential: Credential
  readonly profile: string
}

const MAY_BE_DONE = 'the service may have acted on the request: check before you send it again'

/** The error for a response whose status is not 2xx, with its exit code. If the body doesn't arrive, the status is enough. */
export async function responseError(
  response: HttpResponse,
  { method, path, base, credential, profile }: AskedOperation,
  now: number,
): Promise<CliError> {
  const { status, headers } = response
  const clean = (text: string) => redact(text, [credential.value])
  const { text } = await readText(response, MAX_ERROR_BODY_BYTES)
  const parsed = parseObject(text)
  const problem: Problem =
    parsed === undefined ? { details: excerpt(clean(text), 160) } : parseProblem(parsed, clean)
  const { name, details } = problem
  const retryAfterMs = parseRetryAfter(headers['retry-after'], now)
  const sent = describeCredential(credential)
  const own = name !== undefined && /^[a-z][a-z0-9_]{1,63}$/.test(name) ? name : undefined
  const refused = (code: string, exit: CliError['exit'], what: string, hint?: string) =>
    new CliError(code, exit, /\w/.test(details) ? `${what}: ${details}` : what, {
      status,
      hint,
      retryAfterMs,
    })

  if (status < 400) {
    const target = sanitizeLine(clean(headers['location'] ?? '').slice(0, 300))
    const what = `${method} ${path} was answered with a redirect (${status})${target && ` to ${target}`}, which is not followed`
    const hint = "set the base URL to the service's actual address"
    return new CliError('redirected', Exit.unavailable, what, { status, hint })
  }
  if (status === 401) {
    const hint =
      credential.kind === 'api_key' ? 'check the API key' : `sign in again: ${loginCommand({ profile })}`
    return refused('credential_refused', Exit.notSignedIn, `the service refused ${sent} (401)`, hint)
  }
  if (status === 403) {
    // A reason of the service's own is better than a guess.
    const hint = details === '' ? `${sent} may lack a scope or belong to another team` : undefined
    return refused(own ?? 'forbidden', Exit.refused, 'the service does not allow this (403)', hint)
  }
  if (status === 404 || status === 410) {
    // What the service says of something new is better than a guess.
    const isExplained = method === 'POST' && parsed !== undefined && details !== ''
    const hint = isExplained
      ? undefined
      : `check the id and its team, and that ${base} is the base URL of the service`
    return refused(own ?? 'not_found', Exit.notFound, `not found: ${method} ${path}`, hint)
  }
  if (isTemporary(status)) {
    const wait =
      retryAfterMs && `the service asks to wait ${formatDuration(retryAfterMs / 1000)}; try again then`
    const hint = wait || (method === 'POST' && status !== 429 ? MAY_BE_DONE : 'try again in a while')
    return status === 429
      ? refused('rate_limited', Exit.unavailable, 'too many requests (429)', hint)
      : refused('service_unavailable', Exit.unavailable, `the service failed (${status})`, hint)
  }
  return refused(own ?? 'refused', Exit.refused, `the service refused the request (${status})`)
}

export function describeCredential({ kind, description }: Credential): string {
  return description ?? (kind === 'api_key' ? 'the API key' : 'the access token')
}

const TRANSPORT_HINTS: Partial<Record<TransportError['kind'], string>> = {
  tls: 'for a private certificate authority, set NODE_EXTRA_CA_CERTS to its certificate file',
  proxy: 'check HTTPS_PROXY, HTTP_PROXY and NO_PROXY',
  timeout: 'try again, or allow more time with --http-timeout SECONDS',
}

/** The error for a request without a response: exit 7. */
export function transportFailure(error: TransportError, url: URL, method: string): CliError {
  const isLost = method === 'POST' && error.sent === 'maybe'
  const hint = isLost ? MAY_BE_DONE : (TRANSPORT_HINTS[error.kind] ?? 'check the base URL and the network')
  const code = error.kind === 'timeout' ? 'timeout' : 'unreachable'
  const message = `no response from ${url.origin}: ${error.message}`
  return new CliError(code, Exit.unavailable, message, { hint, cause: error })
}
