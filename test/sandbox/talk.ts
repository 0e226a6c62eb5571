import { createHash } from 'node:crypto'
import type { Sandbox } from '../../src/sandbox/sandbox.ts'

/** Encodings of a token request: form encoding and JSON. */
export const ENCODINGS = ['form', 'json'] as const
export type Encoding = (typeof ENCODINGS)[number]

export interface Answer {
  readonly status: number
  readonly headers: Headers
  readonly body: Record<string, unknown>
}

const VERIFIER = 'a-code-verifier-of-more-than-forty-three-characters'
export const REDIRECT_URI = 'http://127.0.0.1:41234/callback'

function challengeOf(verifier: string): string {
  return createHash('sha256').update(verifier).digest('base64url')
}

async function read(response: Response): Promise<Answer> {
  const text = await response.text()
  return {
    status: response.status,
    headers: response.headers,
    body: text === '' ? {} : (JSON.parse(text) as Record<string, unknown>),
  }
}

/** Sends a token request. */
export async function token(
  { baseUrl }: Sandbox,
  encoding: Encoding,
  fields: Readonly<Record<string, string>>,
): Promise<Answer> {
  return read(
    await fetch(`${baseUrl}/oauth/token`, {
      method: 'POST',
      ...(encoding === 'form'
        ? { body: new URLSearchParams(fields) }
        : { body: JSON.stringify(fields), headers: { 'content-type': 'application/json' } }),
    }),
  )
}

/** Sends an API request. @param bearer the bearer credential: the API key by default, none if null */
export async function api(
  sandbox: Sandbox,
  method: string,
  path: string,
  { body, bearer = sandbox.apiKey }: { body?: unknown; bearer?: string | null } = {},
): Promise<Answer> {
  return read(
    await fetch(`${sandbox.baseUrl}${path}`, {
      method,
      headers: {
        ...(bearer === null ? {} : { authorization: `Bearer ${bearer}` }),
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    }),
  )
}

/** Sends a request to the control API, which needs no credential. */
export function control(sandbox: Sandbox, method: string, path: string, body?: unknown): Promise<Answer> {
  return api(sandbox, method, `/_sandbox${path}`, { body, bearer: null })
}

export function advance(sandbox: Sandbox, seconds: number): Promise<Answer> {
  return control(sandbox, 'POST', '/clock', { advance_seconds: seconds })
}

/** Returns the parameters of a valid authorization request. */
export function authorizationParameters(sandbox: Sandbox): Record<string, string> {
  return {
    response_type: 'code',
    client_id: sandbox.clientId,
    redirect_uri: REDIRECT_URI,
    code_challenge: challengeOf(VERIFIER),
    code_challenge_method: 'S256',
    state: 'state-1',
  }
}

/** Sends an authorization request to a sandbox with `autoApprove`; returns the redirect's URL, undefined if there is none. */
export async function authorize(
  sandbox: Sandbox,
  changes: Readonly<Record<string, string | undefined>> = {},
): Promise<URL | undefined> {
  const query = new URLSearchParams()
  for (const [name, value] of Object.entries({ ...authorizationParameters(sandbox), ...changes })) {
    if (value !== undefined) query.set(name, value)
  }
  const response = await fetch(`${sandbox.baseUrl}/oauth/authorize?${query}`, { redirect: 'manual' })
  await response.arrayBuffer()
  const location = response.headers.get('location')
  return location === null ? undefined : new URL(location)
}

/** Returns an authorization code, from a sandbox with `autoApprove`. */
export async function codeFor(
  sandbox: Sandbox,
  changes: Readonly<Record<string, string | undefined>> = {},
): Promise<string> {
  const code = (await authorize(sandbox, changes))?.searchParams.get('code')
  if (code === undefined || code === null) throw new Error('the sandbox gave no code')
  return code
}

/** Returns the fields of a valid token request for an authorization code. */
export function codeFields(sandbox: Sandbox, code: string): Record<string, string> {
  return {
    grant_type: 'authorization_code',
    client_id: sandbox.clientId,
    code,
    redirect_uri: REDIRECT_URI,
    code_verifier: VERIFIER,
  }
}

export function refreshFields(sandbox: Sandbox, refreshToken: unknown): Record<string, string> {
  return { grant_type: 'refresh_token', client_id: sandbox.clientId, refresh_token: String(refreshToken) }
}
