import type { Hono } from 'hono'
import type { ContentfulStatusCode } from 'hono/utils/http-status'
import { readText } from './bodies.ts'
import { GRANT_TYPES, SCOPES } from './clients.ts'
import { methodNotAllowed, Problem, TokenProblem } from './problems.ts'
import type { SandboxState } from './sandbox-state.ts'

/** POST /oauth/token (interface, section 4.1) and the metadata of RFC 8414. */
export function addTokenRoutes(app: Hono, sandbox: SandboxState): void {
  app.all('/oauth/token', async (c) => {
    c.header('Cache-Control', 'no-store')
    c.header('Pragma', 'no-cache')
    try {
      if (c.req.method !== 'POST') throw methodNotAllowed('POST')
      const fields = readFields(c.req.header('content-type') ?? '', await readText(c))
      return c.json(await sandbox.authorization.exchange(fields))
    } catch (error) {
      const known = error instanceof TokenProblem || error instanceof Problem
      if (!known) throw error
      // Here every refusal has an error code, whatever its status.
      const code = error instanceof TokenProblem ? error.code : 'invalid_request'
      const headers = error instanceof Problem ? error.headers : {}
      for (const [name, value] of Object.entries(headers)) c.header(name, value)
      return c.json({ error: code, error_description: error.message }, error.status as ContentfulStatusCode)
    }
  })

  if (!sandbox.metadata) return
  app.get('/.well-known/oauth-authorization-server', (c) =>
    c.json({
      issuer: sandbox.baseUrl,
      authorization_endpoint: `${sandbox.baseUrl}/oauth/authorize`,
      token_endpoint: `${sandbox.baseUrl}/oauth/token`,
      scopes_supported: SCOPES,
      response_types_supported: ['code'],
      response_modes_supported: ['query'],
      grant_types_supported: GRANT_TYPES,
      token_endpoint_auth_methods_supported: ['none'],
      code_challenge_methods_supported: ['S256'],
      authorization_response_iss_parameter_supported: sandbox.iss,
    }),
  )
}

const PARAMETERS: ReadonlySet<string> = new Set([
  ...['grant_type', 'client_id', 'code', 'redirect_uri', 'code_verifier', 'refresh_token', 'scope'],
])

/**
 * The fields of a token request, from form encoding or JSON. An empty value counts as left out (RFC 6749, section 3.2).
 * @throws TokenProblem `invalid_request`.
 */
function readFields(contentType: string, body: string): ReadonlyMap<string, string> {
  const mediaType = contentType.split(';')[0]?.trim().toLowerCase()
  const fields = new Map<string, string>()
  if (mediaType === 'application/x-www-form-urlencoded') {
    for (const [name, value] of new URLSearchParams(body)) {
      if (fields.has(name)) throw new TokenProblem('invalid_request', `${printable(name)} is given twice`)
      fields.set(name, value)
    }
  } else if (mediaType === 'application/json') {
    for (const [name, value] of Object.entries(parseObject(body))) {
      // Unrecognized parameters must be ignored (RFC 6749, section 3.2), whatever they hold.
      if (value === null || !PARAMETERS.has(name)) continue
      if (typeof value !== 'string')
        throw new TokenProblem('invalid_request', `${printable(name)} is not a text`)
      fields.set(name, value)
    }
  } else {
    throw new TokenProblem('invalid_request', 'the body must be form-encoded or JSON')
  }
  for (const [name, value] of fields) if (value === '') fields.delete(name)
  return fields
}

function parseObject(body: string): object {
  try {
    const parsed: unknown = JSON.parse(body)
    if (typeof parsed === 'object' && parsed !== null && !Array.isArray(parsed)) return parsed
  } catch {
    // Said below.
  }
  throw new TokenProblem('invalid_request', 'the body is not a JSON object')
}

/** The characters that an error description may have (RFC 6749, section 5.2). */
function printable(text: string): string {
  return text.replace(/[^\x20\x21\x23-\x5b\x5d-\x7e]/g, '?').slice(0, 60)
}
