import { type Command, Option } from 'commander'
import type { OptionDefinition } from '../commands/definition.ts'
import { optionText } from '../commands/program.ts'
import { usageError } from '../errors.ts'
import { longFlag } from './line.ts'

/**
 * Gives a command its options. One that may be repeated collects a list; of any other the last one counts, so that a
 * script can put its own defaults first.
 */
export function addOptions(command: Command, options: readonly OptionDefinition[], heading: string): void {
  for (const definition of options) {
    const option = new Option(definition.flags, optionText(definition)).helpGroup(heading)
    if (definition.flags.includes('<')) {
      option.argParser((text: string, before: unknown) => {
        const value = readValue(text, definition, command)
        return definition.repeatable ? [...(Array.isArray(before) ? before : []), value] : value
      })
    }
    command.addOption(option)
  }
}

/** @throws CliError exit 2 where the text is no value of this option. */
function readValue(text: string, definition: OptionDefinition, command: Command): unknown {
  const flag = longFlag(definition.flags)
  if (text === '--' || command.options.some((option) => option.long === text)) {
    throw usageError(
      `${flag} needs a value, and ${text} follows it`,
      `write ${definition.flags}, or ${flag}=${text} if that is meant as the value`,
    )
  }
  if (definition.choices !== undefined && !definition.choices.includes(text)) {
    throw usageError(`${flag}: ${JSON.stringify(text)} is not one of ${definition.choices.join(', ')}`)
  }
  return definition.parse === undefined ? text : definition.parse(text)
}

/** What was typed on this line; what was not typed is absent. */
export function givenOptions(command: Command): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(command.opts()).filter(([name]) => command.getOptionValueSource(name) === 'cli'),
  )
}
