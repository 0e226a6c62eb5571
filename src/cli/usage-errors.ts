import type { CommanderError } from 'commander'
import { type CommandDefinition, longFlag, type OptionDefinition } from '../commands/definition.ts'
import { globalOptions } from '../commands/program.ts'
import { checkName } from '../dns/wire/name.ts'
import { type CliError, usageError } from '../errors.ts'
import { secretHint } from '../settings/table.ts'
import { commandLine, shellQuote } from '../shell-quote.ts'
import { type CommandLine, takesValue } from './line.ts'
import { meantCommands, meantOptions } from './suggestions.ts'

/** Where a program that asks for help finds it. */
export const FOR_PROGRAMS = 'for programs, all commands are described by: mailclaim commands --json'

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
      return usageError(`a command is missing after ${['mailclaim', ...line.words].join(' ')}`, FOR_PROGRAMS)
    case 'commander.unknownCommand':
      if (line.unknownOption !== undefined)
        return unknownOption(
          line.unknownOption,
          [],
          `options of a command follow its name; ${help}`,
          knownOptions(line, definition),
        )
      if (line.words[0] === 'claims' && CANCEL.test(line.unknownWord ?? ''))
        return usageError(first, cannotCancel(line.rest[0]))
      return usageError(
        first,
        didYouMean(meantCommands(line.unknownWord ?? '', meant, line)) ?? claimMeant(line) ?? help,
      )
    case 'commander.unknownOption': {
      const typed = /'(.*)'/s.exec(error.message)?.[1] ?? ''
      return unknownOption(typed, meant, help, knownOptions(line, definition))
    }
    case 'commander.excessArguments':
      return usageError(
        first,
        secretHint(line.rest.find((word) => word.startsWith('--')) ?? '') ??
          durationMeant(line, definition)?.hint ??
          usage(line, definition),
      )
    default:
      return usageError(first, help)
  }
}

/**
 * Doesn't repeat what follows the option's name: it may be a secret.
 *
 * @param similar the options of the command that are spelled nearly so
 * @param options those that could have been typed here
 */
function unknownOption(
  typed: string,
  similar: readonly string[],
  help: string,
  options: readonly KnownOption[],
): CliError {
  const known = options.map(({ flags }) => flags)
  const name = typed.replace(/=.*/s, '')
  const isKnown = name !== typed && known.some((flags) => flags.split(/[ ,]+/).includes(name))
  if (isKnown) return usageError(`${name} takes no value`, secretHint(name) ?? `write ${name} alone`)
  const format = options.find(({ flags }) => longFlag(flags) === '--format')
  const isFormat = format?.choices?.includes(name.slice(2)) === true
  const meant = isFormat ? [`--format ${name.slice(2)}`] : meantOptions(name, similar, known)
  const hint = secretHint(name) ?? didYouMean(meant) ?? help
  return usageError(`unknown option '${name}'`, hint)
}

/** For a domain in place of a command: `mailclaim example.com claim`. */
function claimMeant({ words, unknownWord = '', helpWord }: CommandLine): string | undefined {
  const isDomain = words.length === 0 && !helpWord && unknownWord.includes('.') && checkName(unknownWord).ok
  return isDomain ? didYouMean([commandLine(['claim', unknownWord], process.platform)]) : undefined
}

function didYouMean(meant: readonly string[]): string | undefined {
  if (meant.length === 0) return undefined
  return `did you mean ${meant.length === 1 ? '' : 'one of '}${meant.join(', ')}?`
}

type KnownOption = Pick<OptionDefinition, 'flags' | 'choices'>

/** The options that could have been typed here. */
function knownOptions(line: CommandLine, definition: CommandDefinition | undefined): KnownOption[] {
  const version = line.node === undefined ? [{ flags: '--version' }] : []
  return [...(definition?.options ?? []), ...globalOptions(definition), ...version]
}

/** A path, but no URL. A name alone isn't one: sh, pl and py are top-level domains. */
const PATH = /^(?!\w+:\/\/).*[/\\]/

/** Options whose values people type without them, after a domain, with what those look like. */
const BARE_VALUES: Readonly<Record<string, RegExp>> = {
  '--value': /=/,
  '--with': PATH,
  '--publish': PATH,
}

/** The options of a command for a time, and what people type as one. */
const DURATIONS: readonly string[] = ['--timeout', '--interval']
const DURATION = /^\d+(\.\d+)?(ms|sec|min|[smhd])?$/

/** @throws CliError exit 2 if the only word after a domain is the value of an option that was left out. */
function requireNoBareValue(
  [, word, ...others]: readonly string[],
  { options = [] }: CommandDefinition,
): void {
  if (word === undefined || others.length > 0) return
  const flag = options.map(({ flags }) => longFlag(flags)).find((known) => BARE_VALUES[known]?.test(word))
  if (flag === undefined) return
  const meant = `${flag} ${shellQuote(word, process.platform)}`
  throw usageError(`${JSON.stringify(word)} is not a domain`, didYouMean([meant]))
}

/** A duration after an option without a value, for a command that has another option for it: `--wait 5`. */
function durationMeant(
  { rest }: CommandLine,
  definition: CommandDefinition | undefined,
): { word: string; hint: string } | undefined {
  const own = definition?.options ?? []
  const durations = own.map(({ flags }) => longFlag(flags)).filter((flag) => DURATIONS.includes(flag))
  if (durations.length === 0) return undefined
  const flags = [...own, ...globalOptions(definition)]
    .filter((option) => !takesValue(option))
    .map((option) => longFlag(option.flags))
  const at = rest.findIndex((word, index) => flags.includes(rest[index - 1] ?? '') && DURATION.test(word))
  const word = rest[at]
  if (word === undefined) return undefined
  const meant = durations.map((flag) => `${flag} ${word}`).join(' or ')
  return { word, hint: `${rest[at - 1]} takes no value; did you mean to add ${meant}?` }
}

/** What people want to do to a claim, and the service has no operation for. */
const CANCEL = /^(abort|cancel|close|delete|drop|remove|revoke|rm|stop)$/

const cannotCancel = (domain = '<domain>') =>
  `a claim can't be canceled from here: the service has no operation for that, and an unverified claim expires by itself. To see the claim: mailclaim claims get ${domain}`

/** The next step for a command of `claims` in front of a domain of `claim`: `mailclaim claim check example.com`. */
function claimsCommandMeant(word: string, domain: string | undefined): string | undefined {
  if (CANCEL.test(word)) return cannotCancel(domain)
  const commands = meantCommands(word, [], { words: ['claims'], helpWord: false })
  return didYouMean(commands.filter((command) => command.startsWith('mailclaim claims ')))
}

/** @throws CliError exit 2 if an argument is missing. Commander would not see that `--fields` alone needs none. */
export function requireArguments(
  given: readonly string[],
  line: CommandLine,
  definition: CommandDefinition,
): void {
  const missing = (definition.arguments ?? [])[given.length]
  if (missing?.syntax.startsWith('<'))
    throw usageError(`missing required argument '${missing.syntax.slice(1, -1)}'`, usage(line, definition))
  // The command that takes several domains would take the other command's name for one.
  const [word = '', domain] = given
  const hint = line.words.join(' ') === 'claim' ? claimsCommandMeant(word, domain) : undefined
  if (hint !== undefined) throw usageError(`'${word}' is not a domain`, hint)
  const duration = definition.arguments?.[0]?.syntax.includes('...') && durationMeant(line, definition)
  if (duration) throw usageError(`${JSON.stringify(duration.word)} is not a domain`, duration.hint)
  requireNoBareValue(given, definition)
}

function usage(line: CommandLine, definition: CommandDefinition | undefined): string {
  const words = ['mailclaim', ...line.words, ...(definition?.arguments ?? []).map(({ syntax }) => syntax)]
  return `usage: ${words.join(' ')} [options]`
}
