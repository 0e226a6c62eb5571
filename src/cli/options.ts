import { type Command, Option } from 'commander'
import type { OptionDefinition } from '../commands/definition.ts'
import { optionText } from '../commands/program.ts'
import { usageError } from '../errors.ts'
import { parseChoice } from '../settings/parse-value.ts'
import { longFlag, takesValue } from './line.ts'

/**
 * Gives a command its options. A repeatable one collects a list; of any other the last one counts, so that a script can
 * put its own defaults first.
 */
export function addOptions(command: Command, options: readonly OptionDefinition[], heading: string): void {
  for (const definition of options) {
    const option = new Option(definition.flags, optionText(definition)).helpGroup(heading)
    if (takesValue(definition)) {
      option.argParser((text: string, before: unknown) => {
        const value = readValue(text, definition, command)
        return definition.repeatable ? [...(Array.isArray(before) ? before : []), value] : value
      })
    }
    command.addOption(option)
  }
}

/** @throws CliError exit 2 if the option does not accept the text. */
function readValue(text: string, definition: OptionDefinition, command: Command): unknown {
  const flag = longFlag(definition.flags)
  if (text === '--' || command.options.some((option) => option.long === text)) {
    throw usageError(
      `${flag} needs a value, and ${text} follows it`,
      `write ${definition.flags}, or ${flag}=${text} if that is meant as the value`,
    )
  }
  if (definition.choices !== undefined) parseChoice(text, flag, definition.choices)
  return definition.parse === undefined ? text : definition.parse(text)
}

/** The options that were typed; the others are absent. */
export function givenOptions(command: Command): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(command.opts()).filter(([name]) => command.getOptionValueSource(name) === 'cli'),
  )
}
