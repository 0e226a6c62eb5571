import type { HttpResponse } from '../context.ts'
import { CliError, Exit } from '../errors.ts'
import { loginCommand } from '../settings/login-command.ts'
import { formatDuration } from '../terminal/duration.ts'
import { redact } from '../terminal/redact.ts'
import { excerpt, sanitizeLine } from '../terminal/sanitize.ts'
import type { Credential } from './authorizer.ts'
import { isTemporary, parseRetryAfter } from './retry.ts'

/** Far more than a page of 100 items. */
export const MAX_BODY_BYTES = 8 * 1024 * 1024
/** Also far more. Parsed values take many times the memory of their text: empty objects twenty times, nested lists fifty. */
const MAX_VALUES = 100_000
/** Also far more. JSON.stringify calls itself for each level. */
const MAX_DEPTH = 500
/** Only this much of an error response is read. */
export const MAX_ERROR_BODY_BYTES = 64 * 1024

export interface Body {
  readonly text: string
  /** Whether the body is longer than what was read. */
  readonly isTruncated: boolean
}

/** Reads a body up to `maxBytes`; if there is more, closes the connection. */
export async function readBody(response: HttpResponse, maxBytes: number): Promise<Body> {
  const pieces: Uint8Array[] = []
  let length = 0
  for await (const piece of response.body) {
    pieces.push(piece)
    length += piece.length
    if (length > maxBytes) break
  }
  const text = Buffer.concat(pieces).toString('utf8')
  return { text: text.startsWith('\ufeff') ? text.slice(1) : text, isTruncated: length > maxBytes }
}

/** The error for a response that doesn't match the interface: exit 7. */
export function unexpectedAnswer(what: string, status?: number): CliError {
  return new CliError('unexpected_answer', Exit.unavailable, `unexpected response: ${what}`, {
    status,
    hint: 'check the base URL and any proxy in between',
  })
}

/**
 * Parses the object in a 2xx response.
 *
 * @param secrets what no message may quote
 * @throws CliError exit 7
 */
export function parseObject(
  status: number,
  body: Body,
  secrets: readonly string[] = [],
): Record<string, unknown> {
  const { text, isTruncated } = body
  if (isTruncated) throw unexpectedAnswer(`it is larger than ${MAX_BODY_BYTES / 1024 / 1024} MiB`, status)
  if (text.trim() === '') throw unexpectedAnswer('it is empty', status)
  const hasMore = (separators: string[], limit: number) =>
    separators.some((separator) => occursMoreOften(text, separator, limit))
  // A value takes at least two characters, and every one but the first follows one of these.
  if (text.length > 2 * MAX_VALUES && hasMore(['{', '[', ','], MAX_VALUES))
    throw unexpectedAnswer(`it contains more than ${MAX_VALUES} values`, status)
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    const start = redact(text.slice(0, MAX_ERROR_BODY_BYTES), secrets)
    throw unexpectedAnswer(`it is not JSON: ${excerpt(start, 120)}`, status)
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw unexpectedAnswer(`expected a JSON object, got ${nameOfType(value)}`, status)
  }
  // Every level begins with one of these.
  if (hasMore(['{', '['], MAX_DEPTH / 2) && isDeeperThan(MAX_DEPTH, value))
    throw unexpectedAnswer('it is nested too deeply', status)
  return value as Record<string, unknown>
}

/** Level by level, because a function that calls itself would run out of stack. */
function isDeeperThan(limit: number, value: object): boolean {
  let level: object[] = [value]
  for (let depth = 0; depth < limit; depth++) {
    level = level.flatMap((one) =>
      Object.values(one).filter((below): below is object => typeof below === 'object' && below !== null),
    )
    if (level.length === 0) return false
  }
  return true
}

function occursMoreOften(text: string, character: string, limit: number): boolean {
  let count = 0
  let at = text.indexOf(character)
  while (at >= 0 && count++ < limit) at = text.indexOf(character, at + 1)
  return at >= 0
}

type FieldType = 'string' | 'object'

/**
 * Checks the fields that the program uses: each has its type, is null or is missing.
 *
 * @param where names the object in the message
 * @param anyOf without all of these it is another object, such as an error with the status 200
 * @throws CliError exit 7 that names the expected and the actual type
 */
export function checkFields(
  object: Record<string, unknown>,
  fields: Readonly<Record<string, FieldType>>,
  where: string,
  anyOf?: readonly string[],
): void {
  if (anyOf?.every((name) => (object[name] ?? null) === null))
    throw unexpectedAnswer(`${where} has none of the fields ${anyOf.join(', ')}`)
  for (const [name, type] of Object.entries(fields)) {
    const value = object[name]
    if (value === undefined || value === null) continue
    const actual = nameOfType(value)
    if (actual !== TYPE_NAMES[type]) {
      throw unexpectedAnswer(`"${name}" of ${where} should be ${TYPE_NAMES[type]}, but is ${actual}`)
    }
  }
}

const TYPE_NAMES: Readonly<Record<FieldType, string>> = { string: 'a string', object: 'an object' }

export function nameOfType(value: unknown): string {
  if (value === null) return 'null'
  if (value === undefined) return 'missing'
  if (Array.isArray(value)) return 'an array'
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`
}

/** The error that a response describes. */
interface ServiceProblem {
  readonly name: string | undefined
  /** What the response says, for a person; "" for nothing. */
  readonly details: string
  /** Whether the service names a reason, rather than a proxy. */
  readonly isExplained: boolean
}

/** @param secrets what was sent: a service that quotes it must not bring it into a message */
function parseProblem(body: Body, secrets: readonly string[]): ServiceProblem {
  let value: unknown
  try {
    value = JSON.parse(body.text)
  } catch {
    // Nothing, or the page of a proxy.
  }
  const fields = (typeof value === 'object' && value !== null ? value : {}) as Record<string, unknown>
  // Some services nest the error: {"error":{"name","message"}}.
  const inner = (
    typeof fields['error'] === 'object' && fields['error'] !== null ? fields['error'] : fields
  ) as Record<string, unknown>
  const clean = (text: string, length: number) => excerpt(redact(text, secrets), length)
  const text = (...names: readonly string[]) => {
    // A validation may fail for several reasons.
    const texts = names.map((name) =>
      [inner[name]]
        .flat()
        .filter((one) => typeof one === 'string')
        .join('; '),
    )
    const found = texts.find((one) => one.trim() !== '')
    return found === undefined ? undefined : clean(found, 300)
  }
  const name = text('name', 'code', 'error', 'type')
  const message = text('message', 'error_description', 'detail', 'title', 'errors')
  const isExplained = (name ?? message) !== undefined
  if (message !== undefined)
    return { name, details: name === undefined ? message : `${message} (${name})`, isExplained }
  const whole = clean(body.text, 160)
  return { name, details: /\w/.test(whole) ? whole : '', isExplained }
}

/** What was asked, for the error. */
export interface AskedOperation {
  /** "GET /contacts/imports" */
  readonly operation: string
  /** Whether the path has an id in it, which may be wrong. */
  readonly namesItem: boolean
  /** What to do after a 404, if that is something else than to check the id. */
  readonly notFoundHint: string | undefined
  /** What to do if the service may have done it before it failed. */
  readonly lostHint?: string | undefined
  /** The base URL. */
  readonly base: string
  readonly credential: Credential
  readonly profile: string
}

/** Names of errors that are about the credential and not about what was asked. */
const ABOUT_CREDENTIAL = /scope|permission|access_denied|api_key|token|credential|unauthori[sz]ed/i

/** The error for a response whose status is not 2xx, with its exit code. */
export function responseError(
  response: HttpResponse,
  body: Body,
  request: AskedOperation,
  now: number,
): CliError {
  const { status } = response
  const { operation, credential } = request
  const secrets = [credential.value]
  if (status < 400) return redirectError(response, operation, secrets)
  const { name, details, isExplained } = parseProblem(body, secrets)
  const suffix = details === '' ? '' : `: ${details}`
  const code = name !== undefined && /^[a-z][a-z0-9_]{1,63}$/.test(name) ? name : undefined
  const sent = describeCredential(credential)

  if (status === 401) {
    const login = loginCommand({ profile: request.profile, store: credential.store })
    return new CliError(
      'credential_refused',
      Exit.notSignedIn,
      `the service refused ${sent} (401)${suffix}`,
      {
        status,
        hint:
          credential.kind === 'api_key'
            ? `check the API key; to sign in instead: ${login}`
            : `sign in again: ${login}`,
      },
    )
  }
  if (status === 403) {
    // A reason of the service's own is better than a guess.
    const isAboutOther = details !== '' && details !== name && !ABOUT_CREDENTIAL.test(name ?? '')
    return new CliError(code ?? 'forbidden', Exit.refused, `the service does not allow this (403)${suffix}`, {
      status,
      hint: isAboutOther ? undefined : `${sent} may lack a scope or belong to another team`,
    })
  }
  if (status === 404) {
    return new CliError(code ?? 'not_found', Exit.notFound, `not found: ${operation}${suffix}`, {
      status,
      hint:
        request.notFoundHint ??
        (request.namesItem
          ? 'check the id, and that it belongs to the team of this profile'
          : isExplained && operation.startsWith('POST')
            ? undefined
            : `check the base URL: ${request.base} may not be the address of the service`),
    })
  }
  if (status === 429) return rateLimitError(response, suffix, now)
  if (isTemporary(status)) {
    const retryAfterMs = parseRetryAfter(response.headers['retry-after'], now)
    return new CliError('service_unavailable', Exit.unavailable, `the service failed (${status})${suffix}`, {
      status,
      hint: retryAfterHint(retryAfterMs) ?? request.lostHint ?? 'try again in a moment',
      retryAfterMs,
    })
  }
  return new CliError(
    code ?? 'refused',
    Exit.refused,
    `the service refused the request (${status})${suffix}`,
    { status },
  )
}

function rateLimitError(response: HttpResponse, suffix: string, now: number): CliError {
  const retryAfterMs = parseRetryAfter(response.headers['retry-after'], now)
  return new CliError('rate_limited', Exit.unavailable, `too many requests (429)${suffix}`, {
    status: 429,
    hint: retryAfterHint(retryAfterMs) ?? 'try again in a while',
    retryAfterMs,
  })
}

function retryAfterHint(ms: number | undefined): string | undefined {
  return ms === undefined
    ? undefined
    : `the service asks to wait ${formatDuration(ms / 1000)}; try again then`
}

/** A redirect, or a status that answers no request of this program, such as 304. */
function redirectError(response: HttpResponse, operation: string, secrets: readonly string[]): CliError {
  const { location } = response.headers
  if (location === undefined && ![301, 302, 303, 307, 308].includes(response.status))
    return unexpectedAnswer(`HTTP status ${response.status} to ${operation}`, response.status)
  const target = sanitizeLine(redact(location ?? '', secrets).slice(0, 300))
  return new CliError(
    'redirected',
    Exit.unavailable,
    `${operation} was redirected (${response.status})${target === '' ? '' : ` to ${target}`}; redirects are not followed, to keep the credential safe`,
    { status: response.status, hint: "set the base URL to the service's actual address" },
  )
}

export function describeCredential(credential: Credential): string {
  return credential.description ?? (credential.kind === 'api_key' ? 'the API key' : 'the access token')
}
