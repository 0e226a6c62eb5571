import type { CommandDefinition, CommandGroup, CommandNode, CommandTree } from '../commands/definition.ts'
import { createGlobalOptions, loadDefinition } from '../commands/options.ts'
import { tree } from '../commands/tree.ts'
import { longFlag, type OptionDefinition } from '../settings/option.ts'

export function isCommandGroup(node: CommandNode): node is CommandGroup {
  return 'commands' in node
}

/** A command line, split before the command's definition is loaded: only global options are known to take values. */
export interface CommandLine {
  /** The path of the command or group, such as `['claims', 'check']`; empty for the program itself. */
  readonly path: readonly string[]
  /** The node of the command tree at `path`; undefined for the program itself. */
  readonly node?: CommandNode | undefined
  /** A word where a command's name is expected, if no command has that name. */
  readonly unknownWord?: string
  /** A non-global option before `unknownWord`: the word may be its value, even a secret, so it must not be printed. */
  readonly unknownOption?: string
  /** The remaining arguments in their original order: options, their values and operands. */
  readonly rest: readonly string[]
  /** Whether the command line begins with `help`: `mailclaim help claims check` is `mailclaim claims check --help`. */
  readonly isHelp: boolean
}

/**
 * Finds the command's path in the arguments, also with options between its words, so that only this command's code needs to be
 * loaded. The values of global options are skipped; a command's own option with a value must follow the command's name.
 */
export function parseLine(argv: readonly string[]): CommandLine {
  const path: string[] = []
  const rest: string[] = []
  let node: CommandNode | undefined
  let isHelp = false
  for (let at = 0; at < argv.length; at++) {
    const word = argv[at] ?? ''
    const level = listSubcommands(node)
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

/** Loads the definition of the command line's command; undefined for a group, the program itself or an unknown command. */
export async function loadCommand({
  path,
  node,
  unknownWord,
}: CommandLine): Promise<CommandDefinition | undefined> {
  const isCommand = node !== undefined && !isCommandGroup(node) && unknownWord === undefined
  return isCommand ? loadDefinition(path, node) : undefined
}

/** Returns the subcommands of a group, or of the program if the node is undefined; undefined for a command. */
export function listSubcommands(node: CommandNode | undefined): CommandTree | undefined {
  if (node === undefined) return tree
  return isCommandGroup(node) ? node.commands : undefined
}

/** Returns the value of `flag value` or `flag=value` in the arguments; the last one if the option is repeated. */
export function readOption(args: readonly string[], flag: string): string | undefined {
  return args
    .findLast((word, at) => args[at - 1] === flag || word.startsWith(`${flag}=`))
    ?.replace(`${flag}=`, '')
}

export function takesValue(option: OptionDefinition): boolean {
  return /[<[]/.test(option.flags)
}

/** Whether the argument is a global option whose value is the next argument. */
function takesNextWord(word: string): boolean {
  return createGlobalOptions().some((option) => takesValue(option) && longFlag(option.flags) === word)
}

function isGlobalFlag(word: string): boolean {
  const flags = createGlobalOptions().flatMap((option) => option.flags.split(/[ ,]+/))
  return [...flags, '-h', '--help', '-V', '--version'].includes(word)
}
