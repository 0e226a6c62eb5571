import type { Context, HttpRequest, HttpResponse, HttpTransport } from '../context.ts'
import { redact } from '../terminal/redact.ts'
import { excerpt, sanitizeLine, stringifyJson } from '../terminal/sanitize.ts'

const LONGEST_BODY = 4096
const SECRET_HEADERS = /^(authorization|proxy-authorization|cookie|set-cookie)$/i
const SECRET_FIELDS =
  /^(access_token|refresh_token|id_token|token|code|code_verifier|client_secret|password|api_key|state|nonce)$/i
const REDACTED = '[redacted]'

/**
 * The transport with every exchange told on stderr, for `--verbose`. Secrets are left out: the Authorization header,
 * tokens, authorization codes and PKCE verifiers in bodies and addresses.
 */
export function logExchanges(context: Pick<Context, 'http' | 'clock' | 'stderr'>): HttpTransport {
  const { http, clock } = context
  return {
    async send(request) {
      const sent = secretsIn(request)
      const stderr = { write: (text: string) => context.stderr.write(redact(text, sent, REDACTED)) }
      const started = clock.monotonic()
      const took = () => `${Math.round(clock.monotonic() - started)} ms`
      await stderr.write(describeRequest(request))
      try {
        const response = await http.send(request)
        await stderr.write(describeResponse(response, took()))
        return { ...response, body: tapped(response, sent, (text) => stderr.write(text)) }
      } catch (error) {
        await stderr.write(
          `< ${sanitizeLine(error instanceof Error ? error.message : String(error))} (${took()})\n`,
        )
        throw error
      }
    },
    close: () => http.close(),
  }
}

/** The secrets that a request carries: an answer that quotes one of them must not show it. */
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

function describeResponse(response: HttpResponse, took: string): string {
  return [`${response.status} (${took})`, ...headerLines(response.headers)]
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

/** Passes the body on as it is and tells its beginning when it has been read. */
async function* tapped(
  response: HttpResponse,
  secrets: readonly string[],
  tell: (text: string) => Promise<void>,
): AsyncGenerator<Uint8Array> {
  const pieces: Uint8Array[] = []
  let length = 0
  let kept = 0
  try {
    for await (const piece of response.body) {
      length += piece.length
      if (kept <= LONGEST_BODY * 16) {
        pieces.push(piece)
        kept += piece.length
      }
      yield piece
    }
  } finally {
    const text = Buffer.concat(pieces).toString('utf8')
    await tell(`< ${redactBody(text, secrets)} (${length} bytes)\n`)
  }
}

/**
 * The beginning of a body without the secrets in it: JSON and form fields by their names; of anything else, whatever
 * looks like a field with such a name.
 *
 * @param secrets what is left out wherever it is.
 */
export function redactBody(text: string, secrets: readonly string[] = []): string {
  let json: string
  try {
    json = redact(stringifyJson(redactValue(JSON.parse(text))), secrets, REDACTED)
  } catch {
    // Not JSON, or nested more deeply than a call can go.
    return excerpt(redactText(redact(text, secrets, REDACTED)), LONGEST_BODY)
  }
  return json.length > LONGEST_BODY ? `${json.slice(0, LONGEST_BODY)}…` : json
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
  return text.replace(
    /(["']?\b(?:access_token|refresh_token|id_token|token|code|code_verifier|client_secret|password|api_key|state|nonce)\b["']?\s*[:=]\s*["']?)[^"'&\s,}]+/gi,
    `$1${REDACTED}`,
  )
}
