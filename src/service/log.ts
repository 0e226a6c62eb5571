import type { Context, HttpRequest, HttpTransport } from '../context.ts'
import { maskUrlSecrets } from '../settings/addresses.ts'
import { writeStderrLines } from '../terminal/notices.ts'
import { redact } from '../terminal/redact.ts'

/** Matches the lower-case names of headers that `--verbose` shows: none that usually carry a credential or a cookie. */
const SHOWN_HEADERS =
  /^(accept|content-length|content-type|date|location|(x-)?(request|correlation|trace)-?id|retry-after|server|traceparent|user-agent|via|(x-)?ratelimit(-\w+)?)$/

/**
 * Wraps the HTTP transport for `--verbose`: logs method, URL, status, duration and some headers of each exchange to stderr. Never
 * logs a body, because bodies of the token endpoint contain tokens.
 */
export function createLoggingTransport(context: Context): HttpTransport {
  const { http, clock } = context
  // Ignore a log line that can't be written: it must not fail the request.
  const log = (sign: '>' | '<', lines: readonly string[]) =>
    writeStderrLines(
      lines.map((line) => `${sign} ${line}`),
      context,
    ).catch(() => undefined)
  return {
    async send(request) {
      const started = clock.monotonic()
      const elapsed = () => `(${Math.round(clock.monotonic() - started)} ms)`
      await log('>', [`${request.method} ${request.url.href}`, ...headerLines(request.headers)])
      try {
        const response = await http.send(request)
        const shown = headerLines(response.headers).map((line) => redact(line, secretsToRedact(request)))
        await log('<', [`${response.status} ${elapsed()}`, ...shown])
        return response
      } catch (error) {
        await log('<', [`${error instanceof Error ? error.message : String(error)} ${elapsed()}`])
        throw error
      }
    },
    close: () => http.close(),
  }
}

/**
 * Returns the secrets in a request to the service (credential, refresh token, code, code verifier): texts from its response may
 * quote them, but messages must not.
 */
export function secretsToRedact({ headers, body }: HttpRequest): string[] {
  const { authorization = '' } = headers
  const fields = new URLSearchParams(body)
  const sent = ['refresh_token', 'code', 'code_verifier'].flatMap((name) => fields.getAll(name))
  return [authorization.replace(/^Bearer /, ''), ...sent]
}

function headerLines(headers: Readonly<Record<string, string>>): string[] {
  const shown = Object.entries(headers).filter(([name]) => SHOWN_HEADERS.test(name))
  // The query of a redirect may contain a code or a token, and its user info a password.
  const clean = (name: string, value: string) => (name === 'location' ? maskUrlSecrets(value) : value)
  return shown.map(([name, value]) => `${name}: ${clean(name, value)}`)
}
