/** What completes a value in a shell. */
export type Completion = 'profiles' | 'domains' | 'settings' | 'setting_values' | 'files' | readonly string[]

/** An option, from which its help, its completion, its documentation and the type of its value come. */
export interface OptionDefinition {
  /** As commander reads it: `--limit <n>`, `--wait`, `--no-open-tracking`. */
  readonly flags: string
  readonly description: string
  /** May be given more than once; the value is an array. */
  readonly repeatable?: true
  /** It filters a list: given twice with different values, it is exit 2, because one of them would be dropped. */
  readonly filter?: true
  /** Does nothing without this option: `--wait`. */
  readonly needs?: string
  /** The options that it can't be used together with. */
  readonly conflicts?: readonly string[]
  readonly choices?: readonly string[]
  /** What holds without the option, for help. */
  readonly default?: string
  /** Limiter the text into the value. @param name where the text comes from, for the message @throws CliError exit 2. */
  readonly parse?: (text: string, name: string) => unknown
  readonly completion?: Completion
  /** The environment variable that does the same. */
  readonly variable?: string
  /** The setting of a profile that does the same, as `config set` takes it. */
  readonly setting?: string
}

/** What was given of these options, by commander's names; what wasn't is absent. Of `--x` and `--no-x`, the last one counts. */
export type OptionValues<Options extends readonly OptionDefinition[]> = {
  readonly [Option in Options[number] as OptionName<Option>]?: OptionValue<Option>
}

/** `dnsPort` of `--dns-port <n>`, `check` of `--no-check`; none if the flags are only known as some text. */
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

/** `--limit` of `--limit <n>` or `-l, --limit <n>`. */
export function longFlag(flags: string): string {
  return /--[a-z-]+/.exec(flags)?.[0] ?? flags
}
