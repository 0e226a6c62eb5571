import type { Context } from '../context.ts'
import type { ExitCode } from '../errors.ts'
import type { Settings } from '../settings/settings.ts'

/** What completes a value in a shell. */
export type Completion = 'profiles' | 'domains' | 'settings' | 'setting_values' | 'files' | readonly string[]

export interface ArgumentDefinition {
  /** `<name>` must be given, `[name]` may be. */
  readonly syntax: string
  readonly says: string
  readonly completion?: Completion
}

export interface OptionDefinition {
  /** As commander reads it: `--limit <n>`, `--wait`, `--no-open-tracking`. */
  readonly flags: string
  readonly says: string
  /** May be given more than once; the value is an array. */
  readonly repeatable?: true
  readonly choices?: readonly string[]
  /** Turns the text into the value. @throws CliError exit 2. */
  readonly parse?: (text: string) => unknown
  readonly completion?: Completion
}

export interface CommandInput<Options> {
  /** The positional arguments, in order; what was left out is absent. */
  readonly arguments: readonly string[]
  readonly options: Options
}

/**
 * A command: what help, completion, manual and documentation are made of, and a function over plain options.
 *
 * `run` settles when the command is done (exit 0) and throws a `CliError` for every other expected end, after it has
 * written what it has to say.
 */
export interface CommandDefinition<Options = Record<string, unknown>> {
  /** What it does, in a few sentences, below the usage line of its help. */
  readonly description: string
  readonly arguments?: readonly ArgumentDefinition[]
  readonly options?: readonly OptionDefinition[]
  /** Formats that only this command knows, beside table, json, jsonl, csv and tsv. */
  readonly formats?: readonly string[]
  readonly examples: readonly { readonly command: string; readonly says: string }[]
  /** The exit codes beside 0, 1, 2 and 130 that a script has to expect. */
  readonly exits: readonly ExitCode[]
  /** Runs even where the configuration cannot be read, with an empty one: for what repairs it. */
  readonly toleratesDamagedConfig?: true
  run(input: CommandInput<Options>, context: Context, settings: Settings): Promise<void>
}

/** Keeps the option types of a command that is listed among others. */
export function defineCommand<Options>(definition: CommandDefinition<Options>): CommandDefinition<Options> {
  return definition
}
