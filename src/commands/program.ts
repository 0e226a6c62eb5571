import { Exit, type ExitCode } from '../errors.ts'
import { parseFields } from '../settings/parse-value.ts'
import { FORMATS } from '../settings/settings.ts'
import { NO_INPUT, PROFILE_AND_SETTINGS, SETTINGS, type Setting, settingName } from '../settings/table.ts'
import {
  type ArgumentDefinition,
  type CommandDefinition,
  knownFields,
  type OptionDefinition,
  type OutputDefinition,
} from './definition.ts'

/** An exit code to a script: what it means, and what follows: `retry` the same command later, or `wait` and then repeat it. */
interface ExitMeaning {
  readonly meaning: string
  readonly advice: 'continue' | 'stop' | 'retry' | 'wait'
}

export const EXIT_CODES: Readonly<Record<ExitCode, ExitMeaning>> = {
  [Exit.done]: { meaning: 'done', advice: 'continue' },
  [Exit.bug]: { meaning: 'a bug, or an unexpected local failure', advice: 'stop' },
  [Exit.usage]: { meaning: 'usage: bad flag, argument or value', advice: 'stop' },
  [Exit.notConfigured]: {
    meaning: 'not configured: base URL, client id, or what reaches etcd missing or unusable',
    advice: 'stop',
  },
  [Exit.notSignedIn]: {
    meaning: 'not signed in, or the credential was refused or is unavailable',
    advice: 'stop',
  },
  [Exit.notFound]: { meaning: 'not found', advice: 'stop' },
  [Exit.refused]: { meaning: 'the service refused the request', advice: 'stop' },
  [Exit.unavailable]: {
    meaning: 'network, timeout, rate limit, an unexpected response, or a --publish command that failed',
    advice: 'retry',
  },
  [Exit.notYet]: {
    meaning: 'not yet: record not visible, or still in progress at the timeout',
    advice: 'wait',
  },
  [Exit.negativeEnd]: {
    meaning: 'ended unsuccessfully: blocked, expired, superseded, canceled or failed',
    advice: 'stop',
  },
  [Exit.interrupted]: { meaning: 'interrupted', advice: 'stop' },
  [Exit.terminated]: { meaning: 'terminated', advice: 'stop' },
}

export const PROGRAM = {
  description: "Claim a domain that another team verified, and see why a claim isn't verifying.",
  version: 'print the version',
  help: 'show this help',
} as const

/** The variables that the program reads; an option overrides them. */
export const ENVIRONMENT: readonly { readonly name: string; readonly description: string }[] = [
  ...PROFILE_AND_SETTINGS.flatMap(([key, { variable, description, flags }]) =>
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
  { name: 'MAILCLAIM_CONFIG_DIR', description: 'directory of the settings' },
  { name: 'MAILCLAIM_STATE_DIR', description: 'directory of sessions and remembered claims' },
  { name: 'NO_COLOR', description: 'no color' },
  { name: 'FORCE_COLOR', description: 'color even without a terminal; overrides NO_COLOR' },
  { name: 'HTTPS_PROXY', description: 'the proxy; never used for loopback addresses' },
  { name: 'NO_PROXY', description: 'the hosts that bypass the proxy' },
  { name: 'NODE_EXTRA_CA_CERTS', description: 'a file with more certificate authorities' },
]

/** What counts if a setting is made in several places. */
export const PRECEDENCE =
  'An option overrides the environment, which overrides the profile, which overrides the default.'

/** What each format is. */
export const FORMAT_MEANINGS: Readonly<Record<(typeof FORMATS)[number], string>> = {
  table: 'for people',
  json: 'one document: the object, or a list as {"object":"list","has_more":…,"data":[…]}',
  jsonl: 'an object per line, as it arrives; of a command that waits, an event per line',
  tsv: 'a header and a line per item, tab-separated',
}

/** The options that set settings: those of every command, or those of one command alone. */
export function settingOptions(command?: Setting<unknown>['command']): OptionDefinition[] {
  return PROFILE_AND_SETTINGS.flatMap(([key, setting]) => {
    const { flags, description, repeatable, choices, unset, default: value, variable } = setting
    if (flags === undefined || setting.command !== command) return []
    return {
      flags,
      description,
      ...(repeatable && { repeatable }),
      ...(choices && { choices }),
      parse: (text: string, name: string) => {
        setting.parse(text, name)
        return text
      },
      ...((unset ?? value) && { default: unset ?? value }),
      ...(key === 'profile' && { completion: 'profiles' as const }),
      ...(variable && { variable }),
      ...(Object.hasOwn(SETTINGS, key) && { setting: settingName(key) }),
    }
  })
}

/** The options that a command takes, before or after its name, besides its own; some know more formats than others. */
export function globalOptions(definition?: CommandDefinition): readonly OptionDefinition[] {
  return [
    ...settingOptions(),
    formatOption(definition?.output),
    { flags: '--json', description: 'the same as --format json' },
    {
      flags: '--fields <list>',
      description: 'only these fields of a table or tsv, as in id,client.name',
      parse: parseFields,
      ...(definition && { completion: knownFields(definition.output) }),
    },
    { flags: '--quiet', description: 'no progress, hints or warnings, except the hint of an error' },
    { flags: '--verbose', description: 'show HTTP exchanges on stderr, without secrets' },
    { flags: '--no-input', description: 'never ask a question', variable: NO_INPUT.variable },
    { flags: '--no-color', description: 'no color' },
  ]
}

function formatOption({ formats = [], usualFormat }: Partial<OutputDefinition> = {}): OptionDefinition {
  return {
    flags: '--format <format>',
    description: 'output format',
    choices: [...FORMATS, ...formats],
    default: usualFormat ?? 'table on a terminal, else tsv',
  }
}

/** The options that the help of a command shows: its own, and `--format` if it has formats besides the usual ones. */
export function shownOptions({ options = [], output }: CommandDefinition): OptionDefinition[] {
  return [...options, ...(output.formats === undefined ? [] : [formatOption(output)])]
}

/** The global options without a command. */
export const GLOBAL_OPTIONS = globalOptions()

/** The description of an argument, with what happens without it. */
export function argumentText({ description, asked }: ArgumentDefinition): string {
  return asked ? `${description}; asked for on a terminal` : description
}

/** The description of an option or a setting, with its choices and its default. */
export function optionText(option: Omit<OptionDefinition, 'flags'>): string {
  const { description, choices = [], repeatable, needs, default: value } = option
  const notes = [
    ...(choices.every((choice) => description.includes(choice)) ? [] : [choices.join(', ')]),
    ...(needs === undefined ? [] : [`needs ${needs}`]),
    ...(repeatable ? ['repeatable'] : []),
    ...(value === undefined ? [] : [`default: ${value}`]),
  ]
  return notes.length === 0 ? description : `${description} (${notes.join('; ')})`
}
