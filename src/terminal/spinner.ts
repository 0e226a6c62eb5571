import { stripVTControlCharacters } from 'node:util'
import type { Options, Ora } from 'ora'
import type { Context, Output } from '../context.ts'
import { widthOf } from './measure.ts'

/** Whether lines on stderr may move: a terminal that can, and nobody who collects what it prints. */
export function canAnimate({ stderr, environment }: Pick<Context, 'stderr' | 'environment'>): boolean {
  return stderr.isTTY && environment.term !== 'dumb' && !environment.ci
}

/** A spinner that is already turning. What is written to `stream` appears above it. */
export async function startSpinner(
  output: Output,
  options: Options,
): Promise<{ spinner: Ora; stream: NodeJS.WritableStream }> {
  const { default: ora } = await import('ora')
  const stream = asStream(output)
  // Ctrl-C has to reach the program, and prompts need the input.
  const spinner = ora({ ...options, stream, isEnabled: true, discardStdin: false })
  return { spinner: spinner.start(), stream }
}

/** Our stderr as the kind of stream that the spinner draws on (ECMA-48: CUU, CUF, EL, ED). */
function asStream(output: Output): NodeJS.WritableStream {
  let drawn = ''
  let drawnFor: number | undefined
  const write = (text: string) => {
    drawn = text.endsWith('\n') ? '' : drawn + text
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
    // The spinner goes up line by line, as many as there were when it drew. A window that became narrower since has
    // broken them into more rows, so all of them go here.
    cursorTo() {
      const lines = stripVTControlCharacters(drawn).split('\n')
      const rows = lines.reduce(
        (sum, line) => sum + Math.max(1, Math.ceil(widthOf(line) / stream.columns)),
        0,
      )
      // tmux keeps in its history what is erased from the top left to the end of the screen, so that starts one to the
      // right; but after tmux has wrapped the lines for another width, only the whole screen is erased reliably.
      const top = stream.columns === drawnFor ? '\x1b[K\x1b[C\x1b[J\r' : '\x1b[J'
      write(`\r${rows > 1 ? `\x1b[${rows - 1}A` : ''}${top}`)
      drawnFor = stream.columns
      drawn = ''
    },
    clearLine() {},
    moveCursor() {},
    once: () => stream,
    removeListener: () => stream,
  }
  return stream as unknown as NodeJS.WritableStream
}
