import { Exit, type ExitCode } from '../errors.ts'
import { FORMATS } from '../settings/settings.ts'
import type { Column } from '../terminal/columns.ts'
import { createListWriter } from '../terminal/list-writer.ts'
import {
  type ArgumentDefinition,
  type CommandDefinition,
  type CommandLeaf,
  type CommandTree,
  defineCommand,
  exitCodesOf,
  fieldsIn,
  longFlag,
  type OptionDefinition,
} from './definition.ts'
import { EXIT_CODES, GLOBAL_OPTIONS } from './program.ts'
import { ENVIRONMENT, FORMAT_MEANINGS, PRECEDENCE } from './reference.ts'

const COLUMNS: readonly Column[] = [
  { field: 'command', kind: 'id' },
  { field: 'summary' },
  { field: 'account', only: 'programs' },
  { field: 'schema', only: 'programs' },
  { field: 'line_schema', only: 'programs' },
]

const OPTION_FIELDS = [
  ...[
    'name',
    'value',
    'value_required',
    'type',
    'description',
    'choices',
    'default',
    'repeatable',
    'needs',
    'conflicts',
  ],
  ...['variable', 'setting'],
]

const FIELDS = [
  ...['command', 'summary', 'description', 'account'],
  ...['name', 'required', 'asked', 'variadic', 'description'].map((field) => `arguments.${field}`),
  ...OPTION_FIELDS.map((field) => `options.${field}`),
  ...['code', 'meaning', 'advice'].map((field) => `exits.${field}`),
  ...['formats', 'usual_format', 'fields', 'column_fields', 'event_fields'],
  ...['event', 'meaning'].map((field) => `events.${field}`),
  ...['examples.line', 'examples.description', 'schema', 'line_schema'],
]

/** The type of an option's value, by the placeholder in its flags; text if it isn't here. */
const TYPES: Readonly<Record<string, 'integer' | 'number'>> = {
  days: 'integer',
  n: 'integer',
  port: 'integer',
  seconds: 'number',
}

/** The command that describes the commands of a tree, itself among them. */
export function describing(tree: CommandTree): CommandDefinition<never> {
  return defineCommand({
    description: `Describes every command for programs: arguments, options, exit codes, formats, fields, and the JSON Schemas of what it
prints. With --json, the document also has the options of every command, the environment variables, the exit codes, and the
directory of the schemas. The help of one command prints its entry alone with --json.`,
    examples: {
      'mailclaim commands': 'a list of all commands',
      'mailclaim commands --json > mailclaim.json': 'everything, for a program that drives mailclaim',
      'mailclaim commands --format jsonl --fields command,exits.code': 'the exit codes of each command',
    },
    output: {
      schema: 'commands',
      lineSchema: 'commands#/$defs/command',
      fields: FIELDS,
      columns: COLUMNS,
    },
    exits: [],
    toleratesDamagedConfig: 'silently',
    async run(_input, io) {
      const [context, settings] = [io, io.settings]
      const { version, schemas } = context.program
      const items = await Promise.all(leavesOf(tree).map((leaf) => describeCommand(...leaf)))
      const writer = createListWriter({ context, settings, columns: COLUMNS, nothing: 'no commands' })
      const envelope = {
        object: 'list',
        has_more: false,
        version,
        schemas: {
          directory: schemas,
          error: schemaFile('error'),
        },
        global_options: GLOBAL_OPTIONS.map((option) => describeOption(option, GLOBAL_OPTIONS)),
        environment: ENVIRONMENT.flatMap(({ name, description }) =>
          name.split(', ').map((variable) => ({ name: variable, description })),
        ),
        precedence: PRECEDENCE,
        exits: Object.values(Exit).map(describeExit),
        formats: FORMATS.map((format) => ({ name: format, meaning: FORMAT_MEANINGS[format] })),
        groups: Object.entries(tree).flatMap(([name, node]) =>
          'commands' in node ? { name, summary: node.summary } : [],
        ),
        data: items,
      }
      await writer.page({ items, envelope, finalHasMore: false })
      await writer.end(false)
    },
  })
}

type NamedLeaf = readonly [command: string, leaf: CommandLeaf]

function leavesOf(tree: CommandTree): NamedLeaf[] {
  return Object.entries(tree).flatMap(([word, node]): NamedLeaf[] =>
    'commands' in node
      ? Object.entries(node.commands).map(([second, leaf]) => [`${word} ${second}`, leaf])
      : [[word, node]],
  )
}

/** The entry of a command. */
export async function describeCommand(command: string, leaf: CommandLeaf) {
  const definition = await leaf.load()
  const { description, output, events, examples, options = [], account = 'none' } = definition
  const { schema, lineSchema = schema, formats = [], usualFormat = null } = output
  return {
    command,
    summary: leaf.summary,
    description: description.replace(/\s+/g, ' '),
    account,
    arguments: (definition.arguments ?? []).map(describeArgument),
    options: options.map((option) => describeOption(option, options)),
    exits: exitCodesOf(definition).map(describeExit),
    formats: [...FORMATS, ...formats],
    usual_format: usualFormat,
    fields: output.fields,
    column_fields: fieldsIn(output, 'tsv'),
    event_fields: output.events ?? null,
    events: Object.entries(events ?? {}).map(([event, meaning]) => ({ event, meaning })),
    examples: Object.entries(examples).map(([line, text]) => ({ line, description: text })),
    schema: schemaFile(schema),
    line_schema: schemaFile(lineSchema),
  }
}

function describeArgument({ syntax, description, asked }: ArgumentDefinition) {
  return {
    name: /[\w-]+/.exec(syntax)?.[0] ?? syntax,
    required: syntax.startsWith('<'),
    asked: asked === true,
    variadic: syntax.includes('...'),
    description,
  }
}

/** @param others the options beside it, each of which may say that the two conflict */
function describeOption(option: OptionDefinition, others: readonly OptionDefinition[]) {
  const name = longFlag(option.flags)
  const value = /[<[](.+)[>\]]/.exec(option.flags)?.[1] ?? null
  const against = others
    .filter(({ conflicts = [] }) => conflicts.includes(name))
    .map(({ flags }) => longFlag(flags))
  return {
    name,
    value,
    value_required: /<.+>/.test(option.flags),
    type: value === null ? 'boolean' : (TYPES[value] ?? 'string'),
    description: option.description,
    choices: option.choices ?? null,
    default: option.default ?? null,
    repeatable: option.repeatable ?? false,
    needs: option.needs ?? null,
    conflicts: [...new Set([...(option.conflicts ?? []), ...against])],
    variable: option.variable ?? null,
    setting: option.setting ?? null,
  }
}

function describeExit(code: ExitCode) {
  return { code, ...EXIT_CODES[code] }
}

function schemaFile(name: string | undefined): string | null {
  return name?.replace(/^[\w-]+/, '$&.json') ?? null
}
