import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { access, constants, open, stat } from 'node:fs/promises'
import { join } from 'node:path'
import type { Readable } from 'node:stream'
import { StringDecoder } from 'node:string_decoder'
import { setTimeout as sleep } from 'node:timers/promises'
import type { ProgramEnd, ProgramNotStarted, ProgramRequest } from '../context.ts'
import { CliError, Exit } from '../errors.ts'

export interface ProgramOptions {
  /** The environment of the program, to which the request's variables are added. */
  readonly environment: Readonly<Record<string, string | undefined>>
  readonly platform: NodeJS.Platform
}

/** Until a program that was asked to end is killed, in milliseconds. */
const TERMINATION_MS = 5000
/** The same after Ctrl-C: this process ends 1.5 seconds after the signal, and must not leave the program behind. */
const INTERRUPTION_MS = 1000
/** How long the output may stay open after the program has ended, because it started another one in the background. */
const OUTPUT_MS = 500
/** UTF-16 units: a longer line is passed on in pieces. */
const MAX_LINE = 8192
/** The same of all lines of a stream: a log on a disk must not grow without end. */
const MAX_OUTPUT = 4 * 1024 * 1024

/**
 * Runs a program to its end: without a shell, without input, and in a process group of its own, so that whatever it starts
 * can be ended with it. Its lines are passed on as they come, those of standard output and standard error alike.
 *
 * @throws whatever the signal's reason is, after the program has ended
 */
export async function runProgram(
  { command: [file, ...args], variables, timeoutMs, onLine, signal }: ProgramRequest,
  { environment, platform }: ProgramOptions,
): Promise<ProgramEnd> {
  signal?.throwIfAborted()
  const hasGroup = platform !== 'win32'
  let child: ChildProcess | undefined
  const kill = (name: NodeJS.Signals) => {
    if (child?.pid === undefined) return
    try {
      if (hasGroup) process.kill(-child.pid, name)
      else child.kill(name)
    } catch {
      // It has ended.
    }
  }
  const killNow = () => kill('SIGKILL')
  // Before it starts: a signal in between would leave it running.
  if (hasGroup) killOnQuit(killNow)
  try {
    child = spawn(file, args, {
      env: { ...environment, ...variables },
      stdio: ['ignore', 'pipe', 'pipe'],
      detached: hasGroup,
      windowsHide: true,
    })
    if (child.pid === undefined) await once(child, 'spawn')
  } catch (error) {
    forgetOnQuit(killNow)
    const firstLine = await firstLineOf(file)
    return { kind: 'not_started', error: error as NodeJS.ErrnoException, ...(firstLine && { firstLine }) }
  }
  // Nothing else than a failed start can come.
  child.on('error', () => {})
  const timers: NodeJS.Timeout[] = []
  let timedOut = false
  const end = (name: NodeJS.Signals, killAfterMs: number) => {
    kill(name)
    timers.push(setTimeout(() => kill('SIGKILL'), killAfterMs))
  }
  const interrupt = () => {
    const { reason } = signal ?? {}
    end(reason instanceof CliError && reason.exit === Exit.terminated ? 'SIGTERM' : 'SIGINT', INTERRUPTION_MS)
  }
  signal?.addEventListener('abort', interrupt, { once: true })
  timers.push(
    setTimeout(() => {
      timedOut = true
      end('SIGTERM', TERMINATION_MS)
    }, timeoutMs),
  )
  const output = Promise.all([child.stdout, child.stderr].map((stream) => passLines(stream, onLine)))
  try {
    const [code, killedBy] = (await once(child, 'exit')) as [number | null, NodeJS.Signals | null]
    if (signal?.aborted || timedOut) kill('SIGKILL') // What it started may still be running.
    await Promise.race([output, sleep(OUTPUT_MS, undefined, { ref: false })])
    signal?.throwIfAborted()
    if (timedOut) return { kind: 'timed_out' }
    return killedBy === null ? { kind: 'exited', code: code ?? 0 } : { kind: 'killed', signal: killedBy }
  } finally {
    signal?.removeEventListener('abort', interrupt)
    forgetOnQuit(killNow)
    for (const timer of timers) clearTimeout(timer)
    child.stdout?.destroy()
    child.stderr?.destroy()
  }
}

/**
 * Why a program couldn't be started, found as `execvp` looks for it; undefined if nothing prevents it, or nobody knows: Windows
 * has rules of its own, and so has a system without a PATH.
 */
export async function checkProgram(
  file: string,
  { environment, platform }: ProgramOptions,
): Promise<ProgramNotStarted | undefined> {
  const { PATH } = environment
  if (platform === 'win32' || PATH === undefined) return undefined
  const places = file.includes('/') ? [file] : PATH.split(':').map((directory) => join(directory, file))
  let problem: ProgramNotStarted | undefined
  for (const place of places) {
    const found = await problemOf(place)
    if (found === undefined) return undefined
    // A file that is there, but can't be run, says more than its absence elsewhere.
    if (problem === undefined || (problem.error.code === 'ENOENT' && found.error.code !== 'ENOENT'))
      problem = found
  }
  return problem
}

/** @param path with its directory */
async function problemOf(path: string): Promise<ProgramNotStarted | undefined> {
  let firstLine: string | undefined
  try {
    if ((await stat(path)).isDirectory())
      throw Object.assign(new Error('it is a directory'), { code: 'EISDIR' })
    await access(path, constants.X_OK)
    firstLine = await firstLineOf(path)
    const [, interpreter] = /^#![ \t]*([^ \t]+)/.exec(firstLine ?? '') ?? []
    if (interpreter !== undefined) await access(interpreter)
    return undefined
  } catch (error) {
    return { kind: 'not_started', error: error as NodeJS.ErrnoException, ...(firstLine && { firstLine }) }
  }
}

/** The most that systems read of an interpreter line, in bytes. */
const MAX_FIRST_LINE = 256

/** The interpreter line of a script that was named by its path; undefined if it has none. */
async function firstLineOf(file: string): Promise<string | undefined> {
  if (!file.includes('/')) return undefined
  try {
    const script = await open(file)
    try {
      const { buffer, bytesRead } = await script.read(Buffer.alloc(MAX_FIRST_LINE))
      return /^#!.*/s.exec(buffer.toString('utf8', 0, bytesRead).split('\n', 1)[0] ?? '')?.[0]
    } finally {
      await script.close()
    }
  } catch {
    return undefined
  }
}

/** For each running program: kills it. */
const running = new Set<() => void>()

// Ctrl-\ reaches this process alone, and ends it at once. One listener serves all: Node warns of more than ten.
function quit(): void {
  for (const kill of running) kill()
  process.off('SIGQUIT', quit).kill(process.pid, 'SIGQUIT')
}

function killOnQuit(kill: () => void): void {
  if (running.size === 0) process.on('SIGQUIT', quit)
  running.add(kill)
}

function forgetOnQuit(kill: () => void): void {
  running.delete(kill)
  if (running.size === 0) process.off('SIGQUIT', quit)
}

async function passLines(stream: Readable | null, onLine: (line: string) => Promise<void>): Promise<void> {
  if (stream === null) return
  const decoder = new StringDecoder('utf8')
  let rest = ''
  let left = MAX_OUTPUT
  try {
    for await (const bytes of stream) {
      if (left <= 0) continue
      left -= (bytes as Buffer).length
      const lines = (rest + decoder.write(bytes as Buffer)).split(/\r?\n/)
      rest = lines.pop() ?? ''
      for (const line of lines) await onLine(line)
      for (; rest.length > MAX_LINE; rest = rest.slice(MAX_LINE)) await onLine(rest.slice(0, MAX_LINE))
      if (left > 0) continue
      for (const line of [rest, '… the rest of what it prints is left out']) await onLine(line)
      rest = ''
    }
  } catch {
    // Destroyed, because a program in the background keeps it open.
  }
  const last = left > 0 ? rest + decoder.end() : ''
  if (last !== '') await onLine(last)
}
