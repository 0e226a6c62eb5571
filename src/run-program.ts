import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { delimiter, join } from 'node:path'
import type { Readable } from 'node:stream'
import { StringDecoder } from 'node:string_decoder'
import { setTimeout as sleep } from 'node:timers/promises'
import type { ProgramEnd, ProgramRequest } from './context.ts'

export interface ProgramOptions {
  /** To which the request's variables are added. */
  readonly environment: Readonly<Record<string, string | undefined>>
  readonly platform: NodeJS.Platform
}

/** Until a command that was asked to end is killed, in milliseconds. */
const TERMINATION_MS = 5000
/** How long the output may stay open after the command has ended, because it started a program in the background. */
const OUTPUT_MS = 500
/** How often to look whether all have ended. */
const LOOK_MS = 50
/** UTF-16 units: a longer line is passed on in pieces. */
const MAX_LINE = 8192

/**
 * Runs a command to its end by the shell, without input, and in a process group of its own, so that whatever it starts can be
 * ended with it. Its lines are passed on as they come, those of standard output and standard error alike. When the time is up or
 * the signal aborts, the group gets SIGTERM, and SIGKILL five seconds later; on Windows, which has neither, all of it ends at once.
 *
 * @throws the signal's reason, after the command has ended
 */
export async function runProgram(
  { command, variables, timeoutMs, onLine, signal }: ProgramRequest,
  { environment, platform }: ProgramOptions,
): Promise<ProgramEnd> {
  signal?.throwIfAborted()
  const isWindows = platform === 'win32'
  let child: ChildProcess | undefined
  /** @param name 0 only looks. @returns whether anything is left to get it */
  const kill = (name: NodeJS.Signals | 0): boolean => {
    if (child?.pid === undefined) return false
    try {
      return isWindows ? child.kill(name) : process.kill(-child.pid, name)
    } catch {
      return false
    }
  }
  const timers: NodeJS.Timeout[] = []
  let timedOut = false
  let isKilled = false
  let treeEnded: Promise<void> | undefined
  const end = () => {
    if (isWindows) {
      treeEnded = endTree(child?.pid, environment).finally(() => kill('SIGKILL'))
      return
    }
    kill('SIGTERM')
    timers.push(
      setTimeout(() => {
        isKilled = true
        kill('SIGKILL')
      }, TERMINATION_MS),
    )
  }
  try {
    child = spawn(command, {
      shell: true,
      env: { ...environment, ...variables },
      stdio: ['ignore', 'pipe', 'pipe'],
      detached: !isWindows,
      windowsHide: true,
    })
    if (child.pid === undefined) await once(child, 'spawn')
    // Nothing else than a failed start can come.
    child.on('error', () => {})
    signal?.addEventListener('abort', end, { once: true })
    timers.push(
      setTimeout(() => {
        timedOut = true
        end()
      }, timeoutMs),
    )
    const output = Promise.all([child.stdout, child.stderr].map((stream) => passLines(stream, onLine)))
    const [code, killedBy] = (await once(child, 'exit')) as [number | null, NodeJS.Signals | null]
    // What it started may still be running.
    await treeEnded
    while ((signal?.aborted || timedOut) && !isKilled && kill(0)) await sleep(LOOK_MS)
    await Promise.race([output, sleep(OUTPUT_MS, undefined, { ref: false })])
    signal?.throwIfAborted()
    if (timedOut) return { kind: 'timed_out' }
    return killedBy === null ? { kind: 'exited', code: code ?? 0 } : { kind: 'killed', signal: killedBy }
  } catch (error) {
    if (child?.pid !== undefined || signal?.aborted) throw error
    return { kind: 'not_started', error: error as NodeJS.ErrnoException }
  } finally {
    signal?.removeEventListener('abort', end)
    for (const timer of timers) clearTimeout(timer)
    child?.stdout?.destroy()
    child?.stderr?.destroy()
  }
}

/**
 * Opens an address as xdg-open does: with the first command of `BROWSER` that starts, else with the system's browser. A command with
 * `%s` at its end may have arguments; any other is one word, blanks included. No shell sees the address.
 */
export async function openBrowser(url: string, commands?: string): Promise<void> {
  const { default: open } = await import('open')
  const app = commands?.split(delimiter).map((command) => {
    const [name = '', ...words] = command.endsWith('%s')
      ? command.slice(0, -2).trim().split(/\s+/)
      : [command]
    return { name, arguments: words }
  })
  const child = await open(url, app && { app })
  if (child.pid === undefined) await once(child, 'spawn')
  child.unref()
}

/** Ends a process of Windows with all that it has started. Never throws. */
async function endTree(id: number | undefined, { SystemRoot }: ProgramOptions['environment']): Promise<void> {
  const taskkill = join(SystemRoot ?? 'C:\\Windows', 'System32', 'taskkill.exe')
  await new Promise((done) => {
    execFile(taskkill, ['/PID', String(id), '/T', '/F'], { windowsHide: true }, done)
  })
}

async function passLines(stream: Readable | null, onLine: (line: string) => Promise<void>): Promise<void> {
  if (stream === null) return
  const decoder = new StringDecoder('utf8')
  let rest = ''
  try {
    for await (const bytes of stream) {
      const lines = (rest + decoder.write(bytes as Buffer)).split(/\r?\n/)
      rest = lines.pop() ?? ''
      for (const line of lines) await onLine(line)
      for (; rest.length > MAX_LINE; rest = rest.slice(MAX_LINE)) await onLine(rest.slice(0, MAX_LINE))
    }
  } catch {
    // Destroyed, because a program in the background keeps it open.
  }
  const last = rest + decoder.end()
  if (last !== '') await onLine(last)
}
