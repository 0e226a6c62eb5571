import type { CommanderError } from 'commander'
import { type CommandDefinition, everyCommand } from '../commands/definition.ts'
import { globalOptions } from '../commands/program.ts'
import { tree } from '../commands/tree.ts'
import { type Context, OutputClosedError } from '../context.ts'
import { CliError, Exit, type ExitCode, usageError } from '../errors.ts'
import { maskUserInfo } from '../settings/addresses.ts'
import { longFlag } from '../settings/option.ts'
import { writeLabeled, writeLines } from '../terminal/notices.ts'
import { stringifyJson } from '../terminal/sanitize.ts'
import { type CommandLine, optionValue } from './line.ts'

/** Prints an error as JSON or for people, and returns its exit code. */
export async function printError(
  error: unknown,
  argv: readonly string[],
  context: Pick<Context, 'stderr' | 'environment'>,
): Promise<ExitCode> {
  if (error instanceof OutputClosedError) return Exit.done
  const { stderr } = context
  const failure = error instanceof CliError ? error : createBugError(error)
  try {
    if (asksForJson(argv)) {
      const { message, hint } = failure
      const masked = failure.with({ message: maskUserInfo(message), hint: hint && maskUserInfo(hint) })
      await stderr.write(`${stringifyJson(masked)}\n`)
    } else if (!failure.silent) {
      const colorOption = argv.includes('--no-color') ? false : undefined
      await writeLabeled('error', failure.message, context, colorOption)
      if (failure.hint !== undefined) await writeLabeled('hint', failure.hint, context, colorOption)
      if (failure !== error && argv.includes('--verbose') && error instanceof Error)
        await writeLines(framesOf(error), context)
      // The terminal shows ^C, and the prompt follows.
    } else if (stderr.isTTY) await stderr.write('\n')
  } catch (closed) {
    if (!(closed instanceof OutputClosedError)) throw closed
  }
  return failure.exit
}

/** The lines of a stack with the error's name but without the message, which may quote text from outside. */
const framesOf = ({ name, stack = '' }: Error) => [
  name,
  ...stack.split('\n').filter((line) => /^ +at /.test(line)),
]

function createBugError(error: unknown): CliError {
  const message = error instanceof Error ? error.message : String(error)
  return new CliError('bug', `this is a bug in mailclaim: ${message}`, {
    hint: 'run it again with --verbose and report the output',
    cause: error,
  })
}

/** Whether errors are printed as JSON. It takes the raw words, because an unreadable command line is an error too. */
export function asksForJson(argv: readonly string[]): boolean {
  const end = argv.indexOf('--')
  const line = end < 0 ? argv : argv.slice(0, end)
  const format = optionValue(line, '--format')
  return line.some((word) => /^--json(=|$)/.test(word)) || format === 'json' || format === 'jsonl'
}

/** The usage error for a line that commander doesn't understand. It never repeats what may be the value of an option. */
export function toUsageError(
  error: CommanderError,
  line: CommandLine,
  definition: CommandDefinition | undefined,
): CliError {
  const [first = '', suggestion = ''] = error.message.replace(/^error: /, '').split('\n')
  const words = line.words.join(' ')
  const see = `see: ${['mailclaim', ...line.words].join(' ')} --help`
  // "(Did you mean --wait?)"
  const meant = /^\(Did you mean (.+\?)\)$/.exec(suggestion)?.[1]
  const hint = meant === undefined ? see : `did you mean ${meant}`
  const quoted = /'(.*)'/s.exec(error.message)?.[1] ?? ''
  switch (error.code) {
    case 'commander.help':
      return usageError(`a command is missing after ${['mailclaim', ...line.words].join(' ')}`, see)
    case 'commander.excessArguments':
      return usageError(`too many arguments: ${words} takes ${definition?.arguments?.length ?? 'none'}`, see)
    case 'commander.optionMissingArgument':
      return usageError(`${longFlag(quoted)} needs a value`, `write ${quoted}`)
    case 'commander.unknownCommand':
      return line.unknownOption === undefined
        ? usageError(first, suggestCommands(quoted) ?? hint)
        : usageError(`unknown option '${toFlag(line.unknownOption)}'`, 'options of a command follow its name')
    case 'commander.unknownOption': {
      const name = toFlag(quoted)
      const known = [...(definition?.options ?? []), ...globalOptions(definition)]
      return quoted.includes('=') && known.some(({ flags }) => longFlag(flags) === name)
        ? usageError(`${name} takes no value`, `write ${name} alone`)
        : usageError(`unknown option '${name}'`, hint)
    }
    default:
      return usageError(first, hint)
  }
}

/** Five words of other tools. */
const SYNONYMS = { whoami: 'status', signin: 'login', signout: 'logout', ls: 'list', show: 'get' }

/** The commands of another group that end in this word. */
function suggestCommands(word: string): string | undefined {
  const last = Object.hasOwn(SYNONYMS, word) ? SYNONYMS[word as keyof typeof SYNONYMS] : word
  const found = [...everyCommand(tree)].filter(({ words }) => words.at(-1) === last)
  const commands = found.map(({ words }) => `mailclaim ${words.join(' ')}`)
  return commands.length === 0 ? undefined : `did you mean ${commands.join(', or ')}?`
}

function toFlag(option: string): string {
  return option.replace(/=.*/s, '')
}
