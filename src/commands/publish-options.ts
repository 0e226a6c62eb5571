import type { Publication, PublishAction } from '../claims/publish.ts'
import type { TxtRecord } from '../claims/record.ts'
import type { Context } from '../context.ts'
import { commandWords } from '../settings/command-words.ts'
import { parseSeconds } from '../settings/parse-value.ts'
import type { Settings } from '../settings/settings.ts'
import { withWrite } from '../terminal/derived-output.ts'
import { sanitizeLine } from '../terminal/sanitize.ts'

/** The options of every command that runs a program to change DNS. */
export interface PublishFlags {
  readonly publishTimeout?: number
  readonly onlyNew?: true
}

const DEFAULT_TIMEOUT_SECONDS = 120

export const PUBLISH_OPTIONS = [
  {
    flags: '--publish-timeout <seconds>',
    description: 'stop the program after this long, with exit 7',
    default: String(DEFAULT_TIMEOUT_SECONDS),
    parse: (text: string, name: string) => parseSeconds(text, name),
  },
  {
    flags: '--only-new',
    description: "run the program even if the TXT values in DNS can't be seen; it gets none of them",
  },
] as const

/** Changes DNS for a record. */
export type Publish = (record: TxtRecord) => Promise<Publication>

/**
 * What runs a program for a record. Its code is loaded with the first record.
 *
 * @param option the option that names the program
 * @param say shows a line that the program prints, elsewhere than on standard error itself
 * @throws CliError exit 2 if the command isn't one
 */
export function publisher(
  action: PublishAction,
  { option, command }: { readonly option: string; readonly command: string },
  flags: PublishFlags,
  context: Context,
  settings: Settings,
  say?: (line: string) => Promise<void>,
): Publish {
  const words = commandWords(command, option, context.platform)
  const { stderr } = context
  return async (record) => {
    const { programOf, publishRecord } = await import('../claims/publish.ts')
    const options = {
      command: words,
      timeoutMs: (flags.publishTimeout ?? DEFAULT_TIMEOUT_SECONDS) * 1000,
      onlyNew: flags.onlyNew === true,
      onLine: async (line: string) => {
        // The name in front tells whose line it is.
        const text = `${programOf(options)}: ${line}`
        if (say !== undefined && stderr.isTTY) await say(text)
        // Whoever reads a log reads it on a terminal.
        else await stderr.write(`${sanitizeLine(text)}\n`)
      },
    }
    return publishRecord(action, record, options, context, settings)
  }
}

/**
 * Checks the command before anything is created: its words, and whether its program can be started.
 *
 * @param command nothing if the option wasn't given
 * @throws CliError exit 2
 */
export async function requireProgram(
  option: string,
  command: string | undefined,
  context: Pick<Context, 'programs' | 'platform'>,
): Promise<void> {
  if (command === undefined) return
  const [file] = commandWords(command, option, context.platform)
  const problem = await context.programs.check(file)
  if (problem === undefined) return
  const { notStarted } = await import('../claims/publish.ts')
  throw notStarted(file, problem, `fix the command of ${option}; nothing has been created or changed`)
}

/** The effects of one of several domains: the lines of its program on standard error begin with its name. */
export function labeledOutput<C extends Pick<Context, 'stderr'>>(domain: string, context: C): C {
  const { stderr } = context
  return { ...context, stderr: withWrite(stderr, (text) => stderr.write(`${domain}: ${text}`)) }
}
