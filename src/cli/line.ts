import type { CommandDefinition, CommandGroup, CommandNode, CommandTree } from '../commands/definition.ts'
import { createGlobalOptions, loadCommandWithSettingOptions } from '../commands/options.ts'
import { commandTree } from '../commands/tree.ts'
import { type OptionDefinition, toLongFlag } from '../settings/option.ts'

export function isCommandGroup(node: CommandNode): node is CommandGroup {
  return 'commands' in node
}

/** A command line, split before the definition of its command is loaded, so that only global options are known. */
export interface SplitArgv {
  /** Path of the command or group in the command tree, such as `['claims', 'check']`; empty for `mailclaim` itself. */
  readonly path: readonly string[]
  /** Node of the command tree at `path`; undefined for `mailclaim` itself. */
  readonly node?: CommandNode | undefined
  /** First argument in the place of a command's name that names no command or group; undefined if all are known. */
  readonly unknownWord?: string
  /**
   * The option in front of `unknownWord`, unless it is global (the options of commands aren't known yet): the word may be the
   * option's value, such as a secret, and must not be printed.
   */
  readonly unknownOption?: string
  /** Arguments that aren't part of the path, in their original order: options, their values and operands. */
  readonly rest: readonly string[]
  /** Whether `help` precedes the command's path: `mailclaim help claims check` is `mailclaim claims check --help`. */
  readonly isHelp: boolean
}

/**
 * Splits the arguments into the command's path and the rest. Global options may stand before and between the words of the path;
 * other options that take a value must follow the path.
 */
export function splitArgv(argv: readonly string[]): SplitArgv {
  const path: string[] = []
  const rest: string[] = []
  let node: CommandNode | undefined
  let isHelp = false
  for (let at = 0; at < argv.length; at++) {
    const word = argv[at] ?? ''
    const level = subcommandsOf(node)
    if (word === '--' || level === undefined) {
      rest.push(...argv.slice(at))
      break
    }
    if (word.startsWith('-')) {
      rest.push(word)
      if (takesNextWord(word) && at + 1 < argv.length) rest.push(argv[++at] ?? '')
    } else if (word === 'help' && path.length === 0 && !isHelp) {
      isHelp = true
    } else if (Object.hasOwn(level, word)) {
      path.push(word)
      node = level[word]
    } else {
      const before = argv[at - 1] ?? ''
      const isUnknown = before.startsWith('-') && !isGlobalFlag(before.replace(/=.*/s, ''))
      const unknown = { unknownWord: word, ...(isUnknown && { unknownOption: before }) }
      return { path, node, ...unknown, rest: [...rest, ...argv.slice(at + 1)], isHelp }
    }
  }
  return { path, node, rest, isHelp }
}

/** Loads the definition of the command; undefined for a group, for `mailclaim` itself, and for an unknown command. */
export async function loadCommand(line: SplitArgv): Promise<CommandDefinition | undefined> {
  const { path, node, unknownWord } = line
  const isCommand = node !== undefined && !isCommandGroup(node) && unknownWord === undefined
  return isCommand ? loadCommandWithSettingOptions(path, node) : undefined
}

/** Returns the subcommands of a group, or the whole command tree if the node is undefined; undefined for a command. */
export function subcommandsOf(nodeUnlessRoot: CommandNode | undefined): CommandTree | undefined {
  if (nodeUnlessRoot === undefined) return commandTree
  return isCommandGroup(nodeUnlessRoot) ? nodeUnlessRoot.commands : undefined
}

/**
 * Returns the value of an option given as `flag value` or `flag=value`; of a repeated option, the last; undefined if it is
 * absent.
 */
export function readOption(args: readonly string[], flag: string): string | undefined {
  return args
    .findLast((word, at) => args[at - 1] === flag || word.startsWith(`${flag}=`))
    ?.replace(`${flag}=`, '')
}

export function takesValue(option: OptionDefinition): boolean {
  return /[<[]/.test(option.flags)
}

/** Whether the argument is a global option that takes the next argument as its value. */
function takesNextWord(word: string): boolean {
  return createGlobalOptions().some((option) => takesValue(option) && toLongFlag(option.flags) === word)
}

function isGlobalFlag(word: string): boolean {
  const flags = createGlobalOptions().flatMap((option) => option.flags.split(/[ ,]+/))
  return [...flags, '-h', '--help', '-V', '--version'].includes(word)
}
