import { ERRORS, type ErrorCode, Exit, type ExitCode } from '../errors.ts'
import { type OptionDefinition, toLongFlag } from '../settings/option.ts'
import { COMMON_FORMATS } from '../settings/settings.ts'
import {
  ALL_SETTINGS,
  SETTING_KEYS,
  SETTINGS,
  type SettingDefinition,
  type SettingKey,
  settingName,
} from '../settings/table.ts'
import type { Column } from '../terminal/columns.ts'
import {
  type ArgumentDefinition,
  type CommandDefinition,
  type CommandLeaf,
  type CommandTree,
  collectSelectableFields,
  defineCommand,
  walkCommands,
} from './definition.ts'
import { createGlobalOptions, loadCommandWithSettingOptions } from './options.ts'

const COLUMNS: readonly Column[] = [{ field: 'command', kind: 'id' }, { field: 'summary' }]

/** Types of option values by the placeholder in the option's flags, such as `<port>`. Other placeholders stand for strings. */
const VALUE_TYPES: Readonly<Record<string, 'integer' | 'number'>> = {
  n: 'integer',
  port: 'integer',
  seconds: 'number',
}

/**
 * Meaning of each exit code, and advice for scripts: `retry` after a failure that may be temporary; `wait` to run the same
 * command again later, when the record may be visible or the work in progress may have ended.
 */
const EXIT_CODES: Readonly<
  Record<ExitCode, readonly [meaning: string, advice: 'continue' | 'stop' | 'retry' | 'wait']>
> = {
  0: ['done', 'continue'],
  1: ['a bug, or an unexpected local failure; --verbose shows more', 'stop'],
  2: ['usage: a wrong option, argument or value, or an unknown profile', 'stop'],
  3: ['not configured: base URL, client id, or what reaches etcd missing or unusable', 'stop'],
  4: ['not signed in, the credential was refused, or its store needs a person', 'stop'],
  5: ['not found', 'stop'],
  6: ['the service refused the request, and will again', 'stop'],
  7: ['network, timeout, rate limit, an unexpected response, or a --publish command that failed', 'retry'],
  8: ['not yet: the record is not visible, or the time ran out while in progress', 'wait'],
  9: ['ended unsuccessfully: blocked, expired, superseded, canceled or failed', 'stop'],
  130: ['interrupted', 'stop'],
  143: ['terminated', 'stop'],
}

/** Environment variables with which a user configures mailclaim, for `commands --json`. */
const ENVIRONMENT: readonly { readonly name: string; readonly description: string }[] = [
  ...ALL_SETTINGS.flatMap(([key, { variable, description, flags }]) =>
    variable
      ? { name: variable, description: flags ? `${description}, as --${settingName(key)}` : description }
      : [],
  ),
  { name: 'MAILCLAIM_API_KEY', description: 'an API key; overrides a stored session and is never saved' },
  {
    name: 'MAILCLAIM_STORE_KEY',
    description: 'the key that encrypts the session in etcd (base64, 32 bytes)',
  },
  { name: 'MAILCLAIM_STORE_USER', description: 'the user of etcd' },
  { name: 'MAILCLAIM_STORE_PASSWORD', description: 'the password of that user' },
  { name: 'MAILCLAIM_STORE_PASSWORD_FILE', description: 'a file with it (0600)' },
  { name: 'MAILCLAIM_CONFIG_DIR', description: 'directory of the settings' },
  { name: 'MAILCLAIM_STATE_DIR', description: 'directory of sessions and remembered claims' },
  { name: 'BROWSER', description: 'the commands that open an address, separated by colons' },
  { name: 'NO_COLOR', description: 'no color' },
  { name: 'FORCE_COLOR', description: 'color even without a terminal; overrides NO_COLOR' },
  { name: 'HTTPS_PROXY', description: 'the proxy; never used for loopback addresses' },
  { name: 'NO_PROXY', description: 'the hosts and networks that bypass the proxy' },
  { name: 'NODE_EXTRA_CA_CERTS', description: 'a file with more certificate authorities' },
]

const FORMAT_MEANINGS: Readonly<Record<(typeof COMMON_FORMATS)[number], string>> = {
  table: 'for people',
  json: 'one document: the object, or a list as {"object":"list","has_more":…,"data":[…]}',
  jsonl: 'an object per line, as it arrives; of a command that waits, an event per line',
  tsv: 'a header and a line per item, tab-separated',
}

/** Creates the command `commands`, which describes every command of the tree, including itself. */
export function createCommandsCommand(tree: CommandTree): CommandDefinition {
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
    toleratesDamagedConfig: true,
    async run(_input, io) {
      const items = await Promise.all([...walkCommands(tree)].map(describeCommand))
      const { version, schemas } = io.installation
      const envelope = {
        version,
        schemas: { directory: schemas, error: 'error.json' },
        global_options: createGlobalOptions().map((option, _at, all) => describeOption(option, all)),
        settings: SETTING_KEYS.map(describeSetting),
        environment: ENVIRONMENT,
        precedence:
          'An option overrides the environment, which overrides the profile, which overrides the default.',
        exits: Object.values(Exit).map(describeExit),
        errors: Object.entries(ERRORS).map(([code, [, exit, meaning]]) => ({ code, exit, meaning })),
        formats: COMMON_FORMATS.map((format) => ({ name: format, meaning: FORMAT_MEANINGS[format] })),
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

/**
 * Returns the codes of errors, and of warnings in events, that a command can report: those of its `errors`, of the group `every`
 * and, if the command requires an account, of the groups `session` and `service`.
 */
export function collectCommandErrorCodes({
  account,
  errors = [],
}: Pick<CommandDefinition, 'account' | 'errors'>): ErrorCode[] {
  const named = new Set<string>(['every', ...(account ? ['session', 'service'] : []), ...errors])
  return (Object.keys(ERRORS) as ErrorCode[]).filter((code) => named.has(code) || named.has(ERRORS[code][0]))
}

/** Returns a command's entry in the output of `commands --json`. */
async function describeCommand({ path, leaf }: { path: readonly string[]; leaf: CommandLeaf }) {
  const definition = await loadCommandWithSettingOptions(path, leaf)
  const { description, output, events, examples, options = [], account = 'none' } = definition
  const errors = collectCommandErrorCodes(definition)
  const exits = [Exit.done, ...errors.map((code) => ERRORS[code][1] ?? Exit.done)]
  const { schema, lineSchema = schema, formats = [], usualFormat = null } = output
  return {
    command: path.join(' '),
    summary: leaf.summary,
    description,
    account,
    arguments: (definition.arguments ?? []).map(describeArgument),
    options: options.map((option) => describeOption(option, options)),
    exits: [...new Set(exits)].toSorted((one, other) => one - other).map(describeExit),
    errors,
    formats: [...COMMON_FORMATS, ...formats],
    usual_format: usualFormat,
    fields: output.fields ?? collectSelectableFields(output),
    column_fields: collectSelectableFields(output),
    event_fields: output.eventFields ?? null,
    events: Object.entries(events ?? {}).map(([event, meaning]) => ({ event, meaning })),
    examples: Object.entries(examples).map(([line, text]) => ({ line, description: text })),
    schema: toSchemaFile(schema),
    line_schema: toSchemaFile(lineSchema),
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

/**
 * Returns an option's entry in `commands --json`.
 *
 * @param all all options of the command, because a conflict may be declared by the other option alone
 */
function describeOption(option: OptionDefinition, all: readonly OptionDefinition[]) {
  const name = toLongFlag(option.flags)
  const value = /[<[](.+)[>\]]/.exec(option.flags)?.[1] ?? null
  const against = all
    .filter(({ conflicts = [] }) => conflicts.includes(name))
    .map(({ flags }) => toLongFlag(flags))
  return {
    name,
    value,
    value_required: /<.+>/.test(option.flags),
    type: value === null ? 'boolean' : (VALUE_TYPES[value] ?? 'string'),
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

function describeSetting(key: SettingKey) {
  const setting: SettingDefinition<unknown> = SETTINGS[key]
  const { description, variable = null, choices = null, defaultText, default: value = null } = setting
  return { name: settingName(key), description, variable, choices, default: defaultText ?? value }
}

function describeExit(code: ExitCode) {
  const [meaning, advice] = EXIT_CODES[code]
  return { code, meaning, advice }
}

/**
 * Returns the file name of a schema, such as `list.json` for `list`; for `commands#/$defs/command`, a definition in a schema,
 * returns `commands.json#/$defs/command`. Null for undefined.
 */
function toSchemaFile(name: string | undefined): string | null {
  return name?.replace(/^[\w-]+/, '$&.json') ?? null
}
