/**
 * An answer other than success, thrown by the parts of the sandbox and turned into HTTP in one place. Outside the
 * token endpoint its body is `{"statusCode","name","message"}`.
 */
export class Problem extends Error {
  readonly status: number
  readonly title: string
  readonly headers: Readonly<Record<string, string>>

  constructor(
    status: number,
    title: string,
    message: string,
    headers: Readonly<Record<string, string>> = {},
  ) {
    super(message)
    this.status = status
    this.title = title
    this.headers = headers
  }
}

export function validationError(message: string): Problem {
  return new Problem(422, 'validation_error', message)
}

export function notFound(message: string): Problem {
  return new Problem(404, 'not_found', message)
}

export function methodNotAllowed(allow: string): Problem {
  return new Problem(405, 'method_not_allowed', `This address takes ${allow}.`, { Allow: allow })
}

/** The error codes of the token endpoint (interface, section 7.1). */
export type TokenErrorCode =
  | 'invalid_request'
  | 'invalid_scope'
  | 'invalid_grant'
  | 'invalid_client'
  | 'unauthorized_client'

/** A refusal by the token endpoint: `{"error","error_description"}` (RFC 6749, section 5.2). */
export class TokenProblem extends Error {
  readonly code: TokenErrorCode
  readonly status: 400 | 401

  constructor(code: TokenErrorCode, description: string) {
    super(description)
    this.code = code
    this.status = code === 'invalid_client' ? 401 : 400
  }
}
