import type { OptionDefinition } from '../settings/option.ts'
import { COMMON_FORMATS, GLOBAL_NON_SETTING_OPTIONS } from '../settings/settings.ts'
import { ALL_SETTINGS, SETTINGS, settingName } from '../settings/table.ts'
import {
  type ArgumentDefinition,
  type CommandDefinition,
  type CommandLeaf,
  collectSelectableFields,
  type OutputDefinition,
} from './definition.ts'

/** Description of mailclaim, and of its options `--version` and `--help`, for help and completion. */
export const ROOT_HELP = {
  description: "Claim a domain that another team verified, and see why a claim isn't verifying.",
  version: 'print the version',
  help: 'show this help',
} as const

/**
 * Loads a command's definition, and adds the command's options for settings that not every command uses, such as `login --issuer`.
 *
 * @param path the command's path in the tree, such as `['claims', 'check']`
 */
export async function loadCommandWithSettingOptions(
  path: readonly string[],
  { load }: CommandLeaf,
): Promise<CommandDefinition> {
  const definition = await load()
  return { ...definition, options: [...createSettingOptions(path.join(' ')), ...(definition.options ?? [])] }
}

/**
 * Returns the options of the settings that only some commands take, `command` among them; without `command`, the options of the
 * settings that every command takes.
 *
 * @param command path of a command, joined by spaces, such as `auth token`
 */
function createSettingOptions(command?: string): OptionDefinition[] {
  return ALL_SETTINGS.flatMap(([key, { flags, commands, defaultText, parse, ...setting }]) => {
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

/**
 * Returns the options that every command takes, with their help.
 *
 * @param definition the command whose formats and fields are offered; if undefined, only the formats of every command
 */
export function createGlobalOptions(definition?: CommandDefinition): readonly OptionDefinition[] {
  const { fields } = GLOBAL_NON_SETTING_OPTIONS
  const own = {
    format: createFormatOption(definition?.output),
    fields: definition ? { ...fields, completion: collectSelectableFields(definition.output) } : fields,
  }
  return [...createSettingOptions(), ...Object.values({ ...GLOBAL_NON_SETTING_OPTIONS, ...own })]
}

function createFormatOption({ formats = [], usualFormat }: Partial<OutputDefinition> = {}): OptionDefinition {
  return {
    ...GLOBAL_NON_SETTING_OPTIONS.format,
    choices: [...COMMON_FORMATS, ...formats],
    default: usualFormat ?? 'table on a terminal, else tsv',
  }
}

/** Returns the options in a command's help: its own, and `--format` if the command has additional formats. */
export function getOptionsInHelp({ options = [], output }: CommandDefinition): OptionDefinition[] {
  return [...options, ...(output.formats === undefined ? [] : [createFormatOption(output)])]
}

/** Returns an argument's description for help, and says so if the command prompts for a missing argument. */
export function formatArgumentHelp({ description, asked }: ArgumentDefinition): string {
  return asked ? `${description}; asked for on a terminal` : description
}

/** Returns an option's or setting's description for help, with its choices, requirements and default. */
export function formatOptionHelp(option: Omit<OptionDefinition, 'flags'>): string {
  const { description, choices = [], repeatable, needs, default: value } = option
  const notes = [
    ...(choices.every((choice) => description.includes(choice)) ? [] : [choices.join(', ')]),
    ...(needs === undefined ? [] : [`needs ${needs}`]),
    ...(repeatable ? ['repeatable'] : []),
    ...(value === undefined ? [] : [`default: ${value}`]),
  ]
  return notes.length === 0 ? description : `${description} (${notes.join('; ')})`
}
