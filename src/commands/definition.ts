import type { ErrorCode, ErrorGroupName } from '../errors.ts'
import type { CompletionSource, OptionDefinition, OptionValues } from '../settings/option.ts'
import { MAX_TIMEOUT_OPTION_SECONDS, parseSeconds } from '../settings/parse-value.ts'
import type { Column } from '../terminal/columns.ts'
import type { Io } from '../terminal/io.ts'

export interface ArgumentDefinition {
  /** Syntax as in the usage line: `<name>` is required, `[name]` is optional, `[name...]` takes any number. */
  readonly syntax: string
  readonly description: string
  /** Whether the command prompts for the argument on a terminal if it is missing. */
  readonly asked?: true
  readonly completion?: CompletionSource
}

/** Formats, fields and schemas of a command's output on stdout. */
export interface OutputDefinition {
  /** Name of the JSON Schema of the `--json` document: a file in docs/schemas, without `.json`. */
  readonly schema?: string
  /** Name of the JSON Schema of a `jsonl` line, if it differs from `schema`: an item of a list, or an event. */
  readonly lineSchema?: string
  /**
   * Dotted paths of an item's JSON fields that `--fields` accepts besides the fields of `columns`: `client.name`, or
   * `findings.code` for the codes of all findings.
   */
  readonly fields?: readonly string[]
  /** Columns of tables and TSV; a column's field may be computed and absent from the JSON. */
  readonly columns?: readonly Column[]
  /** Dotted paths of an event's fields, for a command whose `jsonl` lines are events; `event_fields` in `commands --json`. */
  readonly eventFields?: readonly string[]
  /** Output formats of the command besides table, json, jsonl and tsv. */
  readonly formats?: readonly string[]
  /** Default of `--format`, one of `formats`; undefined for `table` on a terminal and `tsv` elsewhere. */
  readonly usualFormat?: string
}

/** Arguments and options of a command line, as a command's `run` gets them. */
export interface CommandInput<Options extends readonly OptionDefinition[]> {
  /** Positional arguments in order. The list ends before the first omitted argument. */
  readonly arguments: readonly string[]
  readonly options: OptionValues<Options>
}

/**
 * Setup that a command requires. `configured`: settings of the service, but no credential; `signed_in`: a credential
 * (session or API key); `sometimes`: a credential, but not for every use of the command.
 */
export type AccountRequirement = 'configured' | 'signed_in' | 'sometimes'

/**
 * A command: its definition, from which help, completion and documentation are generated, and its `run` function. `run` resolves
 * if the command succeeds (exit 0), and throws a `CliError` for any other expected end.
 */
export interface CommandDefinition<
  Options extends readonly OptionDefinition[] = readonly OptionDefinition[],
> {
  /** One sentence that the help shows below the usage line. */
  readonly description: string
  readonly arguments?: readonly ArgumentDefinition[]
  readonly options?: Options
  readonly output: OutputDefinition
  /** Meanings of the events in the command's JSON output, by event name. */
  readonly events?: Readonly<Record<string, string>>
  /** Example command lines for help and documentation, each with its description. */
  readonly examples: Readonly<Record<string, string>>
  /** Codes or groups of `ERRORS` that the command can report. `every` is implied; with `account`, so are `session` and `service`. */
  readonly errors?: readonly (ErrorGroupName | ErrorCode)[]
  /** Whether the command needs only the service's settings, or also a credential. Default: neither. */
  readonly account?: AccountRequirement
  /** Whether the command continues after a closed pipe (EPIPE) on stdout: stopping would leave its changes half done. */
  readonly toleratesClosedPipe?: true
  /** Whether the command runs despite an unreadable or damaged configuration file, with an empty configuration. */
  readonly toleratesDamagedConfig?: true
  run(input: CommandInput<Options>, io: Io): Promise<void>
}

/** Returns the fields that `--fields` accepts: an item's JSON fields and the fields of columns, which may be computed. */
export function collectSelectableFields({ fields = [], columns = [] }: OutputDefinition): readonly string[] {
  return [...new Set([...columns.map(({ field }) => field), ...fields])]
}

/** Output of a command that prints a bare value by default, for a shell's `$(…)`; `--format` and `--json` override this. */
export const SINGLE_VALUE_OUTPUT = { formats: ['value'], usualFormat: 'value' } as const

/**
 * Returns the dotted paths of an event's fields: `event`, `at` (the time), and the fields of its objects, such as `claim.status`.
 *
 * @param fieldsByObject dotted field paths of each object, by its name in the event
 */
export function listEventFieldPaths(fieldsByObject: Readonly<Record<string, readonly string[]>>): string[] {
  const inner = Object.entries(fieldsByObject).flatMap(([name, all]) => all.map((one) => `${name}.${one}`))
  return ['event', 'at', ...inner]
}

/** Returns the definition unchanged. The call lets TypeScript infer the type of `run`'s `options` from their definitions. */
export function defineCommand<const Options extends readonly OptionDefinition[]>(
  definition: CommandDefinition<Options>,
): CommandDefinition<Options> {
  return definition
}

/**
 * Returns the definition of `--timeout` for a command that waits for a claim, a TXT record or an import.
 *
 * @param own fields to add or to replace
 */
export function defineTimeout(own: Partial<Pick<OptionDefinition, 'description' | 'default' | 'needs'>>) {
  return {
    flags: '--timeout <seconds>',
    description: 'give up after this long, with exit 8 (7 if the service never answered)',
    parse: (text: string, name: string) => parseSeconds(text, name, MAX_TIMEOUT_OPTION_SECONDS),
    ...own,
  } as const
}

/** `--public-resolvers`, an option of the commands that check a TXT record in DNS. */
export const PUBLIC_RESOLVERS_OPTION = {
  flags: '--public-resolvers',
  description: 'query 1.1.1.1, 8.8.8.8, and 9.9.9.9 as well',
} as const

/** The argument `[claim]`. If missing, the user picks a claim of the ledger; exit 2 without prompts or with an empty ledger. */
export const OPTIONAL_CLAIM_ARGUMENT: ArgumentDefinition = {
  syntax: '[claim]',
  description: 'a domain name known on this machine (its newest claim), or a placeholder domain id',
  asked: true,
  completion: 'domains',
}

/** The argument `[claim...]` of commands that take one claim or several. */
export const CLAIMS_ARGUMENT: ArgumentDefinition = {
  ...OPTIONAL_CLAIM_ARGUMENT,
  syntax: '[claim...]',
  description: `${OPTIONAL_CLAIM_ARGUMENT.description}; or several`,
}

/** A command in the command tree. `load` imports the definition only when it is needed: loading all would delay a start. */
export interface CommandLeaf {
  /** One line for lists of commands, as in `mailclaim --help` or the help of a group. */
  readonly summary: string
  /** Heading above the command in `mailclaim --help`; undefined for a subcommand, which isn't listed there. */
  readonly heading?: string | undefined
  load(): Promise<CommandDefinition>
}

/** Subcommands with a common first word, such as `claims check` and `claims watch`. */
export interface CommandGroup {
  readonly summary: string
  readonly heading: string
  readonly commands: Readonly<Record<string, CommandLeaf>>
}

export type CommandNode = CommandLeaf | CommandGroup

export type CommandTree = Readonly<Record<string, CommandNode>>

/** Yields every command with its path, such as `['claims', 'check']`, in the order of the help. */
export function* walkCommands(tree: CommandTree): Generator<{ path: readonly string[]; leaf: CommandLeaf }> {
  for (const [word, node] of Object.entries(tree)) {
    if (!('commands' in node)) yield { path: [word], leaf: node }
    else for (const [second, leaf] of Object.entries(node.commands)) yield { path: [word, second], leaf }
  }
}
