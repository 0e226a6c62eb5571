import { Exit, type ExitCode } from '../errors.ts'
import { FORMATS } from '../settings/settings.ts'
import type { Column } from '../terminal/columns.ts'
import {
  type ArgumentDefinition,
  type CommandDefinition,
  type CommandLeaf,
  type CommandTree,
  defineCommand,
  everyCommand,
  exitCodesOf,
  knownFields,
  longFlag,
  type OptionDefinition,
} from './definition.ts'
import { ENVIRONMENT, EXIT_CODES, FORMAT_MEANINGS, GLOBAL_OPTIONS, PRECEDENCE } from './program.ts'

const COLUMNS: readonly Column[] = [{ field: 'command', kind: 'id' }, { field: 'summary' }]

/** The type of an option's value, by the placeholder in its flags; text if it isn't here. */
const TYPES: Readonly<Record<string, 'integer' | 'number'>> = {
  n: 'integer',
  port: 'integer',
  seconds: 'number',
}

/** The command that describes the commands of a tree, itself among them. */
export function describing(tree: CommandTree): CommandDefinition<never> {
  return defineCommand({
    description: 'Describes every command for programs: arguments, options, exit codes, formats and fields.',
    examples: {
      'mailclaim commands': 'a list of all commands',
      'mailclaim commands --json': 'everything, for a program that drives mailclaim',
      'mailclaim commands --format jsonl': 'a command per line',
    },
    output: {
      schema: 'commands',
      lineSchema: 'commands#/$defs/command',
      fields: ['command', 'summary'],
      columns: COLUMNS,
    },
    exits: [],
    toleratesDamagedConfig: true,
    async run(_input, io) {
      const items = await Promise.all([...everyCommand(tree)].map(describeCommand))
      const { version, schemas } = io.program
      const envelope = {
        version,
        schemas: { directory: schemas, error: 'error.json' },
        global_options: GLOBAL_OPTIONS.map((option) => describeOption(option, GLOBAL_OPTIONS)),
        environment: ENVIRONMENT,
        precedence: PRECEDENCE,
        exits: Object.values(Exit).map(describeExit),
        formats: FORMATS.map((format) => ({ name: format, meaning: FORMAT_MEANINGS[format] })),
        groups: Object.entries(tree).flatMap(([name, node]) =>
          'commands' in node ? { name, summary: node.summary } : [],
        ),
      }
      const writer = io.list(COLUMNS)
      await writer.page({ items, envelope })
      await writer.end(false)
    },
  })
}

/** The entry of a command. */
async function describeCommand({ words, leaf }: { words: readonly string[]; leaf: CommandLeaf }) {
  const definition = await leaf.load()
  const { description, output, events, examples, options = [], account = 'none' } = definition
  const { schema, lineSchema = schema, formats = [], usualFormat = null } = output
  return {
    command: words.join(' '),
    summary: leaf.summary,
    description,
    account,
    arguments: (definition.arguments ?? []).map(describeArgument),
    options: options.map((option) => describeOption(option, options)),
    exits: exitCodesOf(definition).map(describeExit),
    formats: [...FORMATS, ...formats],
    usual_format: usualFormat,
    fields: output.fields,
    column_fields: knownFields(output),
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

/** The name of a schema's file, or of a part of it: `commands.json#/$defs/command`. */
function schemaFile(name: string | undefined): string | null {
  return name?.replace(/^[\w-]+/, '$&.json') ?? null
}
