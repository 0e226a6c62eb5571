import type { Context, Output } from '../context.ts'
import type { Settings } from '../settings/settings.ts'
import { colorLevel } from './color.ts'
import { sanitizeLine } from './sanitize.ts'

/** Tells on stderr, while work is going on, what it is at. */
export interface Progress {
  /** Says what is being done now. */
  update(text: string): Promise<void>
  /** Takes the moving line away; what is written next starts on a clean line. Safe to call more than once. */
  end(): Promise<void>
}

type ProgressContext = Pick<Context, 'stderr' | 'environment' | 'interrupts'>

/** Whether lines on stderr may move: a terminal that can, and nobody who collects what it prints. */
export function canAnimate({ stderr, environment }: Pick<Context, 'stderr' | 'environment'>): boolean {
  return stderr.isTTY && environment.term !== 'dumb' && !environment.ci
}

/**
 * Starts to show progress: a spinner on a terminal, a line for each new text elsewhere, nothing with `--quiet`. The
 * cursor is given back when work is interrupted.
 */
export async function startProgress(
  text: string,
  context: ProgressContext,
  settings: Pick<Settings, 'quiet' | 'colorOption'>,
): Promise<Progress> {
  if (settings.quiet) return { update: async () => {}, end: async () => {} }
  if (!canAnimate(context)) return plainProgress(text, context.stderr)

  const { default: ora } = await import('ora')
  const spinner = ora({
    text: sanitizeLine(text),
    stream: asStream(context.stderr),
    isEnabled: true,
    // Ctrl-C has to reach the program, and prompts need the input.
    discardStdin: false,
    color: colorLevel(context.environment, settings.colorOption, context.stderr) === 0 ? false : 'cyan',
  }).start()
  const stop = () => {
    spinner.stop()
    context.interrupts.signal.removeEventListener('abort', stop)
  }
  context.interrupts.signal.addEventListener('abort', stop, { once: true })
  return {
    async update(next) {
      // One line, or the redraw would leave debris above it.
      spinner.text = sanitizeLine(next)
    },
    end: async () => stop(),
  }
}

async function plainProgress(text: string, stderr: Output): Promise<Progress> {
  let last = ''
  const say = async (next: string) => {
    if (next !== last) await stderr.write(`${sanitizeLine(next)}\n`)
    last = next
  }
  await say(text)
  return { update: say, end: async () => {} }
}

/** Our stderr as the kind of stream that the spinner draws on (ECMA-48: CHA, EL, CUU). */
function asStream(output: Output): NodeJS.WritableStream {
  const write = (text: string) => {
    // A reader that went away is found out where data is written.
    output.write(text).catch(() => {})
    return true
  }
  const stream = {
    isTTY: true,
    get columns() {
      return output.columns ?? 80
    },
    write,
    cursorTo: (column: number) => write(`\x1b[${column + 1}G`),
    clearLine: () => write('\x1b[K'),
    moveCursor: (_right: number, down: number) => write(down < 0 ? `\x1b[${-down}A` : ''),
    once: () => stream,
    removeListener: () => stream,
  }
  return stream as unknown as NodeJS.WritableStream
}
