import type { CommanderError } from 'commander'
import { type CommandDefinition, walkCommands } from '../commands/definition.ts'
import { createGlobalOptions } from '../commands/options.ts'
import { commandTree } from '../commands/tree.ts'
import { type Context, OutputClosedError } from '../context.ts'
import { CliError, Exit, type ExitCode, usageError } from '../errors.ts'
import { maskUserInfo } from '../settings/addresses.ts'
import { toLongFlag } from '../settings/option.ts'
import { writeLabeledMessage, writeStderrLines } from '../terminal/notices.ts'
import { stringifyJson } from '../terminal/sanitize.ts'
import { readOption, type SplitArgv } from './line.ts'

/**
 * Prints an error on stderr, and returns its exit code. `OutputClosedError` isn't a failure (exit 0, not printed): the reader
 * of stdout has read enough. Another error that isn't a `CliError` is reported as a bug (exit 1).
 */
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
      await writeLabeledMessage('error', failure.message, context, colorOption)
      if (failure.hint !== undefined) await writeLabeledMessage('hint', failure.hint, context, colorOption)
      if (failure !== error && argv.includes('--verbose') && error instanceof Error)
        await writeStderrLines(framesOf(error), context)
      // For a silent error, such as Ctrl-C in `sandbox`, write a line break after the terminal's `^C`: otherwise the shell's
      // prompt follows on the same line.
    } else if (stderr.isTTY) await stderr.write('\n')
  } catch (closed) {
    if (!(closed instanceof OutputClosedError)) throw closed
  }
  return failure.exit
}

/** Returns an error's name and its stack frames. Leaves out the message, which may span lines and was printed before. */
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

/** Whether errors are printed as JSON. Reads the unparsed arguments, because an error may occur while they are parsed. */
export function asksForJson(argv: readonly string[]): boolean {
  const end = argv.indexOf('--')
  const line = end < 0 ? argv : argv.slice(0, end)
  const format = readOption(line, '--format')
  return line.some((word) => /^--json(=|$)/.test(word)) || format === 'json' || format === 'jsonl'
}

/**
 * Converts commander's error into a usage error. Leaves out text that may be the value of a mistyped option, such as an API key.
 */
export function convertCommanderError(
  error: CommanderError,
  line: SplitArgv,
  definition: CommandDefinition | undefined,
): CliError {
  const [first = '', suggestion = ''] = error.message.replace(/^error: /, '').split('\n')
  const path = line.path.join(' ')
  const see = `see: ${['mailclaim', ...line.path].join(' ')} --help`
  const quoted = /'(.*)'/s.exec(error.message)?.[1] ?? ''
  // Text of commander's suggestion, as in "(Did you mean --wait?)", and first letter of the suggested name. Drop a suggestion whose
  // first letter isn't that of the typed name: commander also suggests names that hardly resemble the typed one.
  const [, meant, initial] = /^\(Did you mean ((?:one of )?-*(.).*\?)\)$/.exec(suggestion) ?? []
  const hint = initial === /\w/.exec(quoted)?.[0] && meant ? `did you mean ${meant}` : see
  switch (error.code) {
    case 'commander.help':
      return usageError(`a command is missing after ${['mailclaim', ...line.path].join(' ')}`, see)
    case 'commander.excessArguments':
      return usageError(`too many arguments: ${path} takes ${definition?.arguments?.length ?? 'none'}`, see)
    case 'commander.optionMissingArgument':
      return usageError(`${toLongFlag(quoted)} needs a value`, `write ${quoted}`)
    case 'commander.unknownCommand':
      return line.unknownOption === undefined
        ? usageError(first, suggestCommands(quoted) ?? hint)
        : usageError(`unknown option '${toFlag(line.unknownOption)}'`, 'options of a command follow its name')
    case 'commander.unknownOption': {
      const name = toFlag(quoted)
      const known = [...(definition?.options ?? []), ...createGlobalOptions(definition)]
      return quoted.includes('=') && known.some(({ flags }) => toLongFlag(flags) === name)
        ? usageError(`${name} takes no value`, `write ${name} alone`)
        : usageError(`unknown option '${name}'`, OTHER_OPTIONS[name] ?? hint)
    }
    default:
      return usageError(first, hint)
  }
}

const KEY_HINT = 'put it into MAILCLAIM_API_KEY, or store it: mailclaim login --with-api-key < key.txt'
const PORT_HINT = 'give the registered address: mailclaim login --redirect-uri http://127.0.0.1:8765/callback'
/** Hints for unknown options that users know from other tools, by flag. */
const OTHER_OPTIONS: Readonly<Record<string, string>> = {
  ...{ '--port': PORT_HINT, '--callback-port': PORT_HINT },
  ...{ '--token': KEY_HINT, '--api-key': KEY_HINT },
}

/** Command names of other tools, each with the last word of mailclaim's command for the same purpose. */
const SYNONYMS = { whoami: 'status', signin: 'login', signout: 'logout', ls: 'list', show: 'get' }

/**
 * Returns a hint with the commands, in any group, whose last word is the given word or its synonym; undefined if there is none.
 */
function suggestCommands(word: string): string | undefined {
  const last = Object.hasOwn(SYNONYMS, word) ? SYNONYMS[word as keyof typeof SYNONYMS] : word
  const found = [...walkCommands(commandTree)].filter(({ path }) => path.at(-1) === last)
  const commands = found.map(({ path }) => `mailclaim ${path.join(' ')}`)
  return commands.length === 0 ? undefined : `did you mean ${commands.join(', or ')}?`
}

function toFlag(option: string): string {
  return option.replace(/=.*/s, '')
}
