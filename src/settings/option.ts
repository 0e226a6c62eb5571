/** Source of the completion candidates for a value: a list of texts, the shell's file names, or names that mailclaim knows. */
export type CompletionSource =
  | 'profiles'
  | 'domains'
  | 'settings'
  | 'setting_values'
  | 'files'
  | readonly string[]

/** Definition of an option, from which help, completion, documentation and the type of the option's value are derived. */
export interface OptionDefinition {
  /** Flag and value placeholder in commander's syntax: `--limit <n>`, `--wait`, `--no-open-tracking`. */
  readonly flags: string
  readonly description: string
  /** Whether the option may be repeated; its value is then an array. */
  readonly repeatable?: true
  /**
   * Whether the option filters a list. Different values of one filter are a usage error, because the last would replace the others.
   */
  readonly filter?: true
  /** Flag of another option, such as `--wait`, that must be given too, because this option has no effect without it. */
  readonly needs?: string
  /** Flags of the options that can't be combined with this one. */
  readonly conflicts?: readonly string[]
  readonly choices?: readonly string[]
  /** Help text for the value that applies without the option. */
  readonly default?: string
  /**
   * Parses the option's text into its value.
   *
   * @param name the flag, for the error message
   * @throws CliError exit 3 for an invalid base URL, exit 2 for another invalid value
   */
  readonly parse?: (text: string, name: string) => unknown
  readonly completion?: CompletionSource
  /** Name of the environment variable with the same effect as the option. */
  readonly variable?: string
  /** Name of the setting with the same effect as the option, as in `config set`. */
  readonly setting?: string
}

/** Values of a command's options by flag in camel case (`CamelCaseFlag`); an option that wasn't given is absent. */
export type OptionValues<Options extends readonly OptionDefinition[]> = {
  readonly [Option in Options[number] as CamelCaseFlag<Option>]?: OptionValue<Option>
}

/** Commander's name of an option: `dnsPort` for `--dns-port <n>`, `check` for `--no-check`. */
export type CamelCaseFlag<Option> = Option extends { readonly flags: `--no-${infer Name}` }
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

/** Returns an option's flag without its placeholder: `--limit` for `--limit <n>`. */
export function toLongFlag(flags: string): string {
  return /--[a-z-]+/.exec(flags)?.[0] ?? flags
}
