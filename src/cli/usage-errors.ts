import type { CommanderError } from 'commander'
import type { CommandDefinition } from '../commands/definition.ts'
import { tree } from '../commands/tree.ts'
import { type CliError, usageError } from '../errors.ts'
import { secretHint } from '../settings/table.ts'
import { type CommandLine, everyCommand, isGroup } from './line.ts'

/** The usage error for a line that commander doesn't understand, with a next step. */
export function usageErrorOf(
  error: CommanderError,
  line: CommandLine,
  definition: CommandDefinition | undefined,
): CliError {
  const [first = '', suggestion = ''] = error.message.replace(/^error: /, '').split('\n')
  // "(Did you mean --wait?)" or "(Did you mean one of list, get?)"
  const meant = /Did you mean (?:one of )?(.+)\?/.exec(suggestion)?.[1]?.split(', ') ?? []
  const help = `see: ${['mailclaim', ...line.words, '--help'].join(' ')}`
  switch (error.code) {
    case 'commander.help':
      return usageError(`a command is missing after ${['mailclaim', ...line.words].join(' ')}`, help)
    case 'commander.unknownCommand':
      if (line.unknownOption !== undefined)
        return unknownOption(line.unknownOption, [], `options of a command follow its name; ${help}`)
      return usageError(first, didYouMean(meantCommands(meant, line)) ?? help)
    case 'commander.unknownOption':
      return unknownOption(/'(.*)'/s.exec(error.message)?.[1] ?? '', meant, help)
    case 'commander.excessArguments':
      return usageError(
        first,
        didYouMean(pluralMeant(line)) ??
          secretHint(line.rest.find((word) => word.startsWith('--')) ?? '') ??
          usage(line, definition),
      )
    case 'commander.missingArgument':
      return usageError(first, usage(line, definition))
    default:
      return usageError(first, help)
  }
}

/** Doesn't repeat what follows the option's name: it may be a secret. */
function unknownOption(typed: string, meant: readonly string[], help: string): CliError {
  const name = typed.replace(/=.*/s, '')
  return usageError(`unknown option '${name}'`, secretHint(name) ?? didYouMean(meant) ?? help)
}

function didYouMean(meant: readonly string[]): string | undefined {
  if (meant.length === 0) return undefined
  return `did you mean ${meant.length === 1 ? '' : 'one of '}${meant.join(', ')}?`
}

/** Whole commands: those that commander finds similar, or else those with that name elsewhere in the tree. */
function meantCommands(similar: readonly string[], line: CommandLine): string[] {
  if (similar.length > 0) return similar.map((word) => ['mailclaim', ...line.words, word].join(' '))
  return [...everyCommand()]
    .filter(({ words }) => words.at(-1) === line.unknownWord)
    .map(({ words }) => ['mailclaim', ...words].join(' '))
}

/** `mailclaim claim check example.com` means `mailclaim claims check example.com`. */
function pluralMeant(line: CommandLine): string[] {
  const group = `${line.words.at(-1)}s`
  const node = line.words.length === 1 && Object.hasOwn(tree, group) ? tree[group] : undefined
  const next = line.rest.find((word) => !word.startsWith('-'))
  return node !== undefined && isGroup(node) && next !== undefined && Object.hasOwn(node.commands, next)
    ? [`mailclaim ${group} ${next}`]
    : []
}

function usage(line: CommandLine, definition: CommandDefinition | undefined): string {
  const words = ['mailclaim', ...line.words, ...(definition?.arguments ?? []).map(({ syntax }) => syntax)]
  return `usage: ${words.join(' ')} [options]`
}
