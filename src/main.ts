import { randomBytes } from 'node:crypto'
import { fstatSync, readFileSync, writeSync } from 'node:fs'
import { uptime } from 'node:os'
import { join } from 'node:path'
import { isatty } from 'node:tty'
import { setFlagsFromString } from 'node:v8'
import { run } from './cli.ts'
import {
  type Clock,
  type Context,
  type Directories,
  type DnsNetwork,
  type Environment,
  type HttpTransport,
  type Input,
  type Output,
  OutputClosedError,
} from './context.ts'
import { CliError, Exit, type ExitCode } from './errors.ts'
import { platformDirectories } from './settings/paths.ts'
import { watchSignals } from './signals.ts'

/** Put in by the build. */
declare const MAILCLAIM_VERSION: string

/** Builds the real effects and runs the program; the only reader of the environment, argv and signals. */
export async function main(): Promise<ExitCode> {
  const environment = readEnvironment(process.env)
  const signals = watchSignals(process)
  const http = lazyTransport(environment)
  const context: Context = {
    program: { version: MAILCLAIM_VERSION, node: process.execPath, script: process.argv[1] ?? '' },
    environment,
    directories: readDirectories(process.env),
    platform: process.platform,
    stdin: realInput(),
    stdout: realOutput(() => process.stdout, 1),
    stderr: realOutput(() => process.stderr, 2, 'may be lost'),
    clock,
    random: { bytes: (length) => randomBytes(length), fraction: () => Math.random() },
    http,
    dns: lazyDns(),
    browser: {
      open: async (url) => {
        const { openBrowser } = await import('./oauth/browser.ts')
        await openBrowser(url)
      },
    },
    prompts: {
      input: async (question) => (await loadPrompts(context)).input(question),
      password: async (question) => (await loadPrompts(context)).password(question),
      confirm: async (question) => (await loadPrompts(context)).confirm(question),
      select: async (question) => (await loadPrompts(context)).select(question),
    },
    keychain: {
      call: async (request) => {
        const { createKeychain } = await import('./credentials/keychain-process.ts')
        const keychain = createKeychain({
          node: process.execPath,
          script: join(import.meta.dirname, 'keychain-helper.js'),
          environment: keychainEnvironment(process.env),
        })
        return keychain.call(request)
      },
    },
    interrupts: signals.interrupts,
  }
  try {
    return await Promise.race([run(process.argv.slice(2), context), signals.abandoned])
  } finally {
    signals.stop()
    await http.close()
  }
}

async function loadPrompts(context: Context): Promise<Context['prompts']> {
  const { createPrompts } = await import('./terminal/prompts.ts')
  return createPrompts(context)
}

function readEnvironment(variables: NodeJS.ProcessEnv): Environment {
  const text = <K extends keyof Environment>(key: K, ...names: readonly string[]) => {
    const value = names
      .map((name) => variables[name])
      .find((candidate) => candidate !== undefined && candidate !== '')
    return value === undefined ? {} : ({ [key]: value } as { [key in K]: string })
  }
  return {
    ...text('baseUrl', 'MAILCLAIM_BASE_URL'),
    ...text('clientId', 'MAILCLAIM_CLIENT_ID'),
    ...text('apiKey', 'MAILCLAIM_API_KEY'),
    ...text('profile', 'MAILCLAIM_PROFILE'),
    ...text('store', 'MAILCLAIM_STORE'),
    ...text('resolver', 'MAILCLAIM_RESOLVER'),
    ...text('authoritativePort', 'MAILCLAIM_AUTHORITATIVE_PORT'),
    ...text('forceColor', 'FORCE_COLOR'),
    ...text('term', 'TERM'),
    ...text('colorterm', 'COLORTERM'),
    // The lower-case names are the older ones and win, as in curl.
    ...text('httpProxy', 'http_proxy', 'HTTP_PROXY'),
    ...text('httpsProxy', 'https_proxy', 'HTTPS_PROXY'),
    ...text('noProxy', 'no_proxy', 'NO_PROXY'),
    ...text('dbusAddress', 'DBUS_SESSION_BUS_ADDRESS'),
    // https://no-color.org: present and not empty, whatever its value.
    noColor: (variables['NO_COLOR'] ?? '') !== '',
    ci: (variables['CI'] ?? '') !== '' && variables['CI'] !== 'false',
    ssh: (variables['SSH_CONNECTION'] ?? variables['SSH_TTY'] ?? '') !== '',
  }
}

/** What a keychain needs to be found: the bus, the person's folders, the screen for a prompt. Nothing of ours. */
function keychainEnvironment(variables: NodeJS.ProcessEnv): Record<string, string> {
  const names =
    /^(DBUS_SESSION_BUS_ADDRESS|XDG_RUNTIME_DIR|XDG_DATA_HOME|XDG_CURRENT_DESKTOP|DISPLAY|WAYLAND_DISPLAY|XAUTHORITY|HOME|USER|LOGNAME|PATH|LANG|LC_[A-Z]+|TMPDIR|LD_LIBRARY_PATH|SYSTEMROOT|SYSTEMDRIVE|WINDIR|USERPROFILE|APPDATA|LOCALAPPDATA|TEMP|TMP)$/i
  return Object.fromEntries(
    Object.entries(variables).filter(
      (entry): entry is [string, string] => names.test(entry[0]) && entry[1] !== undefined,
    ),
  )
}

/** Looked up when a command asks: help and the version have no use for them. */
function readDirectories(variables: NodeJS.ProcessEnv): Directories {
  let found: Directories | undefined
  const usual = () => {
    found ??= platformDirectories()
    return found
  }
  return {
    get config() {
      return variables['MAILCLAIM_CONFIG_DIR'] || usual().config
    },
    get state() {
      return variables['MAILCLAIM_STATE_DIR'] || usual().state
    },
  }
}

/** 24.8 days: what a timer of Node holds. */
const LONGEST_TIMER_MS = 2 ** 31 - 1

const clock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  sinceBoot: () => ({ seconds: uptime(), boot: bootId() }),
  sleep: (ms, signal) =>
    new Promise((resolve, reject) => {
      if (signal?.aborted) return reject(signal.reason)
      const abort = () => {
        clearTimeout(timer)
        reject(signal?.reason)
      }
      const timer = setTimeout(
        () => {
          signal?.removeEventListener('abort', abort)
          resolve()
          // A longer timer would go off at once.
        },
        Math.min(ms, LONGEST_TIMER_MS),
      )
      signal?.addEventListener('abort', abort, { once: true })
    }),
}

function bootId(): string | undefined {
  try {
    return readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()
  } catch {
    return undefined // Only Linux has it.
  }
}

/** What is no character device is no terminal: `node:tty`, and the network with it, is loaded only for one that is. */
function isTerminal(fd: number): boolean {
  try {
    if (!fstatSync(fd).isCharacterDevice()) return false
  } catch {
    // A closed descriptor, or a system that does not tell.
  }
  return isatty(fd)
}

function realInput(): Input {
  return {
    get isTTY() {
      return isTerminal(0)
    },
    // Touched only when something is read: opening it keeps the process alive.
    get stream() {
      return process.stdin
    },
  }
}

/** A pipe that nobody has written to takes as much at once on every system. */
const FIRST_PIECE_BYTES = 16 * 1024

/**
 * @param loss `may be lost` for what is said beside the data: with a log that is full, or whose reader went away, the
 *   work still goes on, and the exit code still tells how it ended. To end quietly would say that it was done.
 */
function realOutput(stream: () => NodeJS.WriteStream, fd: number, loss?: 'may be lost'): Output {
  let closed = false
  let listening = false
  let first = true
  const throughStream = (data: string | Uint8Array) =>
    new Promise<void>((resolve, reject) => {
      if (!listening) {
        listening = true
        // Without a listener the error would also be thrown where nobody can catch it.
        stream().on('error', () => {
          closed = true
        })
      }
      stream().write(data, (error) => (error ? reject(error) : resolve()))
    })
  return {
    get isTTY() {
      return isTerminal(fd)
    },
    get columns() {
      // A terminal that does not know its width says 0, and no line would ever fit.
      return isTerminal(fd) ? stream().columns || undefined : undefined
    },
    async write(text) {
      if (closed && loss !== undefined) return
      if (closed) throw new OutputClosedError('the reader went away')
      try {
        const rest: string | Uint8Array = first ? writeDirectly(fd, text) : text
        first = false
        if (rest.length > 0) await throughStream(rest)
      } catch (error) {
        closed = true
        if (loss !== undefined) return
        const code = (error as NodeJS.ErrnoException).code
        const gone = code === 'EPIPE' || code === 'EOF'
        throw gone ? new OutputClosedError('the reader went away') : outputFailed(error as Error)
      }
    },
  }
}

/**
 * Writes to a file or a pipe without a stream, which would load the network with it: most commands write once and are
 * done.
 *
 * @returns what could not be written that way, and has to go through the stream.
 */
function writeDirectly(fd: number, text: string): string | Uint8Array {
  if (text.length > FIRST_PIECE_BYTES / 3 || process.platform === 'win32' || isTerminal(fd)) return text
  const bytes = Buffer.from(text)
  try {
    return bytes.subarray(writeSync(fd, bytes))
  } catch (error) {
    // Another program has made the pipe non-blocking, and it is full.
    if ((error as NodeJS.ErrnoException).code === 'EAGAIN') return bytes
    throw error
  }
}

/** A full disk, say: what has been written is not whole. */
function outputFailed(error: Error): CliError {
  return new CliError('output_failed', Exit.bug, `the output cannot be written: ${error.message}`, {
    hint: 'what has been written is not complete; check where it goes, and run the command again',
    cause: error,
  })
}

/** Loads the DNS client when the first question is asked. */
function lazyDns(): DnsNetwork {
  const load = () => import('./dns/network.ts').then(({ createDnsNetwork }) => createDnsNetwork())
  return {
    udp: async (exchange) => (await load()).udp(exchange),
    tcp: async (exchange) => (await load()).tcp(exchange),
    systemResolvers: async () => (await load()).systemResolvers(),
  }
}

/** Loads the HTTP client when the first request is made: most commands that only print make none. */
function lazyTransport(environment: Environment): HttpTransport {
  let loading: Promise<HttpTransport> | undefined
  let sent = 0
  return {
    send: async (request) => {
      if (++sent === 3) stayLean()
      loading ??= import('./service/transport.ts').then(({ createTransport }) => createTransport(environment))
      return (await loading).send(request)
    },
    close: async () => {
      if (loading !== undefined) await (await loading).close()
    },
  }
}

/** The newest release of Node on which V8 is known to take the flags below; it complains of others on stderr. */
const NEWEST_TRIED = 26

/**
 * A command that asks again and again, for the pages of a list or for how something gets on, waits most of its time.
 * Left to itself, V8 takes up to 30 MiB more meanwhile, for young objects and for optimizing compilers, and only the
 * table of a very long list is faster for it: docs/benchmarks.md. Both flags are limits that it looks up at every decision.
 */
function stayLean(): void {
  if (Number.parseInt(process.versions.node, 10) > NEWEST_TRIED) return
  setFlagsFromString('--semi-space-growth-factor=1')
  setFlagsFromString('--max-optimized-bytecode-size=1')
}
