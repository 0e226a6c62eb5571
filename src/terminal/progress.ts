import type { Ora } from 'ora'
import type { Context, OutputStream } from '../context.ts'
import type { Settings } from '../settings/settings.ts'
import { createPalette, usesColor } from './color.ts'
import { writeStderrLines } from './notices.ts'
import { sanitizeLine } from './sanitize.ts'

/** Progress on stderr: the text of the current step, animated if `canAnimateStderr`, and lines for completed steps, which stay. */
export interface ProgressReporter {
  /** Shows the text of the current step; animated text is cut after `MAX_LINES` lines. */
  update(text: string): Promise<void>
  /** Replaces the animated text with the permanent line `✔ text`; without animation, does the same as `update`. */
  succeed(text: string): Promise<void>
  /** Removes the animated text, if any. */
  end(): Promise<void>
}

type ProgressContext = Pick<Context, 'stdout' | 'stderr' | 'environment' | 'interrupts'>
type ProgressSettings = Pick<Settings, 'quiet' | 'colorOption'>

/** Maximum number of terminal lines for animated text: lines that have left a small window can't be redrawn. */
const MAX_LINES = 8

/**
 * Whether stderr may be animated: on a terminal with cursor control (`TERM` isn't `dumb`), and not in CI, which logs each frame.
 */
export function canAnimateStderr({ stderr, environment }: Pick<Context, 'stderr' | 'environment'>): boolean {
  return stderr.isTTY && environment.term !== 'dumb' && !environment.ci
}

/** A progress reporter, with a stdout and a stderr whose text appears above the animated text. */
export interface ProgressStreams extends ProgressReporter {
  readonly stdout: OutputStream
  readonly stderr: OutputStream
}

/**
 * Creates the progress reporter on stderr: a spinner if `canAnimateStderr`, else a line for each text that differs from the previous
 * one; nothing with `Settings.quiet`. An interrupt stops the spinner, so that the cursor is shown again.
 */
export function createProgressDisplay(context: ProgressContext, settings: ProgressSettings): ProgressStreams {
  const { stdout, stderr, environment, interrupts } = context
  if (settings.quiet || !canAnimateStderr(context)) return plainScreen(context, settings)
  // Animated text; undefined for none. Set before ora is imported and read afterward: of concurrent updates, the last text wins,
  // and an `end` during the import keeps the spinner from starting.
  let status: string | undefined
  let spinner: Ora | undefined
  const stop = () => {
    status = undefined
    spinner?.stop()
    spinner = undefined
    interrupts.signal.removeEventListener('abort', stop)
  }
  /** Returns the output with a `write` that clears the animated text first, and draws it again below the written text. */
  const writesAbove = (output: OutputStream) =>
    replaceWrite(output, async (text) => {
      if (!output.isTTY) return output.write(text)
      spinner?.clear()
      await output.write(text)
      spinner?.render()
    })
  return {
    stdout: writesAbove(stdout),
    stderr: writesAbove(stderr),
    async update(text) {
      status = text
      const [{ default: ora }, { wrapLine }] = await Promise.all([import('ora'), import('./measure.ts')])
      if (status === undefined || interrupts.signal.aborted) return
      // Leave 5 columns free: for the spinner in front, and for the `^C` that a terminal prints.
      const lines = wrapLine(sanitizeLine(status), Math.max(10, (stderr.columns ?? 80) - 5))
      const drawn = lines.slice(0, MAX_LINES).join('\n  ')
      if (spinner !== undefined) {
        spinner.text = drawn
        return
      }
      interrupts.signal.addEventListener('abort', stop, { once: true })
      const color = usesColor(environment, settings.colorOption, stderr) ? 'cyan' : false
      // Disable `discardStdin`: ora would read and drop the input, which prompts and Ctrl-C need.
      spinner = ora({ text: drawn, color, stream: asOraStream(stderr), isEnabled: true, discardStdin: false })
      spinner.start()
    },
    async succeed(text) {
      stop()
      const { good } = await createPalette(usesColor(environment, settings.colorOption, stderr))
      await stderr.write(`${good('✔')} ${sanitizeLine(text)}\n`)
    },
    end: async () => stop(),
  }
}

function plainScreen({ stdout, stderr }: ProgressContext, { quiet }: ProgressSettings): ProgressStreams {
  let last = ''
  const say = async (text: string) => {
    if (text !== last && !quiet) await writeStderrLines([text], { stderr })
    last = text
  }
  return { stdout, stderr, update: say, succeed: say, end: async () => {} }
}

/** Returns the output with another `write`. `isTTY` and `columns` are getters, since a window can be resized. */
export function replaceWrite(output: OutputStream, write: OutputStream['write']): OutputStream {
  return {
    get isTTY() {
      return output.isTTY
    },
    get columns() {
      return output.columns
    },
    write,
  }
}

/**
 * Returns the output as a stream for ora: its methods that move the cursor or clear the line write escape sequences (ECMA-48: CHA,
 * CUU, EL).
 */
function asOraStream(output: OutputStream): NodeJS.WritableStream {
  const write = (text: string) => {
    // Ignore a failed write: progress that can't be shown must not end the command.
    output.write(text).catch(() => {})
    return true
  }
  const stream = {
    isTTY: true,
    get columns() {
      return output.columns ?? 80
    },
    write,
    cursorTo: (x: number) => write(`\x1b[${x + 1}G`),
    moveCursor: (_x: number, y: number) => write(y < 0 ? `\x1b[${-y}A` : ''),
    clearLine: () => write('\x1b[K'),
    once: () => stream,
    removeListener: () => stream,
  }
  return stream as unknown as NodeJS.WritableStream
}
