import type { Context, Output } from '../context.ts'
import type { Settings } from '../settings/settings.ts'
import { colorLevel } from './color.ts'
import { sanitizeLine } from './sanitize.ts'
import { canAnimate, startSpinner } from './spinner.ts'

/** Tells on stderr what is being done while work is in progress. */
export interface Progress {
  /** Says what is being done now. */
  update(text: string): Promise<void>
  /** Removes the moving line, so that whatever is written next starts on a clean line. Safe to call more than once. */
  end(): Promise<void>
}

type ProgressContext = Pick<Context, 'stderr' | 'environment' | 'interrupts'>

/**
 * Starts to show progress: a spinner on a terminal, a line for each new text elsewhere, nothing with `--quiet`. An
 * interrupt gives the cursor back.
 */
export async function startProgress(
  text: string,
  context: ProgressContext,
  settings: Pick<Settings, 'quiet' | 'colorOption'>,
): Promise<Progress> {
  if (settings.quiet) return { update: async () => {}, end: async () => {} }
  if (!canAnimate(context)) return plainProgress(text, context.stderr)

  const { spinner } = await startSpinner(context.stderr, {
    text: sanitizeLine(text),
    color: colorLevel(context.environment, settings.colorOption, context.stderr) === 0 ? false : 'cyan',
  })
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

/** Does work that takes seconds, with a spinner for a person at a terminal; a log gets no line. */
export async function withProgress<T>(
  text: string,
  work: () => Promise<T>,
  context: ProgressContext,
  settings: Pick<Settings, 'quiet' | 'colorOption'>,
): Promise<T> {
  if (!canAnimate(context)) return work()
  const progress = await startProgress(text, context, settings)
  try {
    return await work()
  } finally {
    await progress.end()
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
