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
  /** Settles with the match when the output (both streams, as it came) matches; rejects when the process ends first. */
  seen(pattern: RegExp): Promise<RegExpExecArray>
  type(text: string): void
}

export interface StartOptions {
  readonly env?: Readonly<Record<string, string | undefined>>
  /** Written to stdin, which is then closed; `open` leaves it open; nothing: closed from the start. */
  readonly stdin?: string | 'open'
  readonly nodeOptions?: readonly string[]
  /** In a process group of its own, as a shell starts it: `interruptGroup` is its Ctrl-C. */
  readonly group?: true
  /** On a pseudo-terminal of util-linux's `script`: what is written to either stream comes as stdout, with CRLF. */
  readonly terminal?: boolean
}

export interface ScriptOptions extends Pick<StartOptions, 'env' | 'terminal'> {
  /** `bash` by default. */
  readonly shell?: string
}

export interface World {
  readonly home: string
  readonly env: Record<string, string>
  /** Starts the built program as a process of its own. */
  start(words: readonly string[], options?: StartOptions): Running
  /** Runs the built program to its end. */
  run(words: readonly string[], options?: StartOptions): Promise<Ended>
  /** Runs a script in a real shell; `install` makes `mailclaim` one of its words. On a terminal, nobody types. */
  script(text: string, options?: ScriptOptions): Promise<Ended>
}

export interface ServedWorld extends World {
  readonly service: {
    readonly base_url: string
    readonly dns: string
    readonly client_id: string
    readonly api_key: string
  }
  /** Signs in with the file store, the test being the browser. */
  login(words?: readonly string[]): Promise<Ended>
  /** A request to the sandbox's control plane. */
  control(method: 'GET' | 'POST' | 'PUT' | 'DELETE', path: string, body?: unknown): Promise<unknown>
  /** Publishes the records of claims, or plants a mistake. */
  publish(domains: readonly string[], mistake?: string): Promise<void>
}

/** Where the end of a world is registered: with the test that runs, unless a whole file shares it. */
export type OnEnd = (end: () => void) => void

/** Ctrl-C: SIGINT for every process of the group. */
export function interruptGroup({ child }: Running): void {
  if (child.pid !== undefined) process.kill(-child.pid, 'SIGINT')
}

/** A home directory of its own and nothing of this machine's environment that the program would heed. */
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
    child.stdin?.on('error', () => {}) // The program may end before it has read everything.
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

/** A world with a sandbox in a process of its own, which the program is pointed at by its environment. */
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
 * One sandbox for a whole file, since starting a process takes longer than most stories. To be called at the top of
 * the file.
 *
 * @returns what makes a world with a home of its own for each test, at that sandbox.
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

/** Makes `mailclaim` a word of the shells that run in this world, as an installation would. */
export function install(world: World): void {
  const bin = join(world.home, 'bin')
  mkdirSync(bin, { recursive: true })
  program(bin, 'mailclaim', `exec '${process.execPath}' '${PROGRAM}' "$@"`)
  world.env['PATH'] = `${bin}:${world.env['PATH']}`
}

/** Writes a shell script that can be run by its name. */
export function program(directory: string, name: string, script: string): void {
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

  const control: ServedWorld['control'] = async (method, path, body) => {
    const response = await fetch(`${service.base_url}/_sandbox/${path}`, {
      method,
      ...(body === undefined
        ? {}
        : { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } }),
    })
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
