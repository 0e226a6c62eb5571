import { GLOBAL_OPTIONS } from '../commands/program.ts'
import { type CommandGroup, type CommandLeaf, tree } from '../commands/tree.ts'

export type CommandNode = CommandLeaf | CommandGroup

export function isGroup(node: CommandNode): node is CommandGroup {
  return 'commands' in node
}

/** A command line, taken apart as far as it can be before the command's own options are known. */
export interface CommandLine {
  /** The words that name a command or a group; none: the program itself. */
  readonly words: readonly string[]
  /** What they name; undefined: the program itself. */
  readonly node: CommandNode | undefined
  /** What stands where the name of a command was expected, and is none. */
  readonly stranger: string | undefined
  /** Everything else, in the order in which it was typed. */
  readonly rest: readonly string[]
  /** `mailclaim help claims check` is another way to write `mailclaim claims check --help`. */
  readonly helpWord: boolean
}

/** The flags of the global options that are followed by a value. */
const VALUED: ReadonlySet<string> = new Set(
  GLOBAL_OPTIONS.filter((option) => option.flags.includes('<')).map((option) => longFlag(option.flags)),
)

/**
 * Finds the words that name a command, wherever options stand between them, so that only that command's code is
 * loaded. Values of global options are stepped over; an option of the command itself that takes a value has to stand
 * after the command's name.
 */
export function readLine(argv: readonly string[]): CommandLine {
  const words: string[] = []
  const rest: string[] = []
  let node: CommandNode | undefined
  let helpWord = false
  for (let at = 0; at < argv.length; at++) {
    const word = argv[at] ?? ''
    const level = commandsOf(node)
    if (word === '--' || level === undefined) {
      rest.push(...argv.slice(at))
      break
    }
    if (word.startsWith('-')) {
      rest.push(word)
      if (VALUED.has(word) && at + 1 < argv.length) rest.push(argv[++at] ?? '')
    } else if (word === 'help' && words.length === 0 && !helpWord) {
      helpWord = true
    } else if (Object.hasOwn(level, word)) {
      words.push(word)
      node = level[word]
    } else {
      return { words, node, stranger: word, rest: [...rest, ...argv.slice(at + 1)], helpWord }
    }
  }
  return { words, node, stranger: undefined, rest, helpWord }
}

/** The commands below a node; undefined where it is itself a command. */
export function commandsOf(node: CommandNode | undefined): Readonly<Record<string, CommandNode>> | undefined {
  if (node === undefined) return tree
  return isGroup(node) ? node.commands : undefined
}

/** Every command with the words that are typed for it, in the order of the tree. */
export function* everyCommand(): Generator<{ words: readonly string[]; leaf: CommandLeaf }> {
  for (const [word, node] of Object.entries(tree)) {
    if (!isGroup(node)) yield { words: [word], leaf: node }
    else for (const [below, leaf] of Object.entries(node.commands)) yield { words: [word, below], leaf }
  }
}

/** `--limit` of `--limit <n>` or `-l, --limit <n>`. */
export function longFlag(flags: string): string {
  return /--[a-z-]+/.exec(flags)?.[0] ?? flags
}
