import type { OptionDefinition } from '../settings/option.ts'
import { FORMATS, GLOBAL_OPTIONS } from '../settings/settings.ts'
import { PROFILE_AND_SETTINGS, SETTINGS, settingName } from '../settings/table.ts'
import {
  type ArgumentDefinition,
  type CommandDefinition,
  type CommandLeaf,
  knownFields,
  type OutputDefinition,
} from './definition.ts'

export const PROGRAM = {
  description: "Claim a domain that another team verified, and see why a claim isn't verifying.",
  version: 'print the version',
  help: 'show this help',
} as const

/** A command's definition, with the options of the settings that belong to it. */
export async function loadCommand(
  words: readonly string[],
  { load }: CommandLeaf,
): Promise<CommandDefinition> {
  const definition = await load()
  return { ...definition, options: [...settingOptions(words.join(' ')), ...(definition.options ?? [])] }
}

/** The options that set settings: those of every command, or those of one command. */
function settingOptions(command?: string): OptionDefinition[] {
  return PROFILE_AND_SETTINGS.flatMap(([key, { flags, commands, defaultText, parse, ...setting }]) => {
    const belongs = command === undefined ? commands === undefined : commands?.includes(command)
    if (flags === undefined || !belongs) return []
    return {
      ...setting,
      flags,
      parse: (text: string, name: string) => {
        parse(text, name)
        return text
      },
      ...(defaultText && { default: defaultText }),
      ...(Object.hasOwn(SETTINGS, key) && { setting: settingName(key) }),
    }
  })
}

/** The options that a command takes, before or after its name, besides its own; some know more formats than others. */
export function globalOptions(definition?: CommandDefinition): readonly OptionDefinition[] {
  const { fields } = GLOBAL_OPTIONS
  const own = {
    format: formatOption(definition?.output),
    fields: definition ? { ...fields, completion: knownFields(definition.output) } : fields,
  }
  return [...settingOptions(), ...Object.values({ ...GLOBAL_OPTIONS, ...own })]
}

function formatOption({ formats = [], usualFormat }: Partial<OutputDefinition> = {}): OptionDefinition {
  return {
    ...GLOBAL_OPTIONS.format,
    choices: [...FORMATS, ...formats],
    default: usualFormat ?? 'table on a terminal, else tsv',
  }
}

/** The options that the help of a command shows: its own, and `--format` if it has formats besides the usual ones. */
export function shownOptions({ options = [], output }: CommandDefinition): OptionDefinition[] {
  return [...options, ...(output.formats === undefined ? [] : [formatOption(output)])]
}

/** The description of an argument, with what happens without it. */
export function argumentText({ description, asked }: ArgumentDefinition): string {
  return asked ? `${description}; asked for on a terminal` : description
}

/** The description of an option or a setting, with its choices and its default. */
export function optionText(option: Omit<OptionDefinition, 'flags'>): string {
  const { description, choices = [], repeatable, needs, default: value } = option
  const notes = [
    ...(choices.every((choice) => description.includes(choice)) ? [] : [choices.join(', ')]),
    ...(needs === undefined ? [] : [`needs ${needs}`]),
    ...(repeatable ? ['repeatable'] : []),
    ...(value === undefined ? [] : [`default: ${value}`]),
  ]
  return notes.length === 0 ? description : `${description} (${notes.join('; ')})`
}
