import type { ErrorCode, ErrorGroup } from '../errors.ts'
import type { Completion, OptionDefinition, OptionValues } from '../settings/option.ts'
import { MAX_WAIT_SECONDS, parseSeconds } from '../settings/parse-value.ts'
import type { Column } from '../terminal/columns.ts'
import type { Io } from '../terminal/io.ts'

export interface ArgumentDefinition {
  /** `<name>` is required, `[name]` is optional. */
  readonly syntax: string
  readonly description: string
  /** On a terminal, a person who leaves it out is asked for it. */
  readonly asked?: true
  readonly completion?: Completion
}

/** What a command prints on stdout. Help, documentation and the check of `--fields` come from it. */
export interface OutputDefinition {
  /**
   * The file in docs/schemas, without `.json`, that describes the document of `--json`: `list` of a list. What has none is
   * described by its fields.
   */
  readonly schema?: string
  /** The one that describes a line of `--format jsonl`, if that is something else: an item of the list, or an event. */
  readonly lineSchema?: string
  /**
   * The fields of an item in JSON, dotted: `client.name`, and `findings.code` for a field of every finding. Those of the columns if
   * absent.
   */
  readonly fields?: readonly string[]
  /** The columns of tables and TSV; these also know the fields that only a column has. */
  readonly columns?: readonly Column[]
  /** The fields of a line of `--format jsonl`, if the lines are events. */
  readonly events?: readonly string[]
  /** Formats besides table, json, jsonl and tsv. They aren't made of fields. */
  readonly formats?: readonly string[]
  /** Which of `formats` applies without `--format`, on a terminal or not. */
  readonly usualFormat?: string
}

export interface CommandInput<Options extends readonly OptionDefinition[]> {
  /** The positional arguments, in order; those left out are absent. */
  readonly arguments: readonly string[]
  readonly options: OptionValues<Options>
}

/**
 * What a command needs of an account: a service and a client id (`configured`), a session or an API key as well
 * (`signed_in`), or either only with some arguments and options (`sometimes`).
 */
export type AccountNeed = 'configured' | 'signed_in' | 'sometimes'

/**
 * A command: the definition that help, completion and documentation come from, and a function over plain options.
 *
 * `run` settles when the command is done (exit 0) and throws a `CliError` for every other expected end, after it has
 * written its output.
 */
export interface CommandDefinition<
  Options extends readonly OptionDefinition[] = readonly OptionDefinition[],
> {
  /** What it does, in one sentence, below the usage line of its help. */
  readonly description: string
  readonly arguments?: readonly ArgumentDefinition[]
  readonly options?: Options
  readonly output: OutputDefinition
  /** The events of `--format jsonl`, by the value of `event`, with what each means. */
  readonly events?: Readonly<Record<string, string>>
  /** What each command line does. */
  readonly examples: Readonly<Record<string, string>>
  /** The errors that it can end with, or groups of them, besides those of every command and of `account`. */
  readonly errors?: readonly (ErrorGroup | ErrorCode)[]
  /** What it needs besides this machine; nothing if absent. */
  readonly account?: AccountNeed
  /** Whether it goes on when the reader of its output goes away: what it changes would be left half done. */
  readonly changes?: true
  /** Runs even if the configuration can't be read, as if there were none: the command shows or examines it, or needs none. */
  readonly toleratesDamagedConfig?: true
  run(input: CommandInput<Options>, io: Io): Promise<void>
}

/** The fields that `--fields` can name: those of an item, and what only a column has. */
export function knownFields({ fields = [], columns = [] }: OutputDefinition): readonly string[] {
  return [...new Set([...columns.map(({ field }) => field), ...fields])]
}

/** The output of a command that prints one thing and nothing else, for a shell's `$(…)`, unless a format is given. */
export const SINGLE_VALUE_OUTPUT = { formats: ['value'], usualFormat: 'value' } as const

/** The fields of an event: when it was and what happened, and those of the objects in it. */
export function eventFields(objects: Readonly<Record<string, readonly string[]>>): readonly string[] {
  const inner = Object.entries(objects).flatMap(([name, fields]) => fields.map((field) => `${name}.${field}`))
  return ['event', 'at', ...inner]
}

/** Gives `run` the types of its options, from their definitions. */
export function defineCommand<const Options extends readonly OptionDefinition[]>(
  definition: CommandDefinition<Options>,
): CommandDefinition<Options> {
  return definition
}

/** `--timeout` of every command that waits, with its own default. */
export function timeoutOption(own: Partial<Pick<OptionDefinition, 'description' | 'default' | 'needs'>>) {
  return {
    flags: '--timeout <seconds>',
    description: 'give up after this long, with exit 8 (7 if the service never answered)',
    parse: (text: string, name: string) => parseSeconds(text, name, MAX_WAIT_SECONDS),
    ...own,
  } as const
}

/** `--public-resolvers` of every command that checks DNS. */
export const PUBLIC_RESOLVERS = {
  flags: '--public-resolvers',
  description: 'query 1.1.1.1, 8.8.8.8, and 9.9.9.9 as well',
} as const

/** `[claim]` of every claim command; on a terminal it can be left out and picked from a list. */
export const CLAIM_ARGUMENT: ArgumentDefinition = {
  syntax: '[claim]',
  description: 'a domain name known on this machine (its newest claim), or a placeholder domain id',
  asked: true,
  completion: 'domains',
}

/** The same for a command that also takes several. */
export const CLAIM_ARGUMENTS: ArgumentDefinition = {
  ...CLAIM_ARGUMENT,
  syntax: '[claim...]',
  description: `${CLAIM_ARGUMENT.description}; or several`,
}
/** A command by its word. Its code is loaded only when it is typed. */
export interface CommandLeaf {
  /** What it does, in one line. */
  readonly summary: string
  /** Under which heading the program's help shows it. */
  readonly heading?: string | undefined
  load(): Promise<CommandDefinition>
}

export interface CommandGroup {
  readonly summary: string
  readonly heading: string
  readonly commands: Readonly<Record<string, CommandLeaf>>
}

export type CommandTree = Readonly<Record<string, CommandLeaf | CommandGroup>>

/** Every command with the words that are typed for it, in the order of the tree. */
export function* everyCommand(tree: CommandTree): Generator<{ words: readonly string[]; leaf: CommandLeaf }> {
  for (const [word, node] of Object.entries(tree)) {
    if (!('commands' in node)) yield { words: [word], leaf: node }
    else for (const [second, leaf] of Object.entries(node.commands)) yield { words: [word, second], leaf }
  }
}
