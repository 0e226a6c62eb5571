import type { CommandDefinition, CommandGroup, CommandLeaf } from '../commands/definition.ts'
import { globalOptions, loadCommand } from '../commands/program.ts'
import { tree } from '../commands/tree.ts'
import { longFlag, type OptionDefinition } from '../settings/option.ts'

export type CommandNode = CommandLeaf | CommandGroup

export function isGroup(node: CommandNode): node is CommandGroup {
  return 'commands' in node
}

/** A command line, parsed as far as possible before the command's own options are known. */
export interface CommandLine {
  /** The words that name a command or a group; empty: the program itself. */
  readonly words: readonly string[]
  /** What they name; undefined: the program itself. */
  readonly node?: CommandNode | undefined
  /** A word in place of a command's name that names none. */
  readonly unknownWord?: string
  /** An option in front of that word that isn't a global one: the word may be its value, such as a key. */
  readonly unknownOption?: string
  /** Everything else, as it was typed. */
  readonly rest: readonly string[]
  /** `mailclaim help claims check` is another way to write `mailclaim claims check --help`. */
  readonly isHelp: boolean
}

/**
 * Finds the words that name a command, even with options between them, so that only that command's code is loaded. It
 * skips the values of global options; a command's own option that takes a value has to come after the command's name.
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

/** The definition of the command that a line names; undefined if it names none. */
export async function loadDefinition({
  words,
  node,
  unknownWord,
}: CommandLine): Promise<CommandDefinition | undefined> {
  const isCommand = node !== undefined && !isGroup(node) && unknownWord === undefined
  return isCommand ? loadCommand(words, node) : undefined
}

/** The commands of a group; undefined for a command. */
export function commandsOf(node: CommandNode | undefined): Readonly<Record<string, CommandNode>> | undefined {
  if (node === undefined) return tree
  return isGroup(node) ? node.commands : undefined
}

/** The value that words give an option, the last one if several do. */
export function optionValue(words: readonly string[], flag: string): string | undefined {
  return words
    .findLast((word, at) => words[at - 1] === flag || word.startsWith(`${flag}=`))
    ?.replace(`${flag}=`, '')
}

export function takesValue(option: OptionDefinition): boolean {
  return /[<[]/.test(option.flags)
}

/** Whether a word is a global option whose value is the next word. */
function takesNextWord(word: string): boolean {
  return globalOptions().some((option) => takesValue(option) && longFlag(option.flags) === word)
}

function isGlobalFlag(word: string): boolean {
  const flags = globalOptions().flatMap((option) => option.flags.split(/[ ,]+/))
  return [...flags, '-h', '--help', '-V', '--version'].includes(word)
}
