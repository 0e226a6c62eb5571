import type { Readable } from 'node:stream'

/**
 * The program's surroundings except files, as an object that `main.ts` builds and that tests fake, so that no module is mocked.
 * Files are accessed directly.
 */
export interface Context {
  readonly installation: Installation
  readonly environment: EnvironmentValues
  readonly directories: Directories
  readonly platform: NodeJS.Platform
  readonly stdin: StandardInput
  readonly stdout: OutputStream
  readonly stderr: OutputStream
  readonly clock: Clock
  readonly random: RandomSource
  readonly http: HttpTransport
  readonly dns: DnsNetwork
  /** Opens an http(s) address in the user's browser. Rejects as `openBrowser` of child-processes.ts. */
  readonly openBrowser: (url: string) => Promise<void>
  /**
   * Runs a command in the system's shell until the command ends. The `MAILCLAIM_…` variables that mailclaim was started with are
   * not passed on, because they may hold an API key. Rejects with the signal's reason if the signal aborts.
   */
  readonly runInShell: (request: ShellCommandRequest) => Promise<ShellCommandEnd>
  readonly prompts: Prompts
  readonly keychain: Keychain
  readonly interrupts: Interrupts
}

/** Facts about the installed mailclaim and this machine. */
export interface Installation {
  readonly version: string
  /** Host name of this machine. */
  readonly host: string
  /** Directory of the JSON Schemas for the output of commands. */
  readonly schemas: string
}

/**
 * Paths of the directories for settings (`config`) and for sessions and claims (`state`). A path from a variable may be relative,
 * which `requireAbsoluteDirectories` refuses.
 */
export interface Directories {
  readonly config: string
  readonly state: string
}

/** Values of environment variables, read once by `main.ts`. Except for `isKeyEmpty`, an empty variable counts as unset. */
export interface EnvironmentValues {
  /** Values of the `MAILCLAIM_…` variables that set a setting, by key of `ALL_SETTINGS`, such as `base_url`. */
  readonly settings: Readonly<Record<string, string>>
  readonly apiKey?: string
  /** Whether `MAILCLAIM_API_KEY` is set but empty, as in a CI job without access to a secret. */
  readonly isKeyEmpty?: boolean
  /** Key that encrypts a session in etcd: base64 of 32 bytes. */
  readonly storeKey?: string
  readonly storeUser?: string
  readonly storePassword?: string
  /** Path of a file with the password for etcd, read if `storePassword` is absent. */
  readonly storePasswordFile?: string
  readonly noColor: boolean
  readonly forceColor?: string
  readonly term?: string
  readonly ci: boolean
  /** Whether this is an SSH session, where a browser would open on the wrong machine. */
  readonly ssh: boolean
  /** `BROWSER`: commands separated by colons (semicolons on Windows), tried in order. */
  readonly browser?: string
  readonly httpsProxy?: string
  /** Whether `NODE_TLS_REJECT_UNAUTHORIZED=0` turns certificate checks off, so that another server could pose as the service. */
  readonly tlsUnchecked?: true
  readonly noProxy?: string
}

export interface StandardInput {
  readonly isTTY: boolean
  /** Standard input as a stream, opened on first access, for prompts and piped input. */
  readonly stream: Readable
}

/** Standard output or standard error. */
export interface OutputStream {
  readonly isTTY: boolean
  /** Width of the terminal in columns, measured at each access because windows change; undefined if unknown. */
  readonly columns: number | undefined
  /**
   * Writes text; resolves when the system has accepted it, so that callers wait for a slow reader (backpressure). A failed write to
   * standard error is ignored.
   * @throws OutputClosedError if the reader has gone; CliError `output_failed`, exit 1; the reason of an interrupt
   */
  write(text: string): Promise<void>
}

/**
 * Error of a write to standard output whose reader has gone, as in `mailclaim … | head -1`. Not a failure: a command that ends
 * with this error exits with 0, without a message.
 */
export class OutputClosedError extends Error {
  override readonly name = 'OutputClosedError'
}

export interface Clock {
  /** Wall-clock time in milliseconds since 1970-01-01 UTC. Can jump, so don't use it for durations. */
  now(): number
  /** Milliseconds since an arbitrary start, unaffected by changes of the system's time: for durations and deadlines. */
  monotonic(): number
  /** Resolves after `ms` milliseconds; rejects with the signal's reason if the signal aborts first. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>
  /** Calls `ring` after `ms` milliseconds, without keeping the process alive. @returns a function that cancels the call */
  alarm(ms: number, ring: () => void): () => void
}

export interface RandomSource {
  /** Cryptographically secure random bytes. */
  bytes(length: number): Uint8Array
  /** Random number in [0, 1) for jitter, not for secrets. */
  fraction(): number
}

export interface HttpRequest {
  readonly method: 'GET' | 'POST'
  readonly url: URL
  readonly headers: Readonly<Record<string, string>>
  readonly body?: string
  /** Milliseconds for the complete exchange, response body included; with `beforeSend`, the time starts over after that call. */
  readonly timeoutMs: number
  readonly signal?: AbortSignal
  /**
   * Requires a new connection, for a refresh token: if the service closes a kept-alive connection while a request is being sent on
   * it, nobody can tell whether the request was read.
   */
  readonly freshConnection?: true
  /**
   * Called when the connection is established (TLS included), before the first byte of the request is written. If this function
   * throws, the request isn't sent, and the exchange fails with `sent: 'no'` and the thrown error as `cause`.
   */
  readonly beforeSend?: () => void
  readonly tls?: ClientCertificate
  /**
   * Whether each character of `body` and of the response's `text` is one byte, and HTTP/2 is allowed, for DNS over HTTPS. Not for
   * tokens: over HTTP/2, a request may be sent twice.
   */
  readonly isBinary?: boolean
}

/** Client certificate for mutual TLS, with its private key; both PEM. */
export interface ClientCertificate {
  readonly cert: string
  readonly key: string
}

export interface HttpResponse {
  readonly status: number
  /** Header values by lower-case name; repeated headers are joined with ", ". */
  readonly headers: Readonly<Record<string, string>>
  /** Response body; with `brokenBy`, the part that arrived. */
  readonly text: string
  /** Error that cut the body off, such as a timeout or a body beyond the size limit. */
  readonly brokenBy?: Error
}

export interface HttpTransport {
  /**
   * Performs one HTTP exchange, without following redirects. The transport of `createThrottlingTransport` also pauses and retries;
   * an abort during a pause rejects with the signal's reason.
   *
   * @throws HttpTransportError if no response headers arrived
   */
  send(request: HttpRequest): Promise<HttpResponse>
  /** Aborts exchanges in progress and closes all connections, so that the process can exit. */
  close(): Promise<void>
}

/** Error of an HTTP exchange without a complete response. */
export class HttpTransportError extends Error {
  override readonly name = 'HttpTransportError'
  /**
   * Kind of failure. `memory` and `descriptors` are limits of this machine; `untrusted` is a certificate of an unknown issuer,
   * `dated` one outside its validity period, `tls` another failure of TLS.
   */
  readonly kind:
    | 'memory'
    | 'descriptors'
    | 'lookup'
    | 'connect'
    | 'tls'
    | 'untrusted'
    | 'dated'
    | 'proxy'
    | 'timeout'
    | 'reset'
    | 'aborted'
    | 'protocol'
  /** `maybe` if a byte of the request can have left this machine, so that the service may have acted on the request. */
  readonly sent: 'no' | 'maybe'

  constructor(kind: HttpTransportError['kind'], sent: 'no' | 'maybe', message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause })
    this.kind = kind
    this.sent = sent
  }
}

/** Address of a DNS server: an IPv4 or IPv6 address (never a host name) and a port from 1 to 65535. */
export interface DnsServerAddress {
  readonly address: string
  readonly port: number
}

/** A DNS query to send to a server, with its time limit. */
export interface DnsRequest<Server = DnsServerAddress> {
  readonly server: Server
  /** DNS query in wire format, without TCP's length prefix (RFC 1035 section 4.2.2). */
  readonly message: Uint8Array
  readonly timeoutMs: number
  /** Whether a received message is the response to the query. UDP ignores any other message; TCP fails on it with `unreachable`. */
  readonly accept: (message: Uint8Array) => boolean
  readonly signal?: AbortSignal
}

/**
 * DNS transports, and the system's resolvers. `udp` and `tcp` resolve to a message that `DnsRequest.accept` accepts, or reject with
 * a `DnsTransportError`.
 */
export interface DnsNetwork {
  /** Sends a query as one datagram from a new port, against spoofing; ignores replies from other addresses or ports. */
  udp(exchange: DnsRequest): Promise<Uint8Array>
  /** Sends one query over a new TCP connection (RFC 7766), which is closed afterward. */
  tcp(exchange: DnsRequest): Promise<Uint8Array>
  /** Returns the recursive resolvers of this machine's configuration; an empty array if none is usable. */
  systemResolvers(): Promise<readonly DnsServerAddress[]>
}

/**
 * Error of a DNS exchange without an accepted response. The kind `not_checked` says that no query was sent, for example for lack of
 * IPv6 or time, so that nothing is known about the server; `timeout` includes an abort.
 */
export class DnsTransportError extends Error {
  override readonly name = 'DnsTransportError'
  readonly kind: 'timeout' | 'unreachable' | 'not_checked'

  constructor(kind: DnsTransportError['kind'], message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause })
    this.kind = kind
  }
}

/** A command to run in a shell, such as the user's `--publish` command, which adds a DNS record. */
export interface ShellCommandRequest {
  readonly command: string
  readonly variables: Readonly<Record<string, string>>
  /** Time limit in milliseconds, after which the shell command and its process group are terminated. */
  readonly timeoutMs: number
  /**
   * Receives each line of stdout and stderr (a very long line in pieces), unsanitized and without its line break. The next line of
   * the same stream waits until the promise resolves.
   */
  readonly onLine: (line: string) => Promise<void>
  readonly signal?: AbortSignal
}

/** End of a shell command: its exit code or signal, the time limit, or a failure to start. */
export type ShellCommandEnd =
  | { readonly kind: 'exited'; readonly code: number }
  | { readonly kind: 'killed'; readonly signal: string }
  | { readonly kind: 'timed_out' }
  | { readonly kind: 'not_started'; readonly error: NodeJS.ErrnoException }

/** Interactive prompts. Callers must check `Settings.interactive` first. */
export interface Prompts {
  input(question: { message: string; validate?: (value: string) => true | string }): Promise<string>
  password(question: { message: string }): Promise<string>
  confirm(question: { message: string; default: boolean }): Promise<boolean>
  select<T>(question: {
    message: string
    choices: readonly { name: string; value: T; description?: string }[]
  }): Promise<T>
}

/** The operating system's keychain. A call to it can hang, so each call has a time limit. */
export interface Keychain {
  /** Performs one operation. Never rejects: a failure is a result with `ok: false`. */
  call(request: KeychainRequest): Promise<KeychainResult>
}

export interface KeychainRequest {
  readonly operation: 'get' | 'set' | 'delete'
  readonly service: string
  readonly account: string
  /** Secret to store, for `set`. */
  readonly secret?: string
  readonly timeoutMs: number
  /** Signal whose abort ends the keychain call; the result then has the reason `timeout`. */
  readonly signal?: AbortSignal
}

/**
 * Result of a keychain operation. `value` for `get`: the secret, or null for an absent item and, on Linux, a locked keychain;
 * for `delete`: whether an item existed; for `set`: true.
 */
export type KeychainResult =
  | { readonly ok: true; readonly value: string | boolean | null }
  | {
      readonly ok: false
      /** `no_addon`: no keytar for this platform; `no_module`: keytar doesn't load; `no_keychain`: no D-Bus or Secret Service. */
      readonly reason: 'no_addon' | 'no_module' | 'no_keychain' | 'locked' | 'timeout' | 'refused' | 'crashed'
      readonly detail: string
    }

export interface Interrupts {
  /**
   * Aborts with an `InterruptedError` on Ctrl-C (SIGINT), SIGTERM, and SIGHUP (the terminal hung up); in a run over several
   * domains, also with an error that stops the run.
   */
  readonly signal: AbortSignal
  /**
   * Runs work that must not be interrupted, such as sending a refresh token and storing its successor: a signal that arrives
   * meanwhile aborts `signal` only when all shielded work has settled.
   *
   * @param onSignal called with a signal that arrives during the work, unless an earlier signal already waits
   */
  shield<T>(work: () => Promise<T>, onSignal?: (signal: NodeJS.Signals) => void): Promise<T>
}
