import { randomBytes } from 'node:crypto'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { setFlagsFromString } from 'node:v8'
import { runCli } from './cli.ts'
import { type Context, type EnvironmentValues, type HttpTransport, HttpTransportError } from './context.ts'
import type { ExitCode } from './errors.ts'
import { resolveDirectories } from './settings/paths.ts'
import { ALL_SETTINGS } from './settings/table.ts'
import { abortOnSignals } from './signals.ts'
import { closeLostTerminals, createOutputStream, createStdin, isTerminal } from './streams.ts'
import { sanitizeLine } from './terminal/sanitize.ts'

/** Version from package.json, defined by the build. */
declare const MAILCLAIM_VERSION: string

/** Builds the real `Context` and runs the program. Other modules take environment variables from `Context`. */
export async function main(): Promise<ExitCode> {
  const { platform } = process
  const environment = readEnvironment(process.env)
  const directories = resolveDirectories(process)
  // Delete mailclaim's variables, which may hold an API key: child processes, such as a browser, inherit the environment.
  for (const name of Object.keys(process.env)) if (/^MAILCLAIM_/i.test(name)) delete process.env[name]
  const signals = abortOnSignals(process, [0, 1, 2].some(isTerminal))
  const { interrupts } = signals
  // Continue after an unhandled rejection: by default, it would end the process, possibly between sending a refresh token and
  // storing its successor.
  process.on('unhandledRejection', (reason) => {
    if (process.argv.includes('--verbose')) process.stderr.write(`${sanitizeLine(String(reason))}\n`)
  })
  const http = lazyTransport(environment)
  const dns = lazily(async () => (await import('./dns/wire/network.ts')).createDnsNetwork())
  const prompts = lazily(async () => (await import('./terminal/prompts.ts')).createPrompts(context))
  const context: Context = {
    installation: {
      version: MAILCLAIM_VERSION,
      get host() {
        return hostname()
      },
      schemas: join(import.meta.dirname, '..', 'docs', 'schemas'),
    },
    environment,
    directories,
    platform,
    stdin: createStdin(),
    stdout: createOutputStream(() => process.stdout, 1, platform, interrupts.signal),
    stderr: createOutputStream(() => process.stderr, 2, platform, interrupts.signal, 'may be lost'),
    clock,
    random: { bytes: (length) => randomBytes(length), fraction: () => Math.random() },
    http,
    dns: {
      udp: async (exchange) => (await dns()).udp(exchange),
      tcp: async (exchange) => (await dns()).tcp(exchange),
      systemResolvers: async () => (await dns()).systemResolvers(),
    },
    openBrowser: async (url) => {
      const { openBrowser } = await import('./child-processes.ts')
      await openBrowser(url, environment.browser)
    },
    runInShell: async (request) => {
      const { runInShell } = await import('./child-processes.ts')
      return runInShell(request, { environment: process.env, platform })
    },
    prompts: {
      input: async (question) => (await prompts()).input(question),
      password: async (question) => (await prompts()).password(question),
      confirm: async (question) => (await prompts()).confirm(question),
      select: async (question) => (await prompts()).select(question),
    },
    keychain: {
      call: async (request) => {
        const { createKeychain } = await import('./credentials/keychain-process.ts')
        const script = join(import.meta.dirname, 'keychain-helper.js')
        return createKeychain(script, keychainEnvironment(process.env)).call(request)
      },
    },
    interrupts,
  }
  try {
    return await Promise.race([runCli(process.argv.slice(2), context), signals.forcedExit])
  } finally {
    signals.stop()
    await http.close()
    closeLostTerminals()
  }
}

/** Returns a function that calls `load` on its first call, and returns the same promise on later calls. */
function lazily<T>(load: () => Promise<T>): () => Promise<T> {
  let loading: Promise<T> | undefined
  return () => {
    loading ??= load()
    return loading
  }
}

function readEnvironment(variables: NodeJS.ProcessEnv): EnvironmentValues {
  const text = <K extends keyof EnvironmentValues>(key: K, ...names: readonly string[]) => {
    const value = names.map((name) => variables[name]).find(Boolean)
    return value === undefined ? {} : ({ [key]: value } as { [key in K]: string })
  }
  return {
    settings: Object.fromEntries(
      ALL_SETTINGS.flatMap(([key, { variable }]) => {
        const value = variable && variables[variable]
        return value ? [[key, value]] : []
      }),
    ),
    ...text('apiKey', 'MAILCLAIM_API_KEY'),
    isKeyEmpty: variables['MAILCLAIM_API_KEY'] === '',
    ...text('storeKey', 'MAILCLAIM_STORE_KEY'),
    ...text('storeUser', 'MAILCLAIM_STORE_USER'),
    ...text('storePassword', 'MAILCLAIM_STORE_PASSWORD'),
    ...text('storePasswordFile', 'MAILCLAIM_STORE_PASSWORD_FILE'),
    ...text('forceColor', 'FORCE_COLOR'),
    ...text('term', 'TERM'),
    ...text('browser', 'BROWSER'),
    // Lower-case proxy variables take precedence over upper-case ones, as in curl.
    ...text('httpsProxy', 'https_proxy', 'HTTPS_PROXY'),
    ...text('noProxy', 'no_proxy', 'NO_PROXY'),
    ...(variables['NODE_TLS_REJECT_UNAUTHORIZED'] === '0' && { tlsUnchecked: true as const }),
    // `NO_COLOR` counts with any value except an empty one (https://no-color.org).
    noColor: Boolean(variables['NO_COLOR']),
    ci: Boolean(variables['CI']) && variables['CI'] !== 'false',
    ssh: Boolean(variables['SSH_CONNECTION'] || variables['SSH_TTY']),
  }
}

/** Returns the environment variables that a keychain needs, such as the address of D-Bus and the display for prompts. */
function keychainEnvironment(variables: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const names =
    /^(DBUS_SESSION_BUS_ADDRESS|XDG_RUNTIME_DIR|XDG_DATA_HOME|XDG_CURRENT_DESKTOP|DISPLAY|WAYLAND_DISPLAY|XAUTHORITY|HOME|USER|LOGNAME|PATH|LANG|LC_[A-Z]+|TMPDIR|LD_LIBRARY_PATH|SYSTEMROOT|SYSTEMDRIVE|WINDIR|USERPROFILE|APPDATA|LOCALAPPDATA|TEMP|TMP)$/i
  return Object.fromEntries(Object.entries(variables).filter(([name]) => names.test(name)))
}

/** Maximum delay of `setTimeout` in milliseconds (24.8 days). */
const MAX_TIMER_MS = 2 ** 31 - 1

const clock: Context['clock'] = {
  now: () => Date.now(),
  // Use `hrtime`, because the first use of `performance` loads another Node module, which delays the start.
  monotonic: () => Number(process.hrtime.bigint()) / 1e6,
  sleep: (ms, signal) =>
    new Promise((resolve, reject) => {
      if (signal?.aborted) return reject(signal.reason)
      const wake = () => {
        clearTimeout(timer)
        signal?.removeEventListener('abort', wake)
        if (signal?.aborted) reject(signal.reason)
        else resolve()
      }
      // Cap the delay at 24.8 days, after which the sleep ends early: `setTimeout` would turn a longer delay into 1 ms.
      const timer = setTimeout(wake, Math.min(ms, MAX_TIMER_MS))
      signal?.addEventListener('abort', wake)
    }),
  alarm(ms, ring) {
    const timer = setTimeout(ring, Math.min(ms, MAX_TIMER_MS)).unref()
    return () => clearTimeout(timer)
  },
}

function lazyTransport(environment: EnvironmentValues): HttpTransport {
  let loading: Promise<HttpTransport> | undefined
  return {
    send: async (request) => {
      loading ??= loadTransport(environment)
      return (await loading).send(request)
    },
    close: async () => (await loading?.catch(() => undefined))?.close(),
  }
}

async function loadTransport(environment: EnvironmentValues): Promise<HttpTransport> {
  // Use only V8's baseline compiler for WebAssembly (Liftoff) in Node 20: the optimizing compiler takes longer for undici's HTTP
  // parser than most commands run.
  if (process.versions.node.startsWith('20.')) setFlagsFromString('--liftoff-only')
  try {
    const { createTransport } = await import('./service/transport.ts')
    return createTransport(environment)
  } catch (error) {
    throw new HttpTransportError('aborted', 'no', 'the HTTP client could not be loaded', error)
  }
}
