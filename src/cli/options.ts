import { type Command, Option } from 'commander'
import { formatOptionHelp } from '../commands/options.ts'
import { usageError } from '../errors.ts'
import { type OptionDefinition, toLongFlag } from '../settings/option.ts'
import { parseChoice } from '../settings/parse-value.ts'
import { takesValue } from './line.ts'

/**
 * Adds options to a command, below a heading in its help. Unless an option is repeatable, its last value counts, so that a script
 * can put its defaults first; but two different values of an option with `filter` are a usage error.
 */
export function addOptions(command: Command, options: readonly OptionDefinition[], heading: string): void {
  for (const definition of options) {
    const { flags, repeatable, filter } = definition
    const option = new Option(flags, formatOptionHelp(definition)).helpGroup(heading)
    if (takesValue(definition)) {
      option.argParser((text: string, before: unknown) => {
        const value = parseOption(text, definition, command)
        if (filter && before !== undefined && before !== value)
          throw usageError(`${toLongFlag(flags)} is given twice, with different values`, 'give it once')
        return repeatable ? [...(Array.isArray(before) ? before : []), value] : value
      })
    }
    command.addOption(option)
  }
}

/**
 * Parses an option's value. Rejects an empty value (usually an unset shell variable), and `--` or a flag of the command (the value
 * in front of it is probably missing).
 *
 * @throws CliError exit 2; as the option's `parse`
 */
function parseOption(text: string, definition: OptionDefinition, command: Command): unknown {
  const flag = toLongFlag(definition.flags)
  if (text === '--' || command.options.some((option) => option.long === text)) {
    throw usageError(
      `${flag} needs a value, and ${text} follows it`,
      `write ${definition.flags}, or ${flag}=${text} if that is meant as the value`,
    )
  }
  if (text.trim() === '') throw usageError(`${flag} is empty`, `give a value, or leave ${flag} out`)
  if (definition.choices !== undefined) parseChoice(text, flag, definition.choices)
  return definition.parse === undefined ? text : definition.parse(text, flag)
}

/** Returns the values of the options on the command line, without defaults, by commander's names: `dnsPort` for `--dns-port`. */
export function readGivenOptions(command: Command): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(command.opts()).filter(([name]) => command.getOptionValueSource(name) === 'cli'),
  )
}

/**
 * Refuses a given option without the option that it `needs`, or together with one in its `conflicts`.
 *
 * @param given values of the options on the command line, by commander's names
 * @throws CliError exit 2
 */
export function checkOptionRelations(
  options: readonly OptionDefinition[],
  given: Readonly<Record<string, unknown>>,
): void {
  for (const { flags, needs, conflicts = [] } of options.filter((option) => isGiven(option.flags, given))) {
    const other = conflicts.find((candidate) => isGiven(candidate, given))
    if (other !== undefined) throw usageError(`${toLongFlag(flags)} and ${other} can't be used together`)
    if (needs !== undefined && !isGiven(needs, given)) throw usageError(`${toLongFlag(flags)} needs ${needs}`)
  }
}

/**
 * Whether an option is on the command line, without its opposite (`--no-x` for `--x`) after it.
 *
 * @param flags such as `--wait`, `--no-check` or `--timeout <seconds>`
 */
function isGiven(flags: string, given: Readonly<Record<string, unknown>>): boolean {
  const option = new Option(flags)
  const value = given[option.attributeName()]
  return value !== undefined && (value === false) === option.negate
}
