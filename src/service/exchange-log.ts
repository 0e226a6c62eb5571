import type { Context, HttpRequest, HttpResponse, HttpTransport } from '../context.ts'
import { redact } from '../terminal/redact.ts'
import { excerpt, sanitizeLine, stringifyJson } from '../terminal/sanitize.ts'

/** Characters of a body. */
const MAX_BODY_LENGTH = 4096
const SECRET_HEADERS = /^(authorization|proxy-authorization|cookie|set-cookie)$/i
const SECRET_NAMES =
  'access_token|refresh_token|id_token|token|code|code_verifier|client_secret|password|api_key|state|nonce'
const SECRET_FIELDS = new RegExp(`^(${SECRET_NAMES})$`, 'i')
const SECRET_ASSIGNMENTS = new RegExp(
  `(["']?\\b(?:${SECRET_NAMES})\\b["']?\\s*[:=]\\s*["']?)[^"'&\\s,}]+`,
  'gi',
)
const REDACTED = '[redacted]'

/**
 * The transport with every exchange logged to stderr, for `--verbose`. Secrets are redacted: the Authorization header,
 * tokens, authorization codes and PKCE verifiers in bodies and URLs.
 */
export function logExchanges(context: Pick<Context, 'http' | 'clock' | 'stderr'>): HttpTransport {
  const { http, clock } = context
  return {
    async send(request) {
      const secrets = secretsIn(request)
      const stderr = { write: (text: string) => context.stderr.write(redact(text, secrets, REDACTED)) }
      const started = clock.monotonic()
      const elapsed = () => `${Math.round(clock.monotonic() - started)} ms`
      await stderr.write(describeRequest(request))
      try {
        const response = await http.send(request)
        await stderr.write(describeResponse(response, elapsed()))
        return { ...response, body: logBody(response, secrets, (text) => stderr.write(text)) }
      } catch (error) {
        await stderr.write(
          `< ${sanitizeLine(error instanceof Error ? error.message : String(error))} (${elapsed()})\n`,
        )
        throw error
      }
    },
    close: () => http.close(),
  }
}

/** The secrets in a request, to redact where a response quotes them. */
function secretsIn(request: HttpRequest): string[] {
  const headers = Object.entries(request.headers)
    .filter(([name]) => SECRET_HEADERS.test(name))
    .map(([, value]) => value.replace(/^\w+ /, ''))
  const fields = [...new URLSearchParams(request.body?.startsWith('{') ? '' : request.body)]
    .filter(([name]) => SECRET_FIELDS.test(name))
    .map(([, value]) => value)
  return [...headers, ...fields].filter((secret) => secret.length >= 8)
}

function describeRequest(request: HttpRequest): string {
  const url = new URL(request.url)
  for (const name of [...url.searchParams.keys()]) {
    if (SECRET_FIELDS.test(name)) url.searchParams.set(name, REDACTED)
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
    const scheme = /^(\w+) /.exec(value)?.[1]
    if (!SECRET_HEADERS.test(name)) return `${name}: ${name === 'location' ? redactText(value) : value}`
    return `${name}: ${scheme === undefined ? '' : `${scheme} `}${REDACTED}`
  })
}

/** Passes the body on unchanged, and logs its beginning when it has been read. */
async function* logBody(
  response: HttpResponse,
  secrets: readonly string[],
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
    await write(`< ${redactBody(text, secrets)} (${length} bytes)\n`)
  }
}

/**
 * The beginning of a body with its secrets redacted: JSON and form fields by their names; in any other text, whatever
 * looks like a field with such a name.
 *
 * @param secrets texts to redact anywhere
 */
export function redactBody(text: string, secrets: readonly string[] = []): string {
  let json: string
  try {
    json = redact(stringifyJson(redactValue(JSON.parse(text))), secrets, REDACTED)
  } catch {
    // Not JSON, or nested too deeply to stringify.
    return excerpt(redactText(redact(text, secrets, REDACTED)), MAX_BODY_LENGTH)
  }
  return json.length > MAX_BODY_LENGTH ? `${json.slice(0, MAX_BODY_LENGTH)}…` : json
}

function redactValue(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(redactValue)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value).map(([name, inner]) => [
      name,
      SECRET_FIELDS.test(name) && inner !== null ? REDACTED : redactValue(inner),
    ]),
  )
}

function redactText(text: string): string {
  return text.replace(SECRET_ASSIGNMENTS, `$1${REDACTED}`)
}
