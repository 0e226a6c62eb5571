import type { Context, HttpRequest, HttpResponse, HttpTransport } from '../context.ts'
import { redact, withoutTokens } from '../terminal/redact.ts'
import { excerpt, sanitizeLine, stringifyJson } from '../terminal/sanitize.ts'

/** Characters of a body. */
const MAX_BODY_LENGTH = 4096
/** Headers, parameters and fields: `refresh_token`, `refreshToken`, `X-Refresh-Token`. */
const SECRET_NAMES =
  '(?:[\\w-]{0,40}(?:tokens?|secret|password|api[_-]?key|verifier|authorization|cookie)|(?:authorization[_-]?)?code|state|nonce)'
const SECRET_NAME = new RegExp(`^${SECRET_NAMES}$`, 'i')
/** `token=…`, `"token":"…"`, `\"token\":\"…`, `<token>…`. */
const SECRET_ASSIGNMENTS = new RegExp(
  `(\\b${SECRET_NAMES}\\b\\\\*["']?\\s*[:=>]\\s*\\\\*["']?)[^"'&\\s,}<]+`,
  'gi',
)
const REDACTED = '[redacted]'

interface LogOptions {
  /** Whether responses contain tokens that were just issued: then anything that could be one is redacted, whatever its name. */
  readonly issuesTokens: boolean
}

/**
 * The transport with every exchange logged to stderr, for `--verbose`. Secrets are redacted: the Authorization header,
 * tokens, authorization codes and PKCE verifiers in bodies and URLs.
 */
export function logExchanges(
  context: Pick<Context, 'http' | 'clock' | 'stderr'>,
  { issuesTokens }: LogOptions = { issuesTokens: false },
): HttpTransport {
  const { http, clock } = context
  return {
    async send(request) {
      const secrets = secretsIn(request)
      const hideSent = (text: string) => redact(text, secrets, REDACTED)
      const hide = (text: string) => (issuesTokens ? withoutTokens(hideSent(text), REDACTED) : hideSent(text))
      const { stderr } = context
      const started = clock.monotonic()
      const elapsed = () => `${Math.round(clock.monotonic() - started)} ms`
      await stderr.write(hideSent(describeRequest(request)))
      try {
        const response = await http.send(request)
        await stderr.write(hide(describeResponse(response, elapsed())))
        return { ...response, body: logBody(response, hide, (text) => stderr.write(text)) }
      } catch (error) {
        const message = error instanceof Error ? error.message : String(error)
        await stderr.write(`< ${hideSent(sanitizeLine(message))} (${elapsed()})\n`)
        throw error
      }
    },
    close: () => http.close(),
  }
}

/** The secrets in a request, to redact where a response quotes them. */
function secretsIn(request: HttpRequest): string[] {
  const headers = Object.entries(request.headers)
    .filter(([name]) => SECRET_NAME.test(name))
    .map(([, value]) => value.replace(/^\w+ /, ''))
  const fields = [...new URLSearchParams(request.body?.startsWith('{') ? '' : request.body)]
    .filter(([name]) => SECRET_NAME.test(name))
    .map(([, value]) => value)
  return [...headers, ...fields].filter((secret) => secret.length >= 8)
}

function describeRequest(request: HttpRequest): string {
  const url = new URL(request.url)
  for (const name of [...url.searchParams.keys()]) {
    if (SECRET_NAME.test(name)) url.searchParams.set(name, REDACTED)
  }
  const lines = [`${request.method} ${url.href}`, ...headerLines(request.headers)]
  if (request.body !== undefined) lines.push(redactBody(request.body))
  return lines.map((line) => `> ${sanitizeLine(line)}\n`).join('')
}

function describeResponse(response: HttpResponse, elapsed: string): string {
  return [`${response.status} (${elapsed})`, ...headerLines(response.headers)]
    .map((line) => `< ${sanitizeLine(line)}\n`)
    .join('')
}

function headerLines(headers: Readonly<Record<string, string>>): string[] {
  return Object.entries(headers).map(([name, value]) => {
    if (!SECRET_NAME.test(name)) return `${name}: ${name === 'location' ? redactText(value) : value}`
    const scheme = /authorization$/i.test(name) ? (/^\w+ /.exec(value)?.[0] ?? '') : ''
    return `${name}: ${scheme}${REDACTED}`
  })
}

/** Passes the body on unchanged, and logs its beginning when it has been read. */
async function* logBody(
  response: HttpResponse,
  hide: (text: string) => string,
  write: (text: string) => Promise<void>,
): AsyncGenerator<Uint8Array> {
  const pieces: Uint8Array[] = []
  let length = 0
  let kept = 0
  try {
    for await (const piece of response.body) {
      length += piece.length
      if (kept <= MAX_BODY_LENGTH * 16) {
        pieces.push(piece)
        kept += piece.length
      }
      yield piece
    }
  } finally {
    const text = Buffer.concat(pieces).toString('utf8')
    await write(`< ${redactBody(text, hide)} (${length} bytes)\n`)
  }
}

/**
 * The beginning of a body with its secrets redacted: JSON and form fields by their names, also in strings that hold JSON;
 * in any other text, whatever looks like a field with such a name.
 *
 * @param hide redacts anything else, before the text is cut
 */
export function redactBody(text: string, hide = (shown: string) => shown): string {
  let json: string
  try {
    json = hide(stringifyJson(redactValue(JSON.parse(text))))
  } catch {
    // Not JSON, or nested too deeply to stringify.
    return excerpt(redactText(hide(text)), MAX_BODY_LENGTH)
  }
  return json.length > MAX_BODY_LENGTH ? `${json.slice(0, MAX_BODY_LENGTH)}…` : json
}

function redactValue(value: unknown): unknown {
  if (typeof value === 'string') return redactJsonIn(value)
  if (Array.isArray(value)) return value.map(redactValue)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value).map(([name, inner]) => [
      name,
      SECRET_NAME.test(name) && inner !== null ? REDACTED : redactValue(inner),
    ]),
  )
}

/** Some gateways wrap an answer: `{"statusCode":200,"body":"{…}"}`. */
function redactJsonIn(text: string): string {
  if (!/^\s*["{[]/.test(text)) return text
  try {
    return JSON.stringify(redactValue(JSON.parse(text)))
  } catch {
    return redactText(text)
  }
}

function redactText(text: string): string {
  return text.replace(SECRET_ASSIGNMENTS, `$1${REDACTED}`)
}
