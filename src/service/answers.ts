import type { HttpResponse } from '../context.ts'
import { CliError, Exit } from '../errors.ts'
import { loginCommand } from '../settings/login-command.ts'
import { redact } from '../terminal/redact.ts'
import { excerpt, sanitizeLine } from '../terminal/sanitize.ts'
import type { Credential } from './authorizer.ts'
import { LONGEST_RETRY_AFTER_MS, parseRetryAfter, spokenSpan } from './retry.ts'

/** No page of 100 items is near this. */
export const LONGEST_ANSWER = 64 * 1024 * 1024
/** Of a refusal only the beginning is read. */
export const LONGEST_REFUSAL = 64 * 1024

export interface Body {
  readonly text: string
  /** Whether more came than was read. */
  readonly cut: boolean
}

/** Reads a body up to `most` bytes; what follows is not read, and the connection is closed. */
export async function readBody(response: HttpResponse, most: number): Promise<Body> {
  const pieces: Uint8Array[] = []
  let length = 0
  for await (const piece of response.body) {
    pieces.push(piece)
    length += piece.length
    if (length > most) break
  }
  const text = Buffer.concat(pieces).toString('utf8')
  return { text: text.startsWith('\ufeff') ? text.slice(1) : text, cut: length > most }
}

/** An answer that is not the interface's: exit 7. */
export function unexpectedAnswer(what: string, status?: number): CliError {
  return new CliError('unexpected_answer', Exit.unavailable, `the answer is not the interface's: ${what}`, {
    status,
    hint: 'check the base URL, and any proxy in between',
  })
}

/** The object that a 2xx answer holds. @param secrets what no message may quote. @throws CliError exit 7. */
export function parseObject(
  status: number,
  body: Body,
  secrets: readonly string[] = [],
): Record<string, unknown> {
  if (body.cut) throw unexpectedAnswer(`it is larger than ${LONGEST_ANSWER / 1024 / 1024} MiB`, status)
  if (body.text.trim() === '') throw unexpectedAnswer('it is empty', status)
  let value: unknown
  try {
    value = JSON.parse(body.text)
  } catch {
    throw unexpectedAnswer(`it is not JSON: ${excerpt(redact(body.text, secrets), 120)}`, status)
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw unexpectedAnswer(`expected a JSON object, got ${nameOfType(value)}`, status)
  }
  return value as Record<string, unknown>
}

type FieldType = 'string' | 'object'

/**
 * Checks the fields that the program goes by: each is of its type, null or missing.
 *
 * @param where what the object is, for the message.
 * @throws CliError exit 7 that names expected and seen.
 */
export function checkFields(
  object: Record<string, unknown>,
  fields: Readonly<Record<string, FieldType>>,
  where: string,
): void {
  for (const [name, type] of Object.entries(fields)) {
    const value = object[name]
    if (value === undefined || value === null) continue
    const seen = nameOfType(value)
    if (seen !== nameOf[type]) {
      throw unexpectedAnswer(`"${name}" of ${where} should be ${nameOf[type]}, but is ${seen}`)
    }
  }
}

const nameOf: Readonly<Record<FieldType, string>> = { string: 'a string', object: 'an object' }

export function nameOfType(value: unknown): string {
  if (value === null) return 'null'
  if (value === undefined) return 'missing'
  if (Array.isArray(value)) return 'an array'
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`
}

/** What a refusal says of itself: `message`, else the error's name, else a short piece of whatever came. */
interface Told {
  readonly name: string | undefined
  readonly message: string | undefined
}

/** @param secrets what was sent: a service that quotes it must not bring it into a message. */
function readRefusal(body: Body, secrets: readonly string[]): Told {
  let value: unknown
  try {
    value = JSON.parse(body.text)
  } catch {
    const text = excerpt(redact(body.text, secrets), 160)
    return { name: undefined, message: text === '' ? undefined : text }
  }
  const fields = (typeof value === 'object' && value !== null ? value : {}) as Record<string, unknown>
  // Some services nest what went wrong: {"error":{"name","message"}}.
  const inner = (
    typeof fields['error'] === 'object' && fields['error'] !== null ? fields['error'] : fields
  ) as Record<string, unknown>
  const text = (...names: readonly string[]) =>
    names
      .map((name) => inner[name])
      .find((found): found is string => typeof found === 'string' && found.trim() !== '')
  const shorten = (found: string | undefined) =>
    found === undefined ? undefined : excerpt(redact(found, secrets), 300)
  return {
    name: shorten(text('name', 'code', 'error', 'type')),
    message: shorten(text('message', 'error_description', 'detail', 'title')),
  }
}

/**
 * The error for an answer that is no success, as the exit codes say.
 *
 * @param asked what was asked for, "GET /contacts/imports", for the message.
 */
export function refusal(
  response: HttpResponse,
  body: Body,
  asked: string,
  credential: Credential | undefined,
  profile: string,
  now: number,
): CliError {
  const { status } = response
  const secrets = credential === undefined ? [] : [credential.value]
  if (status < 400) return redirected(response, asked, secrets)
  const told = readRefusal(body, secrets)
  const said = [told.message, told.name === undefined ? undefined : `(${told.name})`]
    .filter(Boolean)
    .join(' ')
  const colon = said === '' ? '' : `: ${said}`
  const code = told.name !== undefined && /^[a-z][a-z0-9_]{1,63}$/.test(told.name) ? told.name : undefined
  const sent = credential === undefined ? 'no credential' : spokenCredential(credential)

  if (status === 401) {
    const login = loginCommand({ profile, store: credential?.store })
    return new CliError('credential_refused', Exit.notSignedIn, `the service refused ${sent} (401)${colon}`, {
      status,
      hint:
        credential?.kind === 'api_key'
          ? `check the API key; to sign in instead: ${login}`
          : `sign in again: ${login}`,
    })
  }
  if (status === 403) {
    return new CliError(code ?? 'forbidden', Exit.refused, `the service does not allow this (403)${colon}`, {
      status,
      hint: `${sent} was sent: it may lack a scope or belong to another team`,
    })
  }
  if (status === 404) {
    return new CliError(code ?? 'not_found', Exit.notFound, `not found: ${asked}${colon}`, {
      status,
      hint: 'check the id, and that it belongs to the team of this profile',
    })
  }
  if (status === 429) return rateLimited(response, colon, now)
  if (status >= 500) {
    return new CliError('service_unavailable', Exit.unavailable, `the service failed (${status})${colon}`, {
      status,
      hint: 'try again in a moment',
      retryAfterMs: parseRetryAfter(response.headers['retry-after'], now),
    })
  }
  return new CliError(
    code ?? 'refused',
    Exit.refused,
    `the service refused the request (${status})${colon}`,
    { status },
  )
}

function rateLimited(response: HttpResponse, colon: string, now: number): CliError {
  const retryAfterMs = parseRetryAfter(response.headers['retry-after'], now)
  const long = retryAfterMs !== undefined && retryAfterMs > LONGEST_RETRY_AFTER_MS
  return new CliError(
    'rate_limited',
    Exit.unavailable,
    `too many requests (429)${colon}${long ? `; the service asks to wait ${spokenSpan(retryAfterMs)}` : ''}`,
    {
      status: 429,
      hint: retryAfterMs === undefined ? 'try again in a while' : `try again in ${spokenSpan(retryAfterMs)}`,
      retryAfterMs,
    },
  )
}

function redirected(response: HttpResponse, asked: string, secrets: readonly string[]): CliError {
  const target = sanitizeLine(redact(response.headers['location'] ?? '', secrets).slice(0, 300))
  return new CliError(
    'redirected',
    Exit.unavailable,
    `${asked} was redirected (${response.status})${target === '' ? '' : ` to ${target}`}; redirects are not followed, so that no credential goes astray`,
    { status: response.status, hint: 'set the base URL to where the service is' },
  )
}

export function spokenCredential(credential: Credential): string {
  return credential.description ?? (credential.kind === 'api_key' ? 'the API key' : 'the access token')
}
