import { redactBody } from '../service/exchange-log.ts'
import { redact as redactSecrets, withoutTokens } from '../terminal/redact.ts'
import { excerpt } from '../terminal/sanitize.ts'

/** As much of the token endpoint's answer as arrived. */
export interface TokenAnswer {
  readonly status: number
  /** The `Retry-After` header as it came. */
  readonly retryAfter: string | undefined
  /** The JSON object in the body; undefined if there is none. */
  readonly body: Readonly<Record<string, unknown>> | undefined
  /** Whether there is no body, and none was announced. */
  readonly isEmpty: boolean
  /** The `error` of an OAuth error response (RFC 6749 section 5.2): a 4xx of the service whose JSON body has a string `error`. */
  readonly error: string | undefined
  /** What the service says about the error: one short line without secrets; empty if it says nothing. */
  readonly serviceMessage: string
  /** What ended the body before it was complete. What arrived is used all the same. */
  readonly truncatedBy: Error | undefined
}

/**
 * Reads an answer to its end, or to where it breaks off.
 *
 * @param secrets what was sent: messages must not contain it even if the service quotes it.
 */
export async function readTokenAnswer(
  { status, headers, body: stream }: Response,
  secrets: readonly string[],
): Promise<TokenAnswer> {
  const pieces: Uint8Array[] = []
  let truncatedBy: Error | undefined
  try {
    for await (const piece of stream ?? []) pieces.push(piece)
  } catch (error) {
    truncatedBy = error instanceof Error ? error : new Error(String(error))
  }
  const text = new TextDecoder().decode(Buffer.concat(pieces))
  const body = parseObject(text) ?? (status >= 200 && status <= 299 ? completePairs(text) : undefined)
  const redact = (said: string) => redactSecrets(said, secrets)
  const code = oauthErrorOf(status, body?.['error'])
  const oauthError = code === undefined ? undefined : redact(code).slice(0, 100)
  return {
    status,
    retryAfter: headers.get('retry-after') ?? undefined,
    body,
    isEmpty: text === '' && truncatedBy === undefined && !/html|xml/i.test(headers.get('content-type') ?? ''),
    error: oauthError,
    serviceMessage:
      body === undefined ? excerptOf(text, redact) : messageIn(body, oauthError === undefined, redact),
    truncatedBy,
  }
}

/** Describes an answer that is neither tokens nor an OAuth error. */
export function describeAnswer({ status, serviceMessage, truncatedBy }: TokenAnswer): string {
  const message = serviceMessage === '' ? '' : `: ${serviceMessage}`
  return `HTTP ${status}${message}${truncatedBy === undefined ? '' : `; ${truncatedBy.message}`}`
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

/**
 * The complete pairs of a JSON object that breaks off or has an invalid pair, which may include a refresh token that was
 * just rotated; undefined if there are none.
 */
function completePairs(text: string): Record<string, unknown> | undefined {
  if (!/^\s*\{/.test(text)) return undefined
  const pairs = [...text.matchAll(/"\w+"\s*:\s*("(?:[^"\\]|\\.)*"|\d+(?=\s*[,}]))/g)].flatMap(([pair]) =>
    Object.entries(parseObject(`{${pair}}`) ?? {}),
  )
  return pairs.length === 0 ? undefined : Object.fromEntries(pairs)
}

/**
 * The `error` of an OAuth error response. By RFC 6749 section 5.2 its status is 400 or 401. Other 4xx statuses count if
 * `error` looks like a code, except those that servers and proxies use for connection problems, when the request may
 * have been processed.
 */
function oauthErrorOf(status: number, error: unknown): string | undefined {
  if (typeof error !== 'string' || error === '' || status < 400 || status > 499) return undefined
  if (status === 400 || status === 401) return error
  return [408, 421, 425, 499].includes(status) || !/^[a-z][a-z0-9_.-]*$/.test(error) ? undefined : error
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** An excerpt of a text, such as a proxy's error page; nothing if it starts like JSON, which may contain tokens. */
function excerptOf(text: string, redact: (said: string) => string): string {
  return /^\s*[{[]/.test(text) ? '' : excerpt(withoutTokens(redactBody(redact(text))), 160)
}

/**
 * The message in an error response, with the name of the error.
 *
 * @param withErrorField whether to use `error` as the name, because it isn't an OAuth error code.
 */
function messageIn(
  body: Record<string, unknown>,
  withErrorField: boolean,
  redact: (said: string) => string,
): string {
  // Some services nest it: {"error":{"name","message"}}.
  const fields = isObject(body['error']) ? body['error'] : body
  const first = (...names: readonly string[]) =>
    names
      .map((name) => fields[name])
      .find((found): found is string => typeof found === 'string' && found.trim() !== '')
  const message = first('error_description', 'message', 'detail', 'title')
  const name = first('name', 'code', 'type', ...(withErrorField ? ['error'] : []))
  const said = message === undefined ? (name ?? '') : name === undefined ? message : `${message} (${name})`
  return excerpt(withoutTokens(redact(said)), 300)
}
