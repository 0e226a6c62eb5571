import type { Ora } from 'ora'
import type { Context, Output } from '../context.ts'
import type { Settings } from '../settings/settings.ts'
import { createPalette, hasColor } from './color.ts'
import { writeLines } from './notices.ts'
import { sanitizeLine } from './sanitize.ts'

/** Tells on stderr what is being done: one moving line for the step in progress, a line that stays for each that is done. */
export interface Progress {
  /** Says what is being done now, in a few lines at most. */
  update(text: string): Promise<void>
  /** The step is done: leaves `✔ text`. The next `update` starts another. */
  succeed(text: string): Promise<void>
  /** Removes the moving line, so that whatever is written next starts on a clean line. Safe to call more than once. */
  end(): Promise<void>
}

type ProgressContext = Pick<Context, 'stdout' | 'stderr' | 'environment' | 'interrupts'>
type ProgressSettings = Pick<Settings, 'quiet' | 'colorOption'>

/** A window has at least so many lines; what has scrolled away can't be redrawn. */
const MAX_LINES = 8

/** Whether lines on stderr may move: a terminal that can, and nobody who collects what it prints. */
export function canAnimate({ stderr, environment }: Pick<Context, 'stderr' | 'environment'>): boolean {
  return stderr.isTTY && environment.term !== 'dumb' && !environment.ci
}

/** Where progress is shown, and the outputs beside it: what is written to them appears above the moving line. */
export interface Screen extends Progress {
  readonly stdout: Output
  readonly stderr: Output
}

/**
 * Progress on stderr: a spinner on a terminal, a line for each new text elsewhere, nothing where `Settings.quiet`. The spinner
 * starts with the first text. An interrupt gives the cursor back.
 */
export function createScreen(context: ProgressContext, settings: ProgressSettings): Screen {
  const { stdout, stderr, environment, interrupts } = context
  if (settings.quiet || !canAnimate(context)) return plainScreen(context, settings)
  // What the moving line says, undefined for none. It changes before anything is awaited, and the spinner follows it: two
  // spinners would redraw each other with every line, and one that starts after its end would never stop.
  let status: string | undefined
  let spinner: Ora | undefined
  const stop = () => {
    status = undefined
    spinner?.stop()
    spinner = undefined
    interrupts.signal.removeEventListener('abort', stop)
  }
  /** The output, with the moving line out of the way of whatever is written. */
  const writesAbove = (output: Output) =>
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
      const [{ default: ora }, { wrap }] = await Promise.all([import('ora'), import('./measure.ts')])
      if (status === undefined || interrupts.signal.aborted) return
      // With room for the spinner in front, and for a terminal's ^C.
      const lines = wrap(sanitizeLine(status), Math.max(10, (stderr.columns ?? 80) - 5)).slice(0, MAX_LINES)
      const drawn = lines.join('\n  ')
      if (spinner !== undefined) {
        spinner.text = drawn
        return
      }
      interrupts.signal.addEventListener('abort', stop, { once: true })
      const color = hasColor(environment, settings.colorOption, stderr) ? 'cyan' : false
      // Ctrl-C has to reach the program, and prompts need the input.
      spinner = ora({ text: drawn, color, stream: asOraStream(stderr), isEnabled: true, discardStdin: false })
      spinner.start()
    },
    async succeed(text) {
      stop()
      const { good } = await createPalette(hasColor(environment, settings.colorOption, stderr))
      await stderr.write(`${good('✔')} ${sanitizeLine(text)}\n`)
    },
    end: async () => stop(),
  }
}

function plainScreen({ stdout, stderr }: ProgressContext, { quiet }: ProgressSettings): Screen {
  let last = ''
  const say = async (text: string) => {
    if (text !== last && !quiet) await writeLines([text], { stderr })
    last = text
  }
  return { stdout, stderr, update: say, succeed: say, end: async () => {} }
}

/** An output that differs only in what becomes of a text. What it says of the terminal stays up to date. */
export function replaceWrite(output: Output, write: Output['write']): Output {
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

/** Our stderr as the kind of stream that the spinner draws its lines on (ECMA-48: CHA, CUU, EL). */
function asOraStream(output: Output): NodeJS.WritableStream {
  const write = (text: string) => {
    // If the reader went away, a write of data finds out.
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
