/** The value of `Authorization: Bearer` (section 5). Services of this shape accept either kind. */
export interface Credential {
  readonly kind: 'api_key' | 'access_token'
  readonly value: string
  /** Its source, for messages: "the API key in MAILCLAIM_API_KEY", "the access token of profile default". */
  readonly description?: string
}

/** Provides the credential of a profile. Implemented in session/. */
export interface Authorizer {
  /** A credential to send, renewed if necessary. @throws CliError exit 4 if there isn't one. */
  credential(): Promise<Credential>
  /** After the service answered this credential with 401: another one to try, or undefined. */
  refused(credential: Credential): Promise<Credential | undefined>
}

/** Whether a text can be the token of an Authorization header (RFC 6750 section 2.1): visible ASCII, no line break. */
export function isBearerToken(text: string): boolean {
  return /^[\x21-\x7e]+$/.test(text)
}
