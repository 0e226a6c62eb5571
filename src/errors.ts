/** The exit codes that scripts rely on. */
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

/** Which exit code several domains end with: the first of these that any of them has. */
export const EXIT_ORDER: readonly ExitCode[] = [
  Exit.bug,
  Exit.notSignedIn,
  Exit.notConfigured,
  Exit.unavailable,
  Exit.refused,
  Exit.notFound,
  Exit.negativeEnd,
  Exit.notYet,
  Exit.usage,
]

export interface CliErrorOptions {
  /** What the person can do next, in one sentence or one command. */
  hint?: string | undefined
  /** The HTTP status of the response that caused this error. */
  status?: number | undefined
  /** How long the service asked to wait before another attempt, in milliseconds. */
  retryAfterMs?: number | undefined
  /** Says nothing to people: they did what the command had asked for. */
  silent?: boolean
  cause?: unknown
}

/**
 * An expected failure: it has a stable `code` for scripts, an exit code and, if there is one, a next step. Anything else
 * that is thrown is a bug and is reported as one.
 *
 * The message may quote text from outside (service, DNS, files); whoever prints it sanitizes it first.
 */
export class CliError extends Error {
  override readonly name = 'CliError'
  readonly code: string
  readonly exit: ExitCode
  readonly hint: string | undefined
  readonly status: number | undefined
  readonly retryAfterMs: number | undefined
  readonly silent: boolean

  constructor(code: string, exit: ExitCode, message: string, options: CliErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause })
    this.code = code
    this.exit = exit
    this.hint = options.hint
    this.status = options.status
    this.retryAfterMs = options.retryAfterMs
    this.silent = options.silent === true
  }

  /** The same error, with another message or hint. */
  with(changed: { readonly message?: string; readonly hint?: string | undefined }): CliError {
    return new CliError(this.code, this.exit, changed.message ?? this.message, {
      ...this,
      hint: 'hint' in changed ? changed.hint : this.hint,
      cause: this,
    })
  }

  /** The error as `--json` shows it on stderr: `{"error":{"code","message","hint","status","exit"}}`. */
  toJSON(): { error: { code: string; message: string; hint?: string; status?: number; exit: number } } {
    const { code, message, hint, status, exit } = this
    return { error: { code, message, ...(hint && { hint }), ...(status && { status }), exit } }
  }
}

/** A bad flag, argument or value: exit 2. */
export function usageError(message: string, hint?: string): CliError {
  return new CliError('usage', Exit.usage, message, { hint })
}

/** The person pressed Ctrl-C (130) or the process was asked to end (143). */
export class InterruptedError extends CliError {
  constructor(signal: 'SIGINT' | 'SIGTERM') {
    const code = signal === 'SIGINT' ? 'interrupted' : 'terminated'
    super(code, Exit[code], code)
  }
}
