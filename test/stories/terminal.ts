import { execFileSync, spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import { install, type World } from './built-program.ts'

export interface TerminalOptions {
  readonly columns?: number
  readonly rows?: number
  readonly env?: Readonly<Record<string, string>>
}

/** A real terminal (tmux) that runs one command line, and is closed when the test ends. */
export interface Terminal {
  /** Returns the screen's text without trailing blank lines. */
  screen(): string
  /** Returns the lines as the program wrote them, with lines that the terminal wrapped joined again. */
  lines(): string[]
  /** Returns the screen's text with the escape sequences of its colors. */
  colors(): string
  /** Waits until the screen matches, and returns its text. @throws after `LIMIT_MS` */
  until(pattern: RegExp): Promise<string>
  /** Waits until the command has exited, and returns its exit code. The screen keeps the command's output. */
  exit(): Promise<number>
  /** Presses keys, by tmux's names: `Enter`, `Down`, `C-c`. */
  keys(...keys: string[]): void
  type(text: string): void
  cursorIsShown(): boolean
}

const LIMIT_MS = 30_000

/**
 * Runs a command line with `sh` in a terminal, with `mailclaim` in the PATH. When the command exits, the line `[exit N]` is
 * printed after its output.
 */
export function openTerminal(world: World, line: string, options: TerminalOptions = {}): Terminal {
  const { columns = 80, rows = 40, env = {} } = options
  const name = `mailclaim-${process.pid}-${Math.random().toString(36).slice(2)}`
  const tmux = (...words: string[]) =>
    execFileSync('tmux', ['-L', name, ...words], { encoding: 'utf8', env: { ...world.env, ...env } })
  if (!(world.env['PATH'] ?? '').includes(world.home)) install(world)
  const settings = join(world.home, `${name}.conf`)
  writeFileSync(settings, 'set -g status off\nset -g escape-time 0\nset -g default-terminal tmux-256color\n')
  const script = join(world.home, `${name}.sh`)
  const variables = Object.entries(env).map(([key, value]) => `export ${key}='${value}'\n`)
  // Trap SIGINT, so that the shell survives Ctrl-C and can print the command's exit code.
  writeFileSync(
    script,
    `trap : INT\n${variables.join('')}${line}\nprintf '[exit %s]\\n' $?\nexec cat >/dev/null\n`,
  )
  onTestFinished(() => void spawnSync('tmux', ['-L', name, 'kill-server']))
  const size = ['-x', `${columns}`, '-y', `${rows}`]
  tmux('-f', settings, 'new-session', '-d', ...size, '-c', world.home, `sh '${script}'`)

  const capture = (...words: string[]) => tmux('capture-pane', '-p', ...words).trimEnd()
  async function until(pattern: RegExp): Promise<string> {
    const end = Date.now() + LIMIT_MS
    let seen = capture()
    while (!pattern.test(seen)) {
      if (Date.now() > end) throw new Error(`${pattern} is not on the screen:\n${seen}`)
      await new Promise((resolve) => setTimeout(resolve, 30))
      seen = capture()
    }
    return seen
  }
  return {
    screen: () => capture(),
    lines: () => capture('-J').split(/[^\S\n]*\n/),
    colors: () => capture('-e'),
    until,
    exit: async () => Number(/\[exit (\d+)\]/.exec(await until(/\[exit \d+\]/))?.[1]),
    keys: (...keys) => void tmux('send-keys', ...keys),
    type: (text) => void tmux('send-keys', '-l', text),
    cursorIsShown: () => tmux('display-message', '-p', '#{cursor_flag}').trim() === '1',
  }
}
