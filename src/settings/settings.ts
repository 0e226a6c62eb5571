import type { Context } from '../context.ts'
import { CliError, usageError } from '../errors.ts'
import { parseResolver } from './addresses.ts'
import { type Config, readConfig } from './config.ts'
import type { OptionDefinition, OptionName, OptionValues } from './option.ts'
import { parseFields } from './parse-value.ts'
import { requireAbsoluteDirectories } from './paths.ts'
import { parseProfileName } from './profiles.ts'
import {
  NO_INPUT,
  PROFILE,
  type ProfileConfig,
  SETTING_KEYS,
  SETTINGS,
  type Setting,
  type SettingKey,
  type SettingResult,
  settingName,
  settingText,
} from './table.ts'

export const FORMATS = ['table', 'json', 'jsonl', 'tsv'] as const

/** The options of every command, besides those that set settings. */
export const GLOBAL_OPTIONS = {
  format: { flags: '--format <format>', description: 'output format' },
  json: { flags: '--json', description: 'the same as --format json' },
  fields: {
    flags: '--fields <list>',
    description: 'only these fields of a table or tsv, as in id,client.name',
    parse: parseFields,
  },
  quiet: { flags: '--quiet', description: 'no progress, hints or warnings, except the hint of an error' },
  verbose: { flags: '--verbose', description: 'show HTTP exchanges on stderr, without secrets' },
  noInput: { flags: '--no-input', description: 'never ask a question', variable: NO_INPUT.variable },
  noColor: { flags: '--no-color', description: 'no color' },
} as const satisfies Readonly<Record<string, OptionDefinition>>

type GlobalOption = (typeof GLOBAL_OPTIONS)[keyof typeof GLOBAL_OPTIONS]

/** The options of every command and those of settings, as they were given; what was not given is absent. */
export type GlobalOptions = OptionValues<readonly GlobalOption[]> & {
  readonly [Setting in typeof PROFILE | (typeof SETTINGS)[SettingKey] as OptionName<Setting>]?:
    | string
    | readonly string[]
}

/** A value with where it came from. */
export interface SourcedValue {
  readonly value: string
  readonly source: 'flag' | 'environment' | 'profile' | 'default'
}

/** Every setting as it is typed, with where it came from; undefined if nothing sets it and it has no default. */
export type ChosenSettings = Readonly<Record<SettingKey, SourcedValue | undefined>>

/** What a command works with. An option overrides the environment, which overrides the profile, which overrides a default. */
export interface Settings {
  readonly profile: SourcedValue
  readonly chosen: ChosenSettings
  readonly profileConfig: ProfileConfig
  readonly config: Config
  /** Why the configuration can't be read; for a command that tolerates that, the settings are as if there were none. */
  readonly configProblem: CliError | undefined
  /** What `--format` or `--json` says, or else `table` on a terminal and `tsv` elsewhere, unless the command has its own. */
  readonly format: string
  /** Dotted paths; undefined: the command's own choice of columns. */
  readonly fields: readonly string[] | undefined
  /** Whether notes and progress are left out: with `--quiet`, and where a program reads (`json`, `jsonl`). */
  readonly quiet: boolean
  /** Whether warnings and hints are left out: with `--quiet` only. */
  readonly silent: boolean
  readonly verbose: boolean
  /** Whether a person rules out questions, with `--no-input` or `MAILCLAIM_NO_INPUT`. */
  readonly noInput: boolean
  /**
   * Whether a question may be asked: stdin and stderr are terminals, nobody rules it out, and no program reads the answer
   * (`--json`, `--format jsonl`, `CI`). Only this decides; what is missing otherwise is exit 2.
   */
  readonly interactive: boolean
  readonly colorOption: boolean | undefined
  readonly httpTimeoutMs: number
  /** The words that were typed after the program's name, to repeat them in a hint. */
  readonly argv: readonly string[]
}

/**
 * Resolves the settings of one command.
 *
 * @param usualFormat of the command, in place of a table on a terminal and TSV elsewhere
 * @throws CliError exit 2 for a bad profile name, `no_home`. Other values are parsed when they are used.
 */
export async function resolveSettings(
  options: GlobalOptions,
  argv: readonly string[],
  context: Pick<Context, 'environment' | 'directories' | 'stdin' | 'stdout' | 'stderr'>,
  usualFormat?: string,
): Promise<Settings> {
  const { environment, directories, stdin, stdout, stderr } = context
  requireAbsoluteDirectories(directories)
  let config: Config = { version: 1, profiles: {} }
  let problem: CliError | undefined
  try {
    config = await readConfig(context)
  } catch (error) {
    if (!(error instanceof CliError)) throw error
    problem = error
  }
  const given = { options, environment }
  const profile = resolveValue('profile', PROFILE, config.current_profile, given) as SourcedValue
  parseProfileName(profile.value)
  const profileConfig = config.profiles[profile.value] ?? {}
  const chosen = Object.fromEntries(
    SETTING_KEYS.map((key) => [key, resolveValue(key, SETTINGS[key], profileConfig[key], given)]),
  ) as ChosenSettings
  if (options.json && options.format !== undefined && options.format !== 'json')
    throw usageError(`--json and --format ${options.format} can't be used together`)
  const format = options.json ? 'json' : (options.format ?? usualFormat ?? (stdout.isTTY ? 'table' : 'tsv'))
  const noInput = options.input === false || NO_INPUT.parse(environment.settings['no_input'] ?? '')
  return {
    profile,
    config,
    configProblem: problem,
    profileConfig,
    chosen,
    format,
    fields: options.fields,
    quiet: options.quiet === true || isProgramFormat({ format }),
    silent: options.quiet === true,
    verbose: options.verbose === true,
    noInput,
    // Few commands need it, and some systems are slow to answer.
    get interactive() {
      return !noInput && !environment.ci && !isProgramFormat({ format }) && stdin.isTTY && stderr.isTTY
    },
    colorOption: options.color,
    get httpTimeoutMs() {
      return settingValue('http_timeout', { chosen }) * 1000
    },
    argv,
  }
}

/** The value that holds for one setting, as it is typed: of the option, the variable, the profile, or the default. */
function resolveValue(
  key: string,
  setting: Setting<unknown>,
  stored: unknown,
  { options, environment }: Pick<Context, 'environment'> & { readonly options: object },
): SourcedValue | undefined {
  const option = key.replace(/_(.)/g, (_, letter: string) => letter.toUpperCase())
  const candidates: readonly (readonly [SourcedValue['source'], unknown])[] = [
    ['flag', setting.flags && (options as Record<string, unknown>)[option]],
    ['environment', environment.settings[key]],
    ['profile', stored],
    ['default', setting.default],
  ]
  const found = candidates.find(([, value]) => value !== undefined)
  return found && { value: settingText(found[1]), source: found[0] }
}

/**
 * The value of a setting. Only this parses it, so that a bad value stops only what uses it.
 *
 * @throws CliError exit 2 or 3 for a bad value; it names the option or variable that has it.
 */
export function settingValue<Key extends SettingKey>(
  key: Key,
  { chosen }: Pick<Settings, 'chosen'>,
): SettingResult<Key> {
  const found = chosen[key]
  if (found === undefined) return undefined as SettingResult<Key>
  return SETTINGS[key].parse(found.value, settingSource(key, { chosen })) as SettingResult<Key>
}

/** Whom a DNS check queries. @throws CliError exit 2 for a bad value. */
export function dnsSettings(settings: Pick<Settings, 'chosen'>) {
  const name = settingSource('resolver', settings)
  const given = settingValue('resolver', settings)?.map((text) => parseResolver(text, name))
  return {
    resolvers: given ?? ('system' as const),
    authoritativePort: settingValue('authoritative_port', settings),
  }
}

/** Names the option, the variable, or the setting of the profile that a value is from. */
function settingSource(key: SettingKey, { chosen }: Pick<Settings, 'chosen'>): string {
  const name = settingName(key)
  const { variable }: Setting<unknown> = SETTINGS[key]
  const source = chosen[key]?.source
  return source === 'flag' ? `--${name}` : source === 'environment' ? (variable ?? name) : name
}

/** Whether the session of the profile is in etcd, so that it isn't looked for on this machine. */
export function usesSharedStore({ chosen }: Pick<Settings, 'chosen'>): boolean {
  return chosen.store?.value === 'etcd'
}

/** Whether the output is JSON, so that a program reads it. */
export function isProgramFormat({ format }: Pick<Settings, 'format'>): boolean {
  return format === 'json' || format === 'jsonl'
}

/** @throws CliError `base_url_missing` or `base_url_unusable`, exit 3. */
export function requireBaseUrl(settings: Pick<Settings, 'chosen'>): URL {
  return new URL(requireText('base_url', 'the address of the service (MAILCLAIM_BASE_URL)', settings))
}

/** @throws CliError `client_id_missing`, exit 3, or `usage`. */
export function requireClientId(settings: Pick<Settings, 'chosen'>): string {
  return requireText('client_id', 'the OAuth client id (MAILCLAIM_CLIENT_ID)', settings)
}

function requireText(key: 'base_url' | 'client_id', what: string, settings: Pick<Settings, 'chosen'>) {
  const value = settingValue(key, settings)
  if (value !== undefined) return value
  throw new CliError(`${key}_missing`, `${what} is not configured`, { hint: 'to begin: mailclaim login' })
}
