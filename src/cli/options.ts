import { type Command, Option } from 'commander'
import { optionText } from '../commands/program.ts'
import { usageError } from '../errors.ts'
import { longFlag, type OptionDefinition } from '../settings/option.ts'
import { parseChoice } from '../settings/parse-value.ts'
import { takesValue } from './line.ts'

/**
 * Gives a command its options. A repeatable one collects a list; of any other the last one counts, so that a script can
 * put its own defaults first. But of two filters one would be dropped, so they have to agree.
 */
export function addOptions(command: Command, options: readonly OptionDefinition[], heading: string): void {
  for (const definition of options) {
    const { flags, repeatable, filter } = definition
    const option = new Option(flags, optionText(definition)).helpGroup(heading)
    if (takesValue(definition)) {
      option.argParser((text: string, before: unknown) => {
        const value = parseOption(text, definition, command)
        if (filter && before !== undefined && before !== value)
          throw usageError(`${longFlag(flags)} is given twice, with different values`, 'give it once')
        return repeatable ? [...(Array.isArray(before) ? before : []), value] : value
      })
    }
    command.addOption(option)
  }
}

/** @throws CliError exit 2 if the option does not accept the text, as none accepts nothing: a variable that isn't set. */
function parseOption(text: string, definition: OptionDefinition, command: Command): unknown {
  const flag = longFlag(definition.flags)
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

/** The options that were typed; the others are absent. */
export function readGivenOptions(command: Command): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(command.opts()).filter(([name]) => command.getOptionValueSource(name) === 'cli'),
  )
}

/**
 * Checks what options say of each other (`needs` and `conflicts`), so that none does nothing.
 *
 * @param given the options that were typed, by commander's names
 * @throws CliError exit 2
 */
export function checkRelations(
  options: readonly OptionDefinition[],
  given: Readonly<Record<string, unknown>>,
): void {
  for (const { flags, needs, conflicts = [] } of options.filter((option) => isGiven(option.flags, given))) {
    const other = conflicts.find((candidate) => isGiven(candidate, given))
    if (other !== undefined) throw usageError(`${longFlag(flags)} and ${other} can't be used together`)
    if (needs !== undefined && !isGiven(needs, given)) throw usageError(`${longFlag(flags)} needs ${needs}`)
  }
}

/** @param flags of the option: `--wait`, `--no-check`, `--timeout <seconds>` */
function isGiven(flags: string, given: Readonly<Record<string, unknown>>): boolean {
  const option = new Option(flags)
  const value = given[option.attributeName()]
  return value !== undefined && (value === false) === option.negate
}
