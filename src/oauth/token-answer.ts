import { redactBody } from '../service/exchange-log.ts'
import { redact as redactSecrets } from '../terminal/redact.ts'
import { excerpt } from '../terminal/sanitize.ts'

/** An answer of the token endpoint, as much of it as arrived. */
export interface TokenAnswer {
  readonly status: number
  /** The `Retry-After` header as it came. */
  readonly retryAfter: string | undefined
  /** The JSON object that the body holds; undefined where it holds none. */
  readonly body: Readonly<Record<string, unknown>> | undefined
  /** Whether it came to its end without a body. */
  readonly isEmpty: boolean
  /** The `error` of an OAuth error response (RFC 6749 section 5.2): a 4xx of the service whose JSON body has a string `error`. */
  readonly error: string | undefined
  /** What the service says in its own words, one short line without secrets; empty where it says nothing. */
  readonly words: string
  /** What ended the body before it was complete. Whatever is whole in spite of that is worth as much as ever. */
  readonly cut: Error | undefined
}

/**
 * Reads an answer to its end, or to where it breaks off.
 *
 * @param secrets what was sent: a service that quotes it must not bring it into a message.
 */
export async function readTokenAnswer(
  { status, headers, body: stream }: Response,
  secrets: readonly string[],
): Promise<TokenAnswer> {
  const pieces: Uint8Array[] = []
  let cut: Error | undefined
  try {
    for await (const piece of stream ?? []) pieces.push(piece)
  } catch (error) {
    cut = error instanceof Error ? error : new Error(String(error))
  }
  const text = new TextDecoder().decode(Buffer.concat(pieces))
  const body = parseObject(text) ?? (status >= 200 && status <= 299 ? wholePairs(text) : undefined)
  const redact = (said: string) => redactSecrets(said, secrets)
  const code = oauthErrorOf(status, body?.['error'])
  const oauthError = code === undefined ? undefined : redact(code).slice(0, 100)
  return {
    status,
    retryAfter: headers.get('retry-after') ?? undefined,
    body,
    isEmpty: text === '' && cut === undefined,
    error: oauthError,
    words:
      body === undefined ? wordsOfText(text, redact) : wordsOfObject(body, oauthError === undefined, redact),
    cut,
  }
}

/** An answer that is neither tokens nor an OAuth error, in a few words. */
export function describeAnswer({ status, words, cut }: TokenAnswer): string {
  const said = words === '' ? '' : `: ${words}`
  return `HTTP ${status}${said}${cut === undefined ? '' : `; ${cut.message}`}`
}

/** The object that a text holds as JSON; undefined where it holds none. */
export function parseObject(text: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return isObject(value) ? value : undefined
  } catch {
    return undefined
  }
}

/**
 * The pairs that are whole in a JSON object that breaks off: a refresh token that was just rotated is among them.
 * undefined where there is none.
 */
function wholePairs(text: string): Record<string, unknown> | undefined {
  if (!/^\s*\{/.test(text)) return undefined
  const pairs = [...text.matchAll(/"(\w+)"\s*:\s*("(?:[^"\\]|\\.)*"|\d+(?=\s*[,}]))/g)]
  return pairs.length === 0 ? undefined : parseObject(`{${pairs.map(([pair]) => pair).join(',')}}`)
}

/**
 * The `error` of an OAuth error response. RFC 6749 section 5.2 gives it a status of 400 or 401; other 4xx count where it
 * looks like a code, and not where servers and proxies speak of the connection, whatever became of the request.
 */
function oauthErrorOf(status: number, error: unknown): string | undefined {
  if (typeof error !== 'string' || error === '' || status < 400 || status > 499) return undefined
  if (status === 400 || status === 401) return error
  return [408, 421, 425, 499].includes(status) || !/^[a-z][a-z0-9_.-]*$/.test(error) ? undefined : error
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/**
 * A text without anything that could be a token: a service that answers wrongly may show the one that it has just issued
 * in any form. Long words of one case, addresses, and the ids by which support finds a request stay.
 */
function withoutTokens(text: string): string {
  return text.replace(/[\w~+/=-]{16,}(?:\.[\w~+/=-]+)*/g, (word) => {
    const isWord = /^[a-z_-]+$|^[A-Z_-]+$/.test(word)
    const isId = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(word)
    return isWord || isId ? word : '[left out]'
  })
}

/** A piece of a text, a proxy's error page say; of what begins like JSON none, for it can hold tokens. */
function wordsOfText(text: string, redact: (said: string) => string): string {
  return /^\s*[{[]/.test(text) ? '' : excerpt(withoutTokens(redactBody(redact(text))), 160)
}

/**
 * What services say about themselves: a message, and the name of what went wrong.
 *
 * @param errorNamesIt whether `error` is the name, because nothing else is made of it.
 */
function wordsOfObject(
  body: Record<string, unknown>,
  errorNamesIt: boolean,
  redact: (said: string) => string,
): string {
  // Some services nest it: {"error":{"name","message"}}.
  const fields = isObject(body['error']) ? body['error'] : body
  const first = (...names: readonly string[]) =>
    names
      .map((name) => fields[name])
      .find((found): found is string => typeof found === 'string' && found.trim() !== '')
  const message = first('error_description', 'message', 'detail', 'title')
  const name = first('name', 'code', 'type', ...(errorNamesIt ? ['error'] : []))
  const said = message === undefined ? (name ?? '') : name === undefined ? message : `${message} (${name})`
  return excerpt(withoutTokens(redact(said)), 300)
}
