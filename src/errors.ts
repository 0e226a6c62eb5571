/** Exit codes of the program. Scripts rely on them, so they must not change. */
export const Exit = {
  done: 0,
  bug: 1,
  usage: 2,
  notConfigured: 3,
  notSignedIn: 4,
  notFound: 5,
  refused: 6,
  unavailable: 7,
  notYet: 8,
  negativeEnd: 9,
  interrupted: 130,
  terminated: 143,
} as const

export type ExitCode = (typeof Exit)[keyof typeof Exit]

/**
 * Codes of errors, and of warnings in events, with their group (a command's definition names groups whose errors can end the
 * command), exit code and meaning. With null as exit code, the error sums up failures and has the exit code of one of them.
 */
export const ERRORS = {
  bug: ['every', 1, 'a bug'],
  cannot_read: ['every', 1, 'settings or claims cannot be read'],
  cannot_write: ['every', 1, 'a file cannot be written'],
  no_home: ['every', 1, 'no directory for files'],
  output_failed: ['every', 1, 'the output cannot be written'],
  usage: ['every', 2, 'wrong option, argument or value'],
  interrupted: ['every', 130, 'Ctrl-C'],
  terminated: ['every', 143, 'asked to end'],
  base_url_missing: ['session', 3, 'no base URL'],
  base_url_unusable: ['session', 3, 'not a usable base URL'],
  client_id_missing: ['session', 3, 'no OAuth client id'],
  store_not_configured: ['session', 3, 'what etcd takes is missing'],
  file_unusable: ['session', 4, 'a file of the session is damaged'],
  not_signed_in: ['session', 4, 'nobody is signed in'],
  refresh_interrupted: ['session', 4, 'the refresh token may have been sent'],
  refresh_token_lost: ['session', 4, 'the new refresh token is lost'],
  session_elsewhere: ['session', 4, 'the session is of another sign-in'],
  session_over: ['session', 4, 'the service ended the session'],
  store_unavailable: ['session', 4, 'the store needs a person'],
  session_busy: ['session', 7, 'the session is in use'],
  unreachable: ['session', 7, 'no connection to the service or etcd'],
  invalid_client: ['service', 3, 'the service does not know the client id, or has disabled it'],
  unauthorized_client: ['service', 3, 'the client is not registered for this'],
  credential_refused: ['service', 4, 'the key or token is refused'],
  not_found: ['service', 5, 'the service does not have it'],
  forbidden: ['service', 6, 'the service does not allow this'],
  invalid_request: ['service', 6, 'a field of the request is missing or malformed'],
  invalid_scope: ['service', 6, 'the service does not know a scope, or will not grant it'],
  invalid_target: ['service', 6, 'the service does not know the resource'],
  refused: ['service', 6, 'the service refused it'],
  rate_limited: ['service', 7, 'too many requests'],
  redirected: ['service', 7, 'a redirect'],
  service_unavailable: ['service', 7, 'the service cannot do this now'],
  timeout: ['service', 7, 'no complete response in time'],
  unexpected_answer: ['service', 7, 'unexpected response'],
  cannot_listen: ['login', 1, 'no port for the redirect'],
  authorization_endpoint_unusable: ['login', 3, 'no usable endpoint'],
  access_denied: ['login', 4, 'access was denied in the browser'],
  invalid_grant: [
    'login',
    4,
    'the authorization code was used already, is too old, cut off, or of another sign-in',
  ],
  login_timeout: ['login', 4, 'not approved in time'],
  no_refresh_token: ['login', 6, 'the service issued no refresh token, so there is no session to store'],
  config_busy: ['config', 1, 'the settings are being changed'],
  setting_unset: ['config', 5, 'the setting has no value'],
  port_unavailable: ['sandbox', 1, 'a port is in use'],
  problems_found: ['doctor', null, 'a check found a problem'],
  no_progress: ['list', 7, 'a page has nothing new'],
  import_in_flight: ['import', 8, 'the time was up'],
  import_failed: ['import', 9, 'the import failed'],
  claim_unknown: ['claim', 5, 'no such claim is known'],
  record_missing: ['claim', 7, 'the claim has no TXT record'],
  dns_unavailable: ['check', 7, 'DNS cannot be queried'],
  record_not_visible: ['check', 8, 'the record is not ready'],
  publish_failed: ['publish', 7, 'the command failed'],
  values_unknown: ['publish', 8, 'the values that are there cannot be seen'],
  claim_in_flight: ['follow', 8, 'the time was up'],
  claim_blocked: ['follow', 9, 'the claim is blocked'],
  claim_canceled: ['follow', 9, 'it was canceled'],
  claim_ended: ['follow', 9, 'it ended in another way'],
  claim_expired: ['follow', 9, 'it expired'],
  claim_failed: ['follow', 9, 'it failed'],
  claim_superseded: ['follow', 9, 'a newer claim replaced it'],
  timed_out: ['several', 8, 'the time was up'],
  domains_failed: ['several', null, 'not all domains are done'],
  options_ignored: ['create', 2, 'a warning: options without effect'],
  claim_replaced: ['create', 9, 'a warning: an open claim may end'],
} as const satisfies Readonly<Record<string, readonly [group: string, ExitCode | null, meaning: string]>>

export type ErrorCode = keyof typeof ERRORS
/** Name of a group of errors, such as `list`: a command declares the groups of the errors that it can report. */
export type ErrorGroupName = (typeof ERRORS)[ErrorCode][0]

/** Exit codes of failures, the most severe first: a run over several domains ends with the most severe code that occurred. */
export const WORST_EXIT_FIRST: readonly ExitCode[] = [1, 4, 3, 7, 6, 5, 9, 8, 2]

export interface CliErrorOptions {
  /** Code shown to the user instead of `code`: the service's own name for the error. */
  shownCode?: string | undefined
  /** Exit code of an error that has null as exit code in `ERRORS`; ignored for other errors. */
  exit?: ExitCode
  /** The user's next step, printed after the message. */
  hint?: string | undefined
  /** HTTP status of the response that caused this error. */
  status?: number | undefined
  /** Milliseconds to wait before another attempt, from the response's `Retry-After`. */
  retryAfterMs?: number | undefined
  /** Whether to suppress the message, because the user ended the command as instructed: Ctrl-C in `sandbox`. */
  silent?: boolean
  cause?: unknown
}

/**
 * An expected failure, with a stable `code` for scripts, an exit code and maybe a next step. A command's other errors, except
 * `OutputClosedError`, are reported as bugs.
 *
 * The message and hint may quote untrusted text (service, DNS, files), so the code that prints them sanitizes them.
 */
export class CliError extends Error {
  override readonly name = 'CliError'
  readonly code: ErrorCode
  readonly shownCode: string
  readonly exit: ExitCode
  readonly hint: string | undefined
  readonly status: number | undefined
  readonly retryAfterMs: number | undefined
  readonly silent: boolean

  constructor(code: ErrorCode, message: string, options: CliErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause })
    this.code = code
    this.shownCode = options.shownCode ?? code
    this.exit = ERRORS[code][1] ?? options.exit ?? Exit.bug
    this.hint = options.hint
    this.status = options.status
    this.retryAfterMs = options.retryAfterMs
    this.silent = options.silent === true
  }

  /** Returns a `CliError` like this error except for the given message and options; its `cause` is this error. */
  with({ message = this.message, ...changed }: CliErrorOptions & { readonly message?: string }): CliError {
    return new CliError(this.code, message, { ...this, cause: this, ...changed })
  }

  /**
   * Returns the JSON for stderr: `{"error":{"code","message","hint"?,"status"?,"exit"}}`; `code` is `shownCode`, the service's own
   * code if it has one.
   */
  toJSON(): { error: { code: string; message: string; hint?: string; status?: number; exit: number } } {
    const { shownCode: code, message, hint, status, exit } = this
    return { error: { code, message, ...(hint && { hint }), ...(status && { status }), exit } }
  }
}

/** Creates the error for a wrong option, argument or value: `usage`, exit 2. */
export function usageError(message: string, hint?: string): CliError {
  return new CliError('usage', message, { hint })
}

/**
 * Error of a command that was interrupted: by Ctrl-C (SIGINT, exit 130), or by SIGTERM or a terminal that hung up (exit 143).
 */
export class InterruptedError extends CliError {
  constructor(signal: 'SIGINT' | 'SIGTERM') {
    const code = signal === 'SIGINT' ? 'interrupted' : 'terminated'
    super(code, code)
  }
}
