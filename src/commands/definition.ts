import type { Context } from '../context.ts'
import type { ExitCode } from '../errors.ts'
import type { Settings } from '../settings/settings.ts'

/** What completes a value in a shell. */
export type Completion = 'profiles' | 'domains' | 'settings' | 'setting_values' | 'files' | readonly string[]

export interface ArgumentDefinition {
  /** `<name>` is required, `[name]` is optional. */
  readonly syntax: string
  readonly description: string
  readonly completion?: Completion
}

export interface OptionDefinition {
  /** As commander reads it: `--limit <n>`, `--wait`, `--no-open-tracking`. */
  readonly flags: string
  readonly description: string
  /** May be given more than once; the value is an array. */
  readonly repeatable?: true
  readonly choices?: readonly string[]
  /** What holds without the option, for help. */
  readonly default?: string
  /** Turns the text into the value. @throws CliError exit 2. */
  readonly parse?: (text: string) => unknown
  readonly completion?: Completion
}

export interface CommandInput<Options> {
  /** The positional arguments, in order; those left out are absent. */
  readonly arguments: readonly string[]
  readonly options: Options
}

export type DamagedConfigTolerance = 'silently' | 'with a warning'

/**
 * A command: the definition that help, completion, manual and documentation come from, and a function over plain options.
 *
 * `run` settles when the command is done (exit 0) and throws a `CliError` for every other expected end, after it has
 * written its output.
 */
export interface CommandDefinition<Options = Record<string, unknown>> {
  /** What it does, in a few sentences, below the usage line of its help. */
  readonly description: string
  readonly arguments?: readonly ArgumentDefinition[]
  readonly options?: readonly OptionDefinition[]
  /** Formats of this command besides table, json, jsonl, csv and tsv. */
  readonly formats?: readonly string[]
  /** The events of `--format jsonl`, by the value of `event`, with what each means. */
  readonly events?: Readonly<Record<string, string>>
  /** What each command line does. */
  readonly examples: Readonly<Record<string, string>>
  /** The exit codes that a script has to expect besides 0, 1, 2 and 130. */
  readonly exits: readonly ExitCode[]
  /**
   * Runs even if the configuration can't be read, with what can be read of it. `silently`: the command repairs, reports or
   * doesn't need it. `with a warning`: it works without it, but perhaps otherwise than the person meant.
   */
  readonly toleratesDamagedConfig?:
    | DamagedConfigTolerance
    | ((options: Options) => DamagedConfigTolerance | undefined)
  run(input: CommandInput<Options>, context: Context, settings: Settings): Promise<void>
}

/** Keeps the option types of a command that is listed among others. */
export function defineCommand<Options>(definition: CommandDefinition<Options>): CommandDefinition<Options> {
  return definition
}

/** `[claim]` of every claim command; on a terminal it can be left out and picked from a list. */
export const CLAIM_ARGUMENT: ArgumentDefinition = {
  syntax: '[claim]',
  description: 'a domain name known on this machine (its newest open claim), or a placeholder domain id',
  completion: 'domains',
}
