import type { CommandDefinition, CommandGroup, CommandLeaf } from '../commands/definition.ts'
import { globalOptions, loadCommand } from '../commands/program.ts'
import { tree } from '../commands/tree.ts'
import { longFlag, type OptionDefinition } from '../settings/option.ts'

export type CommandNode = CommandLeaf | CommandGroup

export function isGroup(node: CommandNode): node is CommandGroup {
  return 'commands' in node
}

/** A command line, split before the command's definition is loaded: only global options are known to take values. */
export interface CommandLine {
  /** The path of the command or group, such as `['claims', 'check']`; empty for the program itself. */
  readonly words: readonly string[]
  /** The node of the command tree at `words`; undefined for the program itself. */
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
  const words: string[] = []
  const rest: string[] = []
  let node: CommandNode | undefined
  let isHelp = false
  for (let at = 0; at < argv.length; at++) {
    const word = argv[at] ?? ''
    const level = commandsOf(node)
    if (word === '--' || level === undefined) {
      rest.push(...argv.slice(at))
      break
    }
    if (word.startsWith('-')) {
      rest.push(word)
      if (takesNextWord(word) && at + 1 < argv.length) rest.push(argv[++at] ?? '')
    } else if (word === 'help' && words.length === 0 && !isHelp) {
      isHelp = true
    } else if (Object.hasOwn(level, word)) {
      words.push(word)
      node = level[word]
    } else {
      const before = argv[at - 1] ?? ''
      const isUnknown = before.startsWith('-') && !isGlobalFlag(before.replace(/=.*/s, ''))
      const unknown = { unknownWord: word, ...(isUnknown && { unknownOption: before }) }
      return { words, node, ...unknown, rest: [...rest, ...argv.slice(at + 1)], isHelp }
    }
  }
  return { words, node, rest, isHelp }
}

/** Loads the definition of the command line's command; undefined for a group, the program itself or an unknown command. */
export async function loadDefinition({
  words,
  node,
  unknownWord,
}: CommandLine): Promise<CommandDefinition | undefined> {
  const isCommand = node !== undefined && !isGroup(node) && unknownWord === undefined
  return isCommand ? loadCommand(words, node) : undefined
}

/** Returns the subcommands of a group, or of the program if the node is undefined; undefined for a command. */
export function commandsOf(node: CommandNode | undefined): Readonly<Record<string, CommandNode>> | undefined {
  if (node === undefined) return tree
  return isGroup(node) ? node.commands : undefined
}

/** Returns the value of `flag value` or `flag=value` in the arguments; the last one if the option is repeated. */
export function optionValue(words: readonly string[], flag: string): string | undefined {
  return words
    .findLast((word, at) => words[at - 1] === flag || word.startsWith(`${flag}=`))
    ?.replace(`${flag}=`, '')
}

export function takesValue(option: OptionDefinition): boolean {
  return /[<[]/.test(option.flags)
}

/** Whether the argument is a global option whose value is the next argument. */
function takesNextWord(word: string): boolean {
  return globalOptions().some((option) => takesValue(option) && longFlag(option.flags) === word)
}

function isGlobalFlag(word: string): boolean {
  const flags = globalOptions().flatMap((option) => option.flags.split(/[ ,]+/))
  return [...flags, '-h', '--help', '-V', '--version'].includes(word)
}
