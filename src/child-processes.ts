import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { delimiter, join } from 'node:path'
import type { Readable } from 'node:stream'
import { StringDecoder } from 'node:string_decoder'
import { setTimeout as sleep } from 'node:timers/promises'
import type { ShellCommandEnd, ShellCommandRequest } from './context.ts'

export interface ShellEnvironment {
  /** Environment of the shell, before the `variables` of the `ShellCommandRequest` are added. */
  readonly environment: Readonly<Record<string, string | undefined>>
  readonly platform: NodeJS.Platform
}

/** Milliseconds that a shell command's process group has to end after SIGTERM, before SIGKILL. */
const SIGTERM_GRACE_MS = 5000
/** Milliseconds to wait for the end of output after the command has exited: a background process may keep the pipe open forever. */
const OUTPUT_GRACE_MS = 500
/** Milliseconds between checks whether the process group of a shell command has ended. */
const GROUP_POLL_MS = 50
/** Length in UTF-16 units above which an unfinished line of output is passed on in pieces, so that memory stays bounded. */
const MAX_LINE = 8192

/**
 * Runs a command in the shell until it ends, without stdin. On timeout or abort, its process group gets SIGTERM and, if it is still
 * there after `SIGTERM_GRACE_MS`, SIGKILL; on Windows, which has no signals, the process tree is killed at once.
 *
 * @throws the reason of `signal` if `signal` aborts, after the shell has ended
 */
export async function runInShell(
  { command, variables, timeoutMs, onLine, signal }: ShellCommandRequest,
  { environment, platform }: ShellEnvironment,
): Promise<ShellCommandEnd> {
  signal?.throwIfAborted()
  const isWindows = platform === 'win32'
  let child: ChildProcess | undefined
  /**
   * Sends a signal to the process group (on Windows, to the shell); 0 sends none, but tests whether a process is left.
   *
   * @returns whether this succeeded
   */
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
      }, SIGTERM_GRACE_MS),
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
    // Ignore the event `error`, which Node would throw without a listener: after a successful spawn, it reports a failed `kill`.
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
    await treeEnded
    // After a timeout or abort, wait for the processes that the shell has left in its group, until they end or get SIGKILL.
    while ((signal?.aborted || timedOut) && !isKilled && kill(0)) await sleep(GROUP_POLL_MS)
    await Promise.race([output, sleep(OUTPUT_GRACE_MS, undefined, { ref: false })])
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
 * Opens an address with the system's browser, or with the first command of `BROWSER` that exits with 0. The address is passed as
 * the last argument, even if the command has `%s` elsewhere. Rejects if no command starts or all commands of `BROWSER` fail.
 *
 * @param browserVariable value of `BROWSER`, if it is set
 */
export async function openBrowser(url: string, browserVariable?: string): Promise<void> {
  const { default: open } = await import('open')
  const app = browserVariable?.split(delimiter).flatMap((command) => {
    const [name = '', ...words] = command.split(/\s+/).filter((word) => !/^["']?%[su]["']?$/i.test(word))
    // First try a command without `%s` as the path of a program, because the path may contain spaces.
    return [...(/%s/i.test(command) ? [] : [{ name: command }]), { name, arguments: words }]
  })
  const child = await open(url, app && { app })
  if (child.pid === undefined) await once(child, 'spawn')
  child.unref()
}

/** Kills a Windows process and its descendants with taskkill. Never rejects. */
async function endTree(id: number | undefined, { SystemRoot }: NodeJS.ProcessEnv): Promise<void> {
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
    // Ignore the error: reading throws if `runInShell` has destroyed the stream, as when a background process kept the pipe open.
    // The text read so far is passed to `onLine` below.
  }
  const last = rest + decoder.end()
  if (last !== '') await onLine(last)
}
