import { longFlag } from '../commands/definition.ts'
import { TOPICS } from '../commands/program.ts'
import { type CommandLine, everyCommand } from './line.ts'

/**
 * What people type because other programs have it, and what it is here: the last word of a command (`list` means every list,
 * or that of the group that was typed), a whole command, a topic of help, or an option of the program.
 */
export const OTHER_COMMANDS: Readonly<Record<string, readonly string[]>> = {
  add: ['create'],
  describe: ['get'],
  diagnose: ['claims check', 'doctor'],
  codes: ['exit-codes'],
  dns: ['claims check'],
  docs: ['--help'],
  domain: ['claim', 'claims list'],
  domains: ['claim', 'claims list'],
  env: ['environment'],
  flags: ['options'],
  format: ['formats'],
  info: ['get', 'auth status'],
  init: ['login', 'config set'],
  ls: ['list'],
  man: ['--help'],
  new: ['create'],
  profile: ['auth list', 'auth switch'],
  profiles: ['auth list', 'auth switch'],
  settings: ['config list'],
  show: ['get'],
  signin: ['login'],
  signout: ['logout'],
  status: ['auth status', 'claims get', 'imports get'],
  test: ['claims check', 'doctor'],
  usage: ['--help'],
  version: ['--version'],
  view: ['get'],
  whoami: ['auth status'],
}

/** The same for options. */
export const OTHER_OPTIONS: Readonly<Record<string, readonly string[]>> = {
  '--debug': ['--verbose'],
  '--domain': ['--name'],
  '--endpoint': ['--base-url'],
  '--follow': ['--wait'],
  '--host': ['--base-url'],
  '--max': ['--limit'],
  '--nameserver': ['--resolver'],
  '--output': ['--format'],
  '--silent': ['--quiet'],
  '--trace': ['--verbose'],
  '--url': ['--base-url'],
  '-f': ['--format', '--force'],
  '-j': ['--json'],
  '-l': ['--limit'],
  '-n': ['--limit', '--name'],
  '-o': ['--format'],
  '-p': ['--profile'],
  '-q': ['--quiet'],
  '-v': ['--verbose', '--version'],
  '-w': ['--wait'],
}

/**
 * The commands that an unknown word may mean: those of the group that was typed if there are some, else those of the whole
 * program.
 *
 * @param similar the words at this place that are spelled nearly so
 */
export function meantCommands(
  word: string,
  similar: readonly string[],
  { words, helpWord }: Pick<CommandLine, 'words' | 'helpWord'>,
): string[] {
  const meant = lookUp(OTHER_COMMANDS, word) ?? [word]
  const everywhere = [
    ...[...everyCommand()].map((command) => command.words),
    ...Object.keys(TOPICS).map((topic) => ['help', topic]),
  ]
  const found = everywhere.filter(
    (path) => meant.includes(path.join(' ')) || meant.includes(path.at(-1) ?? ''),
  )
  const inGroup = found.filter((path) => words.every((typed, at) => path[at] === typed))
  const nearly = similar.filter((other) => isLikely(word, other)).map((other) => [...words, other])
  const options = meant.filter((other) => other.startsWith('--')).map((option) => [option])
  const best = [inGroup, options, nearly, found].find((paths) => paths.length > 0) ?? []
  const start = helpWord && best !== options ? ['mailclaim', 'help'] : ['mailclaim']
  return best.map((path) => [...start, ...path.filter((part) => !start.includes(part))].join(' '))
}

/**
 * The options that an unknown one may mean.
 *
 * @param similar the options of the command that are spelled nearly so
 * @param known the flags of the command's options
 */
export function meantOptions(option: string, similar: readonly string[], known: readonly string[]): string[] {
  const flags = new Set(known.map(longFlag))
  const meant = (lookUp(OTHER_OPTIONS, option) ?? []).filter((flag) => flags.has(flag))
  return meant.length > 0 ? meant : [...similar]
}

function lookUp(
  table: Readonly<Record<string, readonly string[]>>,
  word: string,
): readonly string[] | undefined {
  return Object.hasOwn(table, word) ? table[word] : undefined
}

/** Whether one may be a typo of the other: in a short word, three wrong letters make another word, but few miss the first. */
function isLikely(typed: string, meant: string): boolean {
  return meant.slice(0, 2).includes(typed.slice(0, 1))
}
