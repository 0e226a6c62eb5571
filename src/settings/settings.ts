import type { Context } from '../context.ts'
import { CliError, usageError } from '../errors.ts'
import { parseResolver } from './addresses.ts'
import { type ConfigFile, readConfig } from './config.ts'
import type { CamelCaseFlag, OptionDefinition, OptionValues } from './option.ts'
import { parseFieldPaths } from './parse-value.ts'
import { requireAbsoluteDirectories } from './paths.ts'
import { addProfileFlag, validateProfileName } from './profiles.ts'
import {
  formatSetting,
  NO_INPUT_VARIABLE,
  PROFILE_OPTION,
  type ProfileConfig,
  SETTING_KEYS,
  SETTINGS,
  type SettingDefinition,
  type SettingKey,
  type SettingValue,
  settingName,
} from './table.ts'

/** Values of `--format` that every command accepts. */
export const COMMON_FORMATS = ['table', 'json', 'jsonl', 'tsv'] as const

/** Options that every command takes, without those of settings. */
export const GLOBAL_NON_SETTING_OPTIONS = {
  format: { flags: '--format <format>', description: 'output format' },
  json: { flags: '--json', description: 'the same as --format json' },
  fields: {
    flags: '--fields <list>',
    description: 'only these fields of a table or tsv, as in id,client.name',
    parse: parseFieldPaths,
  },
  quiet: { flags: '--quiet', description: 'no progress, hints or warnings, except the hint of an error' },
  verbose: { flags: '--verbose', description: 'show HTTP exchanges on stderr, without secrets' },
  noInput: { flags: '--no-input', description: 'never ask a question', variable: NO_INPUT_VARIABLE.variable },
  noColor: { flags: '--no-color', description: 'no color' },
} as const satisfies Readonly<Record<string, OptionDefinition>>

type GlobalOption = (typeof GLOBAL_NON_SETTING_OPTIONS)[keyof typeof GLOBAL_NON_SETTING_OPTIONS]

/** Values of the global options and the settings' options on the command line; an option that wasn't given is absent. */
export type GivenOptions = OptionValues<readonly GlobalOption[]> & {
  readonly [Setting in typeof PROFILE_OPTION | (typeof SETTINGS)[SettingKey] as CamelCaseFlag<Setting>]?:
    | string
    | readonly string[]
}

export interface UnparsedSetting {
  readonly value: string
  readonly source: 'flag' | 'environment' | 'profile' | 'default'
}

/** Unparsed values of all settings; undefined for a setting that has neither a value nor a default. */
export type UnparsedSettings = Readonly<Record<SettingKey, UnparsedSetting | undefined>>

/** Resolved settings of a command. For a setting, an option overrides the environment, which overrides the profile. */
export interface Settings {
  readonly profile: UnparsedSetting
  readonly chosen: UnparsedSettings
  readonly profileConfig: ProfileConfig
  readonly config: ConfigFile
  /** Error of reading the configuration file, which commands may tolerate: `config` is then empty. Undefined without an error. */
  readonly configProblem: CliError | undefined
  /** Output format: from `--format` or `--json`, else the command's own default, else `table` on a terminal and `tsv` elsewhere. */
  readonly format: string
  /** Dotted paths from `--fields`; undefined for the command's default columns. */
  readonly fields: readonly string[] | undefined
  /** Whether to suppress notices and progress, as `--quiet` and the formats `json` and `jsonl` do. */
  readonly quiet: boolean
  /** Whether `--quiet` suppresses warnings and hints besides notices and progress; the hint of an error is still printed. */
  readonly silent: boolean
  readonly verbose: boolean
  /** Whether `--no-input` or `MAILCLAIM_NO_INPUT` forbids prompts. */
  readonly noInput: boolean
  /**
   * Whether prompts are allowed: on a terminal (stdin and stderr), outside of CI, and neither `noInput` nor a JSON format is set.
   */
  readonly interactive: boolean
  readonly colorOption: boolean | undefined
  readonly httpTimeoutMs: number
  /** Arguments after the program's name, for command lines in hints. */
  readonly argv: readonly string[]
}

/**
 * Resolves the settings of one command. Doesn't check their values, except the profile's name. A configuration file that can't be
 * read becomes `configProblem` instead of an exception.
 *
 * @param usualFormat the command's own default format, instead of `table` on a terminal and `tsv` elsewhere
 * @throws CliError `usage`, exit 2, for an invalid profile name or contradicting formats; `no_home`, exit 1
 */
export async function resolveSettings(
  options: GivenOptions,
  argv: readonly string[],
  context: Pick<Context, 'environment' | 'directories' | 'stdin' | 'stdout' | 'stderr'>,
  usualFormat?: string,
): Promise<Settings> {
  const { environment, directories, stdin, stdout, stderr } = context
  requireAbsoluteDirectories(directories)
  let config: ConfigFile = { version: 1, profiles: {} }
  let problem: CliError | undefined
  try {
    config = await readConfig(context)
  } catch (error) {
    if (!(error instanceof CliError)) throw error
    problem = error
  }
  const given = { options, environment }
  const profile = resolveValue('profile', PROFILE_OPTION, config.current_profile, given) as UnparsedSetting
  validateProfileName(profile.value)
  const profileConfig = config.profiles[profile.value] ?? {}
  const chosen = Object.fromEntries(
    SETTING_KEYS.map((key) => [key, resolveValue(key, SETTINGS[key], profileConfig[key], given)]),
  ) as UnparsedSettings
  if (options.json && options.format !== undefined && options.format !== 'json')
    throw usageError(`--json and --format ${options.format} can't be used together`)
  const format = options.json ? 'json' : (options.format ?? usualFormat ?? (stdout.isTTY ? 'table' : 'tsv'))
  const noInput = options.input === false || NO_INPUT_VARIABLE.parse(environment.settings['no_input'] ?? '')
  return {
    profile,
    config,
    configProblem: problem,
    profileConfig,
    chosen,
    format,
    fields: options.fields,
    quiet: options.quiet === true || isJsonOrJsonl({ format }),
    silent: options.quiet === true,
    verbose: options.verbose === true,
    noInput,
    // A getter, because few commands prompt, and checking for a terminal takes system calls.
    get interactive() {
      return !noInput && !environment.ci && !isJsonOrJsonl({ format }) && stdin.isTTY && stderr.isTTY
    },
    colorOption: options.color,
    get httpTimeoutMs() {
      return getSetting('http_timeout', { chosen }) * 1000
    },
    argv,
  }
}

/** Returns a setting's unparsed value and its source: option, else variable, else profile, else default; undefined if none. */
function resolveValue(
  key: string,
  setting: SettingDefinition<unknown>,
  stored: unknown,
  { options, environment }: Pick<Context, 'environment'> & { readonly options: object },
): UnparsedSetting | undefined {
  const option = key.replace(/_(.)/g, (_, letter: string) => letter.toUpperCase())
  const candidates: readonly (readonly [UnparsedSetting['source'], unknown])[] = [
    ['flag', setting.flags && (options as Record<string, unknown>)[option]],
    ['environment', environment.settings[key]],
    ['profile', stored],
    ['default', setting.default],
  ]
  const found = candidates.find(([, value]) => value !== undefined)
  return found && { value: formatSetting(found[1]), source: found[0] }
}

/**
 * Parses a setting's value; undefined if there is none. Values are parsed on use, so that an invalid one fails only the
 * commands that use it.
 *
 * @throws CliError exit 3 for an invalid base URL, exit 2 for another invalid value, with the name of the option, variable or setting
 */
export function getSetting<Key extends SettingKey>(
  key: Key,
  { chosen }: Pick<Settings, 'chosen'>,
): SettingValue<Key> {
  const found = chosen[key]
  if (found === undefined) return undefined as SettingValue<Key>
  return SETTINGS[key].parse(found.value, settingSource(key, { chosen })) as SettingValue<Key>
}

/** Returns the resolvers for DNS checks (`'system'` if none is set) and the authoritative servers' port. @throws CliError exit 2 */
export function getDnsSettings(settings: Pick<Settings, 'chosen'>) {
  const name = settingSource('resolver', settings)
  const given = getSetting('resolver', settings)?.map((text) => parseResolver(text, name))
  return {
    resolvers: given ?? ('system' as const),
    authoritativePort: getSetting('authoritative_port', settings),
  }
}

/** Returns the name, for error messages, of the option, variable or setting that a value comes from. */
function settingSource(key: SettingKey, { chosen }: Pick<Settings, 'chosen'>): string {
  const name = settingName(key)
  const { variable }: SettingDefinition<unknown> = SETTINGS[key]
  const source = chosen[key]?.source
  return source === 'flag' ? `--${name}` : source === 'environment' ? (variable ?? name) : name
}

/** Whether the setting `store` is `etcd`: then sessions are kept in etcd, where other machines can share them. */
export function usesEtcdStore({ chosen }: Pick<Settings, 'chosen'>): boolean {
  return chosen.store?.value === 'etcd'
}

export function isJsonOrJsonl({ format }: Pick<Settings, 'format'>): boolean {
  return format === 'json' || format === 'jsonl'
}

/** Returns the base URL of the service. @throws CliError `base_url_missing` or `base_url_unusable`, exit 3 */
export function getBaseUrl(settings: Settings): URL {
  return new URL(requireText('base_url', 'the address of the service', settings))
}

/** Returns the OAuth client id. @throws CliError `client_id_missing`, exit 3; `usage`, exit 2, for an invalid one */
export function getClientId(settings: Settings): string {
  return requireText('client_id', 'the OAuth client id', settings)
}

function requireText(key: 'base_url' | 'client_id', what: string, settings: Settings) {
  const value = getSetting(key, settings)
  if (value !== undefined) return value
  const login = `mailclaim login --${settingName(key)} ${key === 'base_url' ? 'URL' : 'ID'}`
  const hint = `set ${SETTINGS[key].variable}, or sign in: ${addProfileFlag(login, settings.profile.value)}`
  throw new CliError(`${key}_missing`, `${what} is not configured`, { hint })
}
