import type { Readable } from 'node:stream'

/**
 * The program's surroundings (environment, directories, streams, clock, network, keychain, signals) as one plain object. `main.ts`
 * builds the real `Context`; tests pass a fake `Context` to a command, so that no module has to be mocked. Files aren't part of
 * `Context`: commands access them directly, most of them below `directories`.
 */
export interface Context {
  readonly installation: Installation
  readonly environment: EnvironmentValues
  readonly directories: Directories
  readonly platform: NodeJS.Platform
  readonly stdin: Input
  readonly stdout: Output
  readonly stderr: Output
  readonly clock: Clock
  readonly random: Random
  readonly http: HttpTransport
  readonly dns: DnsNetwork
  /** Opens an http(s) address in the user's browser. Rejects if no browser can be started. */
  readonly openBrowser: (url: string) => Promise<void>
  /**
   * Runs a command in the system's shell until the command ends. The environment has the given `variables`, but none of the
   * `MAILCLAIM_…` variables that mailclaim was started with. Rejects with the signal's reason if the signal aborts, after the
   * command has ended.
   */
  readonly runInShell: (request: ShellCommand) => Promise<ShellResult>
  readonly prompts: Prompts
  readonly keychain: Keychain
  readonly interrupts: Interrupts
}

/** Facts about this copy of mailclaim and its machine. */
export interface Installation {
  readonly version: string
  /** Host name of this machine. */
  readonly host: string
  /** Directory of the JSON Schemas for the output of commands. */
  readonly schemas: string
}

/**
 * Paths of the directories for settings and state: `MAILCLAIM_CONFIG_DIR` and `MAILCLAIM_STATE_DIR`, else the platform's
 * convention. `requireAbsoluteDirectories` refuses relative paths.
 */
export interface Directories {
  readonly config: string
  readonly state: string
}

/** Values of environment variables, read once by `main.ts`. An empty variable counts as unset. */
export interface EnvironmentValues {
  /** Values of the `MAILCLAIM_…` variables of settings, by key of `ALL_SETTINGS`, such as `base_url` or `no_input`. */
  readonly settings: Readonly<Record<string, string>>
  readonly apiKey?: string
  /** Whether `MAILCLAIM_API_KEY` is set but empty, as where a CI job has no access to a secret. */
  readonly isKeyEmpty?: boolean
  /** Key that encrypts a session in etcd: base64 of 32 bytes. */
  readonly storeKey?: string
  readonly storeUser?: string
  readonly storePassword?: string
  /** Path of a file with etcd's password, read if `storePassword` is absent. */
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

export interface Input {
  readonly isTTY: boolean
  /** Source of answers to prompts, pasted redirects, and secrets and lists read from a pipe. */
  readonly stream: Readable
}

export interface Output {
  readonly isTTY: boolean
  /** Width of the terminal in columns, measured at each access because windows change; undefined without a known width. */
  readonly columns: number | undefined
  /**
   * Writes text and resolves when the system has accepted it, so that callers wait for a slow reader (backpressure). Standard
   * output rejects with `OutputClosedError` if it is closed (EPIPE), with the reason of an interrupt that ends the wait, and with
   * `output_failed` for other errors; standard error never rejects.
   */
  write(text: string): Promise<void>
}

/**
 * Error of a write to a standard output that its reader has closed, as in `mailclaim … | head -1`. Not a failure: unless the
 * command continues without output (`ignoreClosedStdout`), it ends without a message.
 */
export class OutputClosedError extends Error {
  override readonly name = 'OutputClosedError'
}

export interface Clock {
  /** Wall-clock time in milliseconds since 1970-01-01 UTC. Can jump, so don't use it for durations. */
  now(): number
  /** Milliseconds since an arbitrary start; never jumps, so use it for durations and deadlines within this process. */
  monotonic(): number
  /** Resolves after `ms` milliseconds; rejects with the signal's reason if the signal aborts first. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>
  /** Calls `ring` once after `ms` milliseconds unless the returned function cancels the alarm; doesn't keep the process alive. */
  alarm(ms: number, ring: () => void): () => void
}

export interface Random {
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
   * Requires a new connection. On a kept-alive connection that the service closes at the same moment, nobody can tell whether the
   * service has read the request, so a refresh token isn't sent over one.
   */
  readonly freshConnection?: true
  /**
   * Called at most once, when the connection is established (TLS and a proxy's tunnel included) and before the first byte of the
   * request is written. If it throws, the request isn't sent, and the exchange fails with a `HttpTransportError` that has `sent: 'no'`
   * and the thrown error as `cause`. After the call, `timeoutMs` starts over.
   */
  readonly beforeSend?: () => void
  readonly tls?: ClientCertificate
  /**
   * Whether the exchange is DNS over HTTPS: each character of `body` and of the response's `text` is one byte, and HTTP/2 is
   * allowed, although it may send a request twice.
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
  /** Error that cut the body off, including a body beyond the size limit. */
  readonly brokenBy?: Error
}

export interface HttpTransport {
  /**
   * Performs one HTTP exchange, without following redirects. Rejects with a `HttpTransportError`. Only `createPacingTransport` retries,
   * and rejects with the signal's reason during a pause.
   */
  send(request: HttpRequest): Promise<HttpResponse>
  /** Aborts exchanges in progress and closes all connections, so that the process can exit. */
  close(): Promise<void>
}

/**
 * Error of an HTTP exchange without a complete response. `sent` says whether a byte of the request can have left this machine:
 * `no` if the failure came before the connection was established (loading the HTTP client, lookup, connecting, proxy, TLS) or in
 * `beforeSend`; `maybe` for later failures, after which the service may have acted on the request.
 */
export class HttpTransportError extends Error {
  override readonly name = 'HttpTransportError'
  /**
   * Kind of failure. `memory` and `descriptors` are limits of this machine. TLS: `untrusted` for an unknown issuer, `dated` for a
   * certificate outside its validity period, `tls` for others.
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
  readonly sent: 'no' | 'maybe'

  constructor(kind: HttpTransportError['kind'], sent: 'no' | 'maybe', message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause })
    this.kind = kind
    this.sent = sent
  }
}

/** Address of a DNS server: an IPv4 or IPv6 address (never a name) and a port from 1 to 65535. */
export interface DnsServerAddress {
  readonly address: string
  readonly port: number
}

/** One DNS query to send to one server, with its time limit. */
export interface DnsRequest<Server = DnsServerAddress> {
  readonly server: Server
  /** DNS query in wire format, without TCP's length prefix (RFC 1035 section 4.2.2). */
  readonly message: Uint8Array
  readonly timeoutMs: number
  /** Whether a received message is the response to the query. UDP ignores any other message; TCP fails on it with `unreachable`. */
  readonly accept: (message: Uint8Array) => boolean
  readonly signal?: AbortSignal
}

/** DNS transports. `udp` and `tcp` resolve to an accepted message or reject with a `DnsTransportError`. */
export interface DnsNetwork {
  /** Sends one datagram from a new port, against spoofing, and ignores datagrams from other addresses or ports. */
  udp(exchange: DnsRequest): Promise<Uint8Array>
  /** Sends one query over a new TCP connection (RFC 7766), which is closed afterward. */
  tcp(exchange: DnsRequest): Promise<Uint8Array>
  /** Returns the recursive resolvers of this machine's configuration; an empty array if none is usable. */
  systemResolvers(): Promise<readonly DnsServerAddress[]>
}

/**
 * Error of a DNS exchange that got no accepted response. `timeout`: silence, or an abort; `unreachable`: a closed port, another
 * network error, or a wrong message over TCP; `not_checked`: nothing was sent (no IPv6, a firewall on this machine, query or time
 * limit reached), so the server's state is unknown.
 */
export class DnsTransportError extends Error {
  override readonly name = 'DnsTransportError'
  readonly kind: 'timeout' | 'unreachable' | 'not_checked'

  constructor(kind: DnsTransportError['kind'], message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause })
    this.kind = kind
  }
}

/** A command to run in a shell, such as the user's `--publish` command, which adds the DNS record. */
export interface ShellCommand {
  readonly command: string
  readonly variables: Readonly<Record<string, string>>
  /** Time limit in milliseconds, after which the command and its child processes are killed. */
  readonly timeoutMs: number
  /**
   * Receives each line of stdout and stderr (a very long line in pieces), unsanitized and without its line break. Reading from the
   * line's stream pauses until the promise resolves.
   */
  readonly onLine: (line: string) => Promise<void>
  readonly signal?: AbortSignal
}

export type ShellResult =
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

/** The operating system's keychain. A keychain can be locked, absent or hang, so every call has a time limit. */
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
  /** Ends the keychain call early when the signal aborts; the result then has the reason `timeout`. */
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
      /** `no_addon`: no keytar for this platform; `no_module`: keytar doesn't load; `no_keychain`: no Secret Service on D-Bus. */
      readonly reason: 'no_addon' | 'no_module' | 'no_keychain' | 'locked' | 'timeout' | 'refused' | 'crashed'
      readonly detail: string
    }

export interface Interrupts {
  /**
   * Aborts with an `InterruptedError` on Ctrl-C (SIGINT), on SIGTERM, and when the terminal hangs up (SIGHUP); in a run over
   * several domains, also with the error that stops the run.
   */
  readonly signal: AbortSignal
  /**
   * Runs work that must not be interrupted, such as sending a refresh token and storing its successor. A signal that arrives
   * during the work aborts `signal` only when all shielded work has settled.
   *
   * @param onSignal called with the first signal that arrives during the work
   */
  shield<T>(work: () => Promise<T>, onSignal?: (signal: NodeJS.Signals) => void): Promise<T>
}
