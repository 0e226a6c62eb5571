import { type ChildProcess, spawn } from 'node:child_process'
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { beforeAll, onTestFinished } from 'vitest'
import { posixQuote } from '../../src/shell-quote.ts'

export const PROGRAM = fileURLToPath(new URL('../../bin/mailclaim.js', import.meta.url))

export interface Ended {
  /** The exit code, or the signal that ended the process. */
  readonly code: number | NodeJS.Signals
  readonly stdout: string
  readonly stderr: string
}

export interface Running {
  readonly child: ChildProcess
  readonly ended: Promise<Ended>
  /** Resolves with the match once stdout and stderr, interleaved, match; rejects if the process ends first. */
  seen(pattern: RegExp): Promise<RegExpExecArray>
  type(text: string): void
}

export interface StartOptions {
  readonly env?: Readonly<Record<string, string | undefined>>
  /** Text to write to stdin before closing it; `open` for a pipe that stays open; if absent, stdin is the null device. */
  readonly stdin?: string | 'open'
  readonly nodeOptions?: readonly string[]
  /** Whether to start a process group, as shells do, so that `interruptGroup` can send Ctrl-C to it. */
  readonly group?: true
  /** Whether to run on a pseudo-terminal (`script` of util-linux), whose output is all on stdout, with CRLF. */
  readonly terminal?: boolean
}

export interface ScriptOptions extends Pick<StartOptions, 'env' | 'terminal'> {
  /** The shell that runs the script. Default: `bash`. */
  readonly shell?: string
}

export interface World {
  readonly home: string
  readonly env: Record<string, string>
  /** Starts the built program as a child process. */
  start(words: readonly string[], options?: StartOptions): Running
  /** Runs the built program, and resolves when it has exited. */
  run(words: readonly string[], options?: StartOptions): Promise<Ended>
  /** Runs a script in a real shell. `install` puts `mailclaim` in its PATH. With `terminal`, nothing is typed. */
  script(text: string, options?: ScriptOptions): Promise<Ended>
}

export interface ServedWorld extends World {
  readonly service: {
    readonly base_url: string
    readonly dns: string
    readonly client_id: string
    readonly api_key: string
  }
  /** Signs in with the file store: the test opens the authorization URL instead of a browser. */
  login(words?: readonly string[]): Promise<Ended>
  /** Sends a request to the sandbox's control API. */
  control(method: 'GET' | 'POST' | 'PUT' | 'DELETE', path: string, body?: unknown): Promise<unknown>
  /** Publishes the records of the domains' claims in the sandbox's DNS, correctly or with a mistake. */
  publish(domains: readonly string[], mistake?: string): Promise<void>
}

/** Registers the cleanup of a world: `onTestFinished`, unless the tests of a file share the world. */
export type OnEnd = (end: () => void) => void

/** Sends SIGINT to every process of the group, as a terminal does for Ctrl-C. */
export function interruptGroup({ child }: Running): void {
  if (child.pid !== undefined) process.kill(-child.pid, 'SIGINT')
}

/** Creates a home directory, and an environment that has only PATH from this machine. */
export function createWorld(onEnd: OnEnd = onTestFinished): World {
  const home = mkdtempSync(join(tmpdir(), 'mailclaim-story-'))
  const running = new Set<ChildProcess>()
  onEnd(() => {
    for (const child of running) child.kill('SIGKILL')
    rmSync(home, { recursive: true, force: true })
  })
  const env: Record<string, string> = {
    PATH: process.env['PATH'] ?? '',
    HOME: home,
    LANG: 'C.UTF-8',
    TERM: 'xterm-256color',
    MAILCLAIM_CONFIG_DIR: join(home, 'config'),
    MAILCLAIM_STATE_DIR: join(home, 'state'),
  }

  function start(words: readonly string[], options: StartOptions = {}): Running {
    return startProcess([process.execPath, ...(options.nodeOptions ?? []), PROGRAM, ...words], options)
  }

  function startProcess(commandLine: readonly string[], options: StartOptions): Running {
    const merged = Object.entries({ ...env, ...options.env }).filter(
      (entry): entry is [string, string] => entry[1] !== undefined,
    )
    const [command = '', ...words] = options.terminal
      ? [
          'script',
          '--quiet',
          '--return',
          '--flush',
          '--command',
          commandLine.map(posixQuote).join(' '),
          '/dev/null',
        ]
      : commandLine
    const child = spawn(command, words, {
      env: Object.fromEntries(merged),
      cwd: home,
      detached: options.group === true,
      stdio: [options.stdin === undefined ? 'ignore' : 'pipe', 'pipe', 'pipe'],
    })
    running.add(child)
    let stdout = ''
    let stderr = ''
    let both = ''
    const watchers = new Set<() => void>()
    const note = () => {
      for (const watcher of watchers) watcher()
    }
    child.stdout?.setEncoding('utf8').on('data', (text: string) => {
      stdout += text
      both += text
      note()
    })
    child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      stderr += text
      both += text
      note()
    })
    child.stdin?.on('error', () => {}) // EPIPE: the program may exit before it has read all input.
    if (options.stdin !== undefined && options.stdin !== 'open') child.stdin?.end(options.stdin)
    const ended = new Promise<Ended>((resolve, reject) => {
      child.once('error', reject)
      child.once('close', (code, signal) => {
        running.delete(child)
        resolve({ code: signal ?? code ?? 0, stdout, stderr })
      })
    })
    return {
      child,
      ended,
      type: (text) => void child.stdin?.write(text),
      seen: (pattern) =>
        new Promise((resolve, reject) => {
          const look = () => {
            const match = pattern.exec(both)
            if (match === null) return
            watchers.delete(look)
            resolve(match)
          }
          watchers.add(look)
          look()
          void ended.then((result) =>
            reject(new Error(`ended with ${result.code} before ${pattern} was seen:\n${both}`)),
          )
        }),
    }
  }

  return {
    home,
    env,
    start,
    run: (words, options) => start(words, options).ended,
    script: (text, { shell = 'bash', ...options } = {}) =>
      startProcess([shell, '-c', text], { ...options, ...(options.terminal ? { stdin: 'open' } : {}) }).ended,
  }
}

/** Creates a world with a sandbox in a child process; environment variables give the program its addresses. */
export async function createServedWorld(
  sandboxWords: readonly string[] = ['--auto-approve'],
  onEnd: OnEnd = onTestFinished,
): Promise<ServedWorld> {
  const world = createWorld(onEnd)
  const sandbox = world.start(['sandbox', '--json', '--exit-with-stdin', ...sandboxWords], { stdin: 'open' })
  const line = await new Promise<string>((resolve, reject) => {
    if (sandbox.child.stdout === null) throw new Error('no output')
    createInterface({ input: sandbox.child.stdout }).once('line', resolve)
    void sandbox.ended.then((result) =>
      reject(new Error(`the sandbox ended with ${result.code}: ${result.stderr}`)),
    )
  })
  return pointedAt(JSON.parse(line) as ServedWorld['service'], world)
}

/**
 * Starts one sandbox for all tests of a file, because starting a process takes longer than most tests. Call this at the top
 * of the file.
 *
 * @returns a function that creates a world for a test, with its own home directory and this sandbox
 */
export function shareSandbox(sandboxWords: readonly string[] = ['--auto-approve']): () => ServedWorld {
  let service: ServedWorld['service'] | undefined
  beforeAll(async () => {
    const ends: (() => void)[] = []
    const end = () => {
      for (const each of ends) each()
    }
    try {
      service = (await createServedWorld(sandboxWords, (each) => ends.push(each))).service
    } catch (error) {
      end()
      throw error
    }
    return end
  })
  return () => {
    if (service === undefined) throw new Error('the sandbox did not start')
    return pointedAt(service, createWorld())
  }
}

/** Puts a `mailclaim` command in the PATH of this world, as an installation does. */
export function install(world: World): void {
  const bin = join(world.home, 'bin')
  mkdirSync(bin, { recursive: true })
  writeScript(bin, 'mailclaim', `exec '${process.execPath}' '${PROGRAM}' "$@"`)
  world.env['PATH'] = `${bin}:${world.env['PATH']}`
}

/** Writes an executable shell script. */
export function writeScript(directory: string, name: string, script: string): void {
  writeFileSync(join(directory, name), `#!/bin/sh\n${script}\n`)
  chmodSync(join(directory, name), 0o755)
}

function pointedAt(service: ServedWorld['service'], world: World): ServedWorld {
  Object.assign(world.env, {
    MAILCLAIM_BASE_URL: service.base_url,
    MAILCLAIM_CLIENT_ID: service.client_id,
    MAILCLAIM_RESOLVER: service.dns,
    MAILCLAIM_AUTHORITATIVE_PORT: service.dns.split(':').at(-1) ?? '',
  })

  // Close each connection: a test that blocks this process, as `spawnSync` does, would next use one that the sandbox has closed.
  const headers = { 'content-type': 'application/json', connection: 'close' }
  const control: ServedWorld['control'] = async (method, path, body) => {
    const url = `${service.base_url}/_sandbox/${path}`
    const response = await fetch(url, { method, headers, body: JSON.stringify(body) ?? null })
    const text = await response.text()
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`)
    return text === '' ? undefined : JSON.parse(text)
  }
  return {
    ...world,
    service,
    control,
    async publish(domains, mistake = 'none') {
      await Promise.all(domains.map((domain) => control('POST', `claims/${domain}/publish`, { mistake })))
    },
    async login(words = []) {
      const running = world.start(['login', '--store', 'file', '--no-browser', ...words])
      const [url] = await running.seen(/http:\/\/\S+\/oauth\/authorize\?\S+/)
      await fetch(url)
      return running.ended
    },
  }
}
