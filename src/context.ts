import type { Readable } from 'node:stream'

/**
 * Everything that touches the world, as one plain object. `main.ts` builds the real one; a test builds its own, so
 * that a command is tested by calling it and nothing is mocked by module path.
 */
export interface Context {
  readonly program: Program
  readonly environment: Environment
  readonly directories: Directories
  readonly platform: NodeJS.Platform
  readonly stdin: Input
  readonly stdout: Output
  readonly stderr: Output
  readonly clock: Clock
  readonly random: Random
  readonly http: HttpTransport
  readonly dns: DnsNetwork
  /** Opens an http(s) address in the person's browser. Rejects if no browser can be started. */
  readonly openBrowser: (url: string) => Promise<void>
  /**
   * Runs a command of the person's to its end by the shell, without any of our own variables. Rejects with the signal's reason if
   * that aborts, after the command has ended.
   */
  readonly runProgram: (request: ProgramRequest) => Promise<ProgramEnd>
  readonly prompts: Prompts
  readonly keychain: Keychain
  readonly interrupts: Interrupts
}

export interface Program {
  readonly version: string
  /** The name of this machine. */
  readonly host: string
  /** The directory of the JSON Schemas of what commands print. */
  readonly schemas: string
}

/** Where the platform keeps a program's files, unless `MAILCLAIM_CONFIG_DIR` or `MAILCLAIM_STATE_DIR` says otherwise. */
export interface Directories {
  readonly config: string
  readonly state: string
}

/** The variables that the program knows, read once by `main.ts`. An empty variable counts as not set. */
export interface Environment {
  /** What variables set: `profile`, and the settings by their keys, as in `base_url`. */
  readonly settings: Readonly<Record<string, string>>
  readonly apiKey?: string
  /** Whether `MAILCLAIM_API_KEY` is set to nothing, as by a secret that a job can't read. */
  readonly isKeyEmpty?: boolean
  /** For a session in etcd: the key that encrypts it, and who this machine is to etcd. */
  readonly storeKey?: string
  readonly storeUser?: string
  readonly storePassword?: string
  readonly storePasswordFile?: string
  readonly noColor: boolean
  readonly forceColor?: string
  readonly term?: string
  readonly ci: boolean
  /** Over SSH a browser would open on the wrong machine. */
  readonly ssh: boolean
  /** `BROWSER`: commands separated by colons, tried in order. */
  readonly browser?: string
  readonly httpsProxy?: string
  /** `NODE_TLS_REJECT_UNAUTHORIZED=0`: whoever answers gets the credential. */
  readonly tlsUnchecked?: true
  readonly noProxy?: string
}

export interface Input {
  readonly isTTY: boolean
  /** For prompts, and for secrets read from a pipe. */
  readonly stream: Readable
}

export interface Output {
  readonly isTTY: boolean
  /** Width in columns; undefined if it is not a terminal. Read at each access, because windows change. */
  readonly columns: number | undefined
  /**
   * Writes and settles when the next write may follow (back pressure). Standard output rejects with
   * `OutputClosedError` if its reader went away (EPIPE), which ends the program quietly; standard error never does.
   */
  write(text: string): Promise<void>
}

/** The reader of our output went away, as in `mailclaim … | head -1`: not an error. */
export class OutputClosedError extends Error {
  override readonly name = 'OutputClosedError'
}

export interface Clock {
  /** Wall-clock time in milliseconds since 1970. It can jump. */
  now(): number
  /** Milliseconds on a clock that never jumps; only differences within this process mean anything. */
  monotonic(): number
  /** Settles after `ms` milliseconds; rejects with the signal's reason when that aborts first. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>
  /** Calls `ring` once after `ms` milliseconds; the returned function cancels it. It doesn't keep the process alive. */
  alarm(ms: number, ring: () => void): () => void
}

export interface Random {
  /** Bytes that are good enough for secrets. */
  bytes(length: number): Uint8Array
  /** A number in [0, 1) for jitter; never for secrets. */
  fraction(): number
}

export interface HttpRequest {
  readonly method: 'GET' | 'POST'
  readonly url: URL
  readonly headers: Readonly<Record<string, string>>
  readonly body?: string
  /** Milliseconds for the whole exchange, the body included. */
  readonly timeoutMs: number
  readonly signal?: AbortSignal
  /**
   * Never use a kept-alive connection: if the service is just closing it, nobody knows whether it has read the request.
   */
  readonly freshConnection?: true
  /**
   * Called at most once, when the connection is established (with a proxy: the tunnel; TLS included) and before the
   * first byte of the request is written. What it throws ends the exchange with nothing sent: a `TransportError` with
   * `sent: 'no'` and that error as its `cause`. The time limit starts over.
   */
  readonly beforeSend?: () => void
  /** For a server that asks for a client certificate. */
  readonly tls?: TlsIdentity
  /** For DNS: a character of `body` and of the answer's `text` is a byte, and HTTP/2 will do, which may send it twice. */
  readonly isBinary?: boolean
}

/** How this program identifies itself to a server: PEM. */
export interface TlsIdentity {
  readonly cert: string
  readonly key: string
}

export interface HttpResponse {
  readonly status: number
  /** Lower-case names; repeated headers joined with ", ". */
  readonly headers: Readonly<Record<string, string>>
  /** The body, or as much of it as arrived. */
  readonly text: string
  /** What ended the body before it was complete; also that it is too long. */
  readonly brokenBy?: Error
}

/** One HTTP exchange: no redirects followed, no retries. Rejects with a `TransportError` only. */
export interface HttpTransport {
  send(request: HttpRequest): Promise<HttpResponse>
  /** Aborts what is in progress and closes every connection, so that the process can end. Nothing is sent afterwards. */
  close(): Promise<void>
}

/**
 * No response came. `sent` says whether a byte of the request can have left this machine: `no` for whatever fails before
 * the connection is established (loading the HTTP client, the lookup, connecting, the proxy, TLS) or in `beforeSend`;
 * `maybe` for anything later, and then the service may have acted on it.
 */
export class TransportError extends Error {
  override readonly name = 'TransportError'
  /** Of TLS: `untrusted` if nobody known signed the certificate, `dated` if it is too old or too new, `tls` for anything else. */
  readonly kind:
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

  constructor(kind: TransportError['kind'], sent: TransportError['sent'], message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause })
    this.kind = kind
    this.sent = sent
  }
}

/** Where a DNS server listens: an IPv4 or IPv6 address (never a name) and a port from 1 to 65535. */
export interface DnsAddress {
  readonly address: string
  readonly port: number
}

export interface DnsExchange<Server = DnsAddress> {
  readonly server: Server
  /** The query on the wire, without the length prefix of TCP. */
  readonly message: Uint8Array
  readonly timeoutMs: number
  /** Whether a message from that server is the answer. Other messages are dropped, and the wait continues. */
  readonly accept: (message: Uint8Array) => boolean
  readonly signal?: AbortSignal
}

/** Sends and receives DNS messages. Both exchanges settle with an accepted message or reject with a `DnsTransportError`. */
export interface DnsNetwork {
  /** One datagram from a fresh port; datagrams from any other address or port are ignored. */
  udp(exchange: DnsExchange): Promise<Uint8Array>
  /** One connection, one query (RFC 7766). */
  tcp(exchange: DnsExchange): Promise<Uint8Array>
  /** The recursive resolvers this machine is configured with; empty if none is usable. */
  systemResolvers(): Promise<readonly DnsAddress[]>
}

/**
 * No accepted answer came. `timeout`: silence; `unreachable`: nobody listens there, or another network error; `not_checked`:
 * nothing could be sent (no IPv6, a firewall on this machine, no query left), which says nothing about the server.
 */
export class DnsTransportError extends Error {
  override readonly name = 'DnsTransportError'
  readonly kind: 'timeout' | 'unreachable' | 'not_checked'

  constructor(kind: DnsTransportError['kind'], message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause })
    this.kind = kind
  }
}

/** A command of the person's, such as one that changes DNS. */
export interface ProgramRequest {
  /** As it would be typed. */
  readonly command: string
  /** Added to the environment. */
  readonly variables: Readonly<Record<string, string>>
  /** Then the command is ended, with what it has started. */
  readonly timeoutMs: number
  /** Gets each line of its output, without the line break, as it is. The command waits meanwhile. */
  readonly onLine: (line: string) => Promise<void>
  readonly signal?: AbortSignal
}

export type ProgramEnd =
  | { readonly kind: 'exited'; readonly code: number }
  | { readonly kind: 'killed'; readonly signal: string }
  | { readonly kind: 'timed_out' }
  | { readonly kind: 'not_started'; readonly error: NodeJS.ErrnoException }

/** Questions to a person, asked only if `Settings.interactive` allows it. */
export interface Prompts {
  input(question: {
    message: string
    default?: string
    validate?: (value: string) => true | string
  }): Promise<string>
  password(question: { message: string }): Promise<string>
  confirm(question: { message: string; default: boolean }): Promise<boolean>
  select<T>(question: {
    message: string
    choices: readonly { name: string; value: T; description?: string }[]
  }): Promise<T>
}

/** The operating system's keychain. It can be locked, absent or silent, so every call has a time limit. */
export interface Keychain {
  /** Never rejects. */
  call(request: KeychainRequest): Promise<KeychainAnswer>
}

export interface KeychainRequest {
  readonly operation: 'get' | 'set' | 'delete'
  readonly service: string
  readonly account: string
  /** For `set`. */
  readonly secret?: string
  readonly timeoutMs: number
  /** Ends the call early, as a timeout. */
  readonly signal?: AbortSignal
}

/**
 * For `get`, the value of the item (null: absent, or locked); for `delete`, whether there was one; for `set`, true. Or
 * what went wrong.
 */
export type KeychainAnswer =
  | { readonly ok: true; readonly value: string | boolean | null }
  | {
      readonly ok: false
      readonly reason: 'no_addon' | 'no_module' | 'no_keychain' | 'locked' | 'timeout' | 'refused' | 'crashed'
      readonly detail: string
    }

export interface Interrupts {
  /** Aborts with an `InterruptedError` when the person presses Ctrl-C or the process is asked to end. */
  readonly signal: AbortSignal
  /**
   * Runs work that must not be interrupted (from sending a refresh token to storing its successor): a signal that
   * arrives meanwhile takes effect when the work has settled.
   *
   * @param onSignal called with a signal that arrives and has to wait.
   */
  shield<T>(work: () => Promise<T>, onSignal?: (signal: NodeJS.Signals) => void): Promise<T>
}
