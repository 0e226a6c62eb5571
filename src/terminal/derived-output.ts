import { type Context, type Output, OutputClosedError } from '../context.ts'
import { type NoticeSettings, warn } from './notices.ts'

/** An output that differs only in what becomes of a text. What it says of the terminal stays up to date. */
export function withWrite(output: Output, write: Output['write']): Output {
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

/** Standard output for work that goes on, with a warning, when nobody reads it anymore. */
export function untilClosed(
  context: Pick<Context, 'stdout' | 'stderr' | 'environment'>,
  settings: NoticeSettings,
): Output {
  const { stdout } = context
  let isOpen = true
  return withWrite(stdout, async (text) => {
    try {
      if (isOpen) await stdout.write(text)
    } catch (error) {
      isOpen = false
      if (!(error instanceof OutputClosedError)) throw error
      await warn('nobody reads the output anymore; the work goes on without it', context, settings)
    }
  })
}
