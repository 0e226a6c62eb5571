import type { Context, HttpRequest, HttpTransport } from '../context.ts'
import { writeLines } from '../terminal/notices.ts'
import { redact } from '../terminal/redact.ts'

/** What is shown of headers: nothing that could be a credential, a cookie or a code. */
const SHOWN =
  /^(accept|content-length|content-type|date|location|(x-)?(request|correlation|trace)-?id|retry-after|server|traceparent|user-agent|via|(x-)?ratelimit(-\w+)?)$/

/**
 * For `--verbose`: a transport that logs every exchange to stderr: method, address, status, time and some headers. Never a
 * body: those of the token endpoint are secrets.
 */
export function logExchanges(context: Context): HttpTransport {
  const { http, clock } = context
  // If the reader of stderr has gone away, an answer still counts.
  const log = (sign: '>' | '<', lines: readonly string[]) =>
    writeLines(
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
        const shown = headerLines(response.headers).map((line) => redact(line, secretsOf(request)))
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

/** What was sent that no message may contain, even if a response quotes it. */
export function secretsOf({ headers, body }: HttpRequest): string[] {
  const { authorization = '' } = headers
  const fields = new URLSearchParams(body)
  const sent = ['refresh_token', 'code', 'code_verifier'].flatMap((name) => fields.getAll(name))
  return [authorization.replace(/^Bearer /, ''), ...sent]
}

function headerLines(headers: Readonly<Record<string, string>>): string[] {
  const shown = Object.entries(headers).filter(([name]) => SHOWN.test(name))
  // The query or fragment of an address may contain a code or a token.
  const clean = (name: string, value: string) => (name === 'location' ? value.replace(/[?#].*/s, '') : value)
  return shown.map(([name, value]) => `${name}: ${clean(name, value)}`)
}
