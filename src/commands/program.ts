import { Exit, type ExitCode } from '../errors.ts'
import { parseFields } from '../settings/parse-value.ts'
import { FORMATS } from '../settings/settings.ts'
import { NO_INPUT, PROFILE_AND_SETTINGS, SETTINGS, type Setting, settingName } from '../settings/table.ts'
import type { ArgumentDefinition, CommandDefinition, OptionDefinition } from './definition.ts'

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
  [Exit.unavailable]: { meaning: 'network, timeout, rate limit, or an unexpected response', advice: 'retry' },
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

/** Above the events of a command. */
export const EVENTS_TITLE = 'Events of --format jsonl:'

export const PROGRAM = {
  description: "Claim a domain that another team verified, and see why a claim isn't verifying.",
  version: 'print the version',
  help: 'show this help',
  welcome:
    'Nothing is configured yet. To try everything on this machine, without an account: mailclaim sandbox. To sign in to a service: mailclaim login.',
} as const

/** What `mailclaim help` explains besides commands. Their texts are in cli/topics.ts. */
export const TOPICS = {
  options: 'the options of every command',
  environment: 'the variables that the program reads',
  'exit-codes': 'what the exit codes mean',
  formats: 'the output formats, and how to choose fields',
  ci: 'how to sign in and what to check in CI',
} as const

export type Topic = keyof typeof TOPICS

/** The options that set settings: those of every command, or those of one command alone. */
export function settingOptions(command?: Setting<unknown>['command']): OptionDefinition[] {
  return PROFILE_AND_SETTINGS.flatMap(([key, setting]) => {
    const { flags, description, repeatable, choices, unset, default: value, late, variable } = setting
    if (flags === undefined || setting.command !== command) return []
    const check = (text: string) => {
      setting.parse(text, `--${settingName(key)}`)
      return text
    }
    return {
      flags,
      description,
      ...(repeatable && { repeatable }),
      ...(choices && { choices }),
      ...((unset ?? value) && { default: unset ?? value }),
      ...(!late && { parse: check }),
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
    {
      flags: '--format <format>',
      description: 'output format',
      choices: [...FORMATS, ...(definition?.output.formats ?? [])],
      default: definition?.output.usualFormat ?? 'table on a terminal, else tsv',
    },
    { flags: '--json', description: 'the same as --format json' },
    {
      flags: '--fields [list]',
      description: 'only these fields, as in id,client.name; without a list: show which there are',
      parse: parseFields,
      ...(definition && { completion: definition.output.fields }),
    },
    {
      flags: '--csv-safe',
      description: "put ' before cells that a spreadsheet would run",
      needs: '--format csv',
    },
    { flags: '--quiet', description: 'no progress, hints or warnings, except the hint of an error' },
    { flags: '--verbose', description: 'show HTTP exchanges on stderr, without secrets' },
    { flags: '--no-input', description: 'never ask a question', variable: NO_INPUT.variable },
    { flags: '--no-color', description: 'no color' },
    { flags: '--no-pager', description: 'print long lists on a terminal without a pager' },
  ]
}

/** The options that the help of a command shows: its own, and `--format` if it has formats besides the usual ones. */
export function shownOptions(definition: CommandDefinition): OptionDefinition[] {
  const { options = [], output } = definition
  const formats = globalOptions(definition).filter(({ flags }) => flags.startsWith('--format '))
  return [...options, ...(output.formats === undefined ? [] : formats)]
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
