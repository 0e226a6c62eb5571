/** What goes into `Authorization: Bearer` (section 5). Services of this shape take either kind. */
export interface Credential {
  readonly kind: 'api_key' | 'access_token'
  readonly value: string
  /** Its source, for messages: "the API key in MAILCLAIM_API_KEY", "the access token of profile default". */
  readonly description?: string
  /** Where its profile keeps its secret, for the hint that says how to sign in again. */
  readonly store?: 'keychain' | 'file'
}

/** Hands out the credential of a profile. Implemented in session/. */
export interface Authorizer {
  /**
   * A credential that is worth sending, refreshed where that was due.
   *
   * @throws CliError exit 4 where there is none or it cannot be had.
   */
  credential(): Promise<Credential>
  /**
   * The service answered 401 to this credential. Returns another one that is worth one more try, or undefined where
   * there is none.
   */
  refused(credential: Credential): Promise<Credential | undefined>
}

/** Whether a text can be the token of an Authorization header (RFC 6750 section 2.1): visible ASCII, no line break. */
export function isBearerToken(text: string): boolean {
  return /^[\x21-\x7e]+$/.test(text)
}
