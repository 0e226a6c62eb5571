import { type Context, OutputClosedError, type PagerProcess } from '../context.ts'
import { CliError } from '../errors.ts'
import { commandWords } from '../settings/command-words.ts'
import { type Settings, settingValue } from '../settings/settings.ts'
import { withWrite } from './derived-output.ts'
import { warn } from './notices.ts'

const DEFAULT_PAGER = 'less'

/** The command of the pager, as it is typed; undefined: none. A pager waits for a key, so it needs what a question needs. */
function pagerCommand(context: Context, settings: Settings): string | undefined {
  const { environment, stdout } = context
  if (settings.noPager || !stdout.isTTY || environment.term === 'dumb' || !settings.interactive)
    return undefined
  const command = settingValue('pager', settings) ?? environment.pager ?? DEFAULT_PAGER
  return command.trim() === 'cat' ? undefined : command
}

/**
 * Runs work whose standard output a pager shows, from its first line on, if a person at a terminal reads it. Messages wait
 * until the pager has ended, and nothing is asked meanwhile. Quitting the pager ends the work; Ctrl-C ends the work and leaves
 * the pager with what it has.
 *
 * @throws OutputClosedError if the person quit before the work was done, which ends the program quietly
 */
export async function withPager(
  work: (context: Context, settings: Settings) => Promise<void>,
  context: Context,
  settings: Settings,
): Promise<void> {
  const command = pagerCommand(context, settings)
  if (command === undefined) return work(context, settings)

  const { stdout, stderr, interrupts } = context
  const quit = new AbortController()
  const uninterruptible = new Set<Promise<unknown>>()
  const messages: string[] = []
  let opening: Promise<PagerProcess | undefined> | undefined
  let pager: PagerProcess | undefined
  let shielded: Promise<unknown> | undefined

  /** Ends the work, but not a refresh: if that fails, the work ends with its error. */
  const stop = async () => {
    const outcomes = await Promise.allSettled(uninterruptible)
    if (outcomes.every(({ status }) => status === 'fulfilled'))
      quit.abort(new OutputClosedError('the pager was quit'))
  }
  const open = async () => {
    pager = await startPager(command, context, settings)
    if (pager === undefined) return undefined
    const { ended, kill } = pager
    void ended.then(stop)
    shielded = interrupts.shield(
      () => ended,
      (signal) => {
        if (signal !== 'SIGINT') kill()
        void stop()
      },
    )
    return pager
  }

  try {
    const paged: Context = {
      ...context,
      stdout: withWrite(stdout, async (text) => {
        opening ??= open()
        await ((await opening) ?? stdout).write(text)
      }),
      stderr: withWrite(stderr, async (text) => {
        if (pager === undefined) await stderr.write(text)
        else messages.push(text)
      }),
      interrupts: {
        signal: AbortSignal.any([interrupts.signal, quit.signal]),
        async shield(protectedWork, onSignal) {
          const done = interrupts.shield(protectedWork, onSignal)
          uninterruptible.add(done)
          try {
            return await done
          } finally {
            uninterruptible.delete(done)
          }
        },
      },
    }
    await work(paged, {
      ...settings,
      get interactive() {
        return pager === undefined && settings.interactive
      },
    })
  } catch (error) {
    // What the work makes of the abort doesn't matter.
    throw quit.signal.aborted ? quit.signal.reason : error
  } finally {
    pager?.end()
    const code = await pager?.ended
    await shielded
    if (code)
      await warn(`the pager ${JSON.stringify(command)} ended with exit code ${code}`, context, settings)
    for (const message of messages) await stderr.write(message)
    interrupts.signal.throwIfAborted()
  }
}

/** Undefined if it can't be started, which only someone who has chosen it has to know. */
async function startPager(
  command: string,
  context: Context,
  settings: Settings,
): Promise<PagerProcess | undefined> {
  try {
    return await context.pager.start(commandWords(command, 'the pager', context.platform))
  } catch (error) {
    const reason = error instanceof CliError ? error.message : (error as NodeJS.ErrnoException).code
    if (command !== DEFAULT_PAGER)
      await warn(
        `can't start the pager ${JSON.stringify(command)} (${reason}); going on without it`,
        context,
        settings,
      )
    return undefined
  }
}
