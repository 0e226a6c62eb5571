/** Source of completion candidates for a value: fixed texts, file names, or names and values that mailclaim knows. */
export type Completion = 'profiles' | 'domains' | 'settings' | 'setting_values' | 'files' | readonly string[]

/** Definition of an option, from which help, completion, documentation and the type of the option's value are derived. */
export interface OptionDefinition {
  /** Flag and value placeholder in commander's syntax: `--limit <n>`, `--wait`, `--no-open-tracking`. */
  readonly flags: string
  readonly description: string
  /** Whether the option may be repeated; its value is then an array. */
  readonly repeatable?: true
  /** Whether the option filters a list. A filter given twice with different values is exit 2, because one would be ignored. */
  readonly filter?: true
  /** Flag of an option, such as `--wait`, that must also be given: otherwise this option would have no effect. */
  readonly needs?: string
  /** Long flags of options that can't be combined with this one. */
  readonly conflicts?: readonly string[]
  readonly choices?: readonly string[]
  /** Help text for the value that applies without the option. */
  readonly default?: string
  /** Parses the text into the option's value. @param name name of the option, for the error message @throws CliError exit 2 or 3 */
  readonly parse?: (text: string, name: string) => unknown
  readonly completion?: Completion
  /** Name of the environment variable with the same effect. */
  readonly variable?: string
  /** Name of the setting with the same effect, as in `config set`. */
  readonly setting?: string
}

/** Values of a command's options, by `OptionName`; options not given are absent. Of `--x` and `--no-x`, the last one wins. */
export type OptionValues<Options extends readonly OptionDefinition[]> = {
  readonly [Option in Options[number] as OptionName<Option>]?: OptionValue<Option>
}

/** Commander's name of an option: `dnsPort` for `--dns-port <n>`, `check` for `--no-check`; `never` for flags of type `string`. */
export type OptionName<Option> = Option extends { readonly flags: `--no-${infer Name}` }
  ? CamelCase<Name>
  : Option extends { readonly flags: `--${infer Name} <${string}>` | `--${infer Name}` }
    ? CamelCase<Name>
    : never

type CamelCase<Name extends string> = Name extends `${infer First}-${infer Rest}`
  ? `${First}${Capitalize<CamelCase<Rest>>}`
  : Name

type OptionValue<Option> = Option extends { readonly parse: (text: string, name: string) => infer Value }
  ? Option extends { readonly repeatable: true }
    ? readonly Value[]
    : Value
  : Option extends { readonly choices: readonly (infer Choice)[] }
    ? Choice
    : Option extends { readonly flags: `${string}<${string}` }
      ? string
      : Option extends { readonly flags: `--no-${string}` }
        ? false
        : true

/** Returns the long flag: `--limit` for `--limit <n>` or `-l, --limit <n>`. */
export function toLongFlag(flags: string): string {
  return /--[a-z-]+/.exec(flags)?.[0] ?? flags
}
