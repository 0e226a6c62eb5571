import type { Context } from '../context.ts'
import { CliError, Exit, usageError } from '../errors.ts'
import { parseBaseUrl, parseServerAddress, type ServerAddress } from './addresses.ts'
import { type Config, readConfig, readUsableConfig } from './config.ts'
import { requireAbsolute } from './paths.ts'
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

export const FORMATS = ['table', 'json', 'jsonl', 'csv', 'tsv'] as const

type CamelCase<Name extends string> = Name extends `${infer First}_${infer Rest}`
  ? `${First}${Capitalize<CamelCase<Rest>>}`
  : Name

/** The options that set settings, as commander names them; one that can be repeated is an array. */
type SettingOptions = { [Key in SettingKey as CamelCase<Key>]?: string | readonly string[] }

/** The options that every command takes, and those of a login, as they were given; what was not given is absent. */
export interface GlobalOptions extends Omit<SettingOptions, 'pager'> {
  profile?: string
  format?: string
  json?: true
  /** True: the option alone, to list the fields. */
  fields?: readonly string[] | true
  csvSafe?: true
  quiet?: true
  verbose?: true
  input?: boolean
  color?: boolean
  /** False: `--no-pager`. The setting has no option. */
  pager?: boolean
}

/** A value with where it came from. */
export interface Sourced<T> {
  readonly value: T
  readonly source: 'flag' | 'environment' | 'profile' | 'default'
}

/** Every setting as it is typed, with where it came from; undefined if nothing sets it and it has no default. */
export type ChosenSettings = Readonly<Record<SettingKey, Sourced<string> | undefined>>

/** What a command works with. An option overrides the environment, which overrides the profile, which overrides a default. */
export interface Settings {
  readonly profile: Sourced<string>
  readonly chosen: ChosenSettings
  readonly baseUrl: Sourced<string> | undefined
  readonly clientId: Sourced<string> | undefined
  readonly profileConfig: ProfileConfig
  readonly config: Config
  /** Why the configuration, or part of it, can't be read, for a command that tolerates that. */
  readonly configProblem: CliError | undefined
  /** What `--format` or `--json` says, or else `table` on a terminal and `tsv` elsewhere, unless the command has its own. */
  readonly format: string
  readonly formatGiven: boolean
  /** Dotted paths; undefined: the command's own choice of columns. */
  readonly fields: readonly string[] | undefined
  /** The fields that the command knows in this format. */
  readonly knownFields: readonly string[]
  /** Whether CSV cells that a spreadsheet would run are defused, which changes them. */
  readonly csvSafe: boolean
  /**
   * True: neither notes nor warnings (`--quiet`). `but_warnings`: a program reads standard error, and wants the error at its end,
   * not the notes before it.
   */
  readonly quiet: boolean | 'but_warnings'
  readonly verbose: boolean
  /** Whether a person rules out questions, with `--no-input` or `MAILCLAIM_NO_INPUT`. */
  readonly noInput: boolean
  /**
   * Whether a question may be asked: stdin and stderr are terminals, nobody rules it out, and no program reads the answer
   * (`--json`, `--format jsonl`, `CI`). Only this decides; what is missing otherwise is exit 2.
   */
  readonly interactive: boolean
  readonly colorOption: boolean | undefined
  readonly noPager: boolean
  readonly httpTimeoutMs: number
  /** Undefined: the system's own. */
  readonly resolvers: readonly ServerAddress[] | undefined
  readonly authoritativePort: number
  /** The words that were typed after the program's name, to repeat them in a hint. */
  readonly argv: readonly string[]
}

/** What of a command's output decides its settings. */
export interface OutputRules {
  /** The format without `--format`, in place of a table on a terminal and TSV elsewhere. */
  readonly usualFormat?: string
  /** The fields of a format. */
  fieldsIn?(format: string): readonly string[] | undefined
}

/**
 * Resolves the settings of one command.
 *
 * @param output what the command prints
 * @param tolerateDamagedConfig continues with what can be read of a damaged configuration; see `configProblem`.
 * @throws CliError exit 2 for a bad value, `no_home`, or what `readConfig` throws.
 */
export async function resolveSettings(
  options: GlobalOptions,
  argv: readonly string[],
  context: Pick<Context, 'environment' | 'directories' | 'stdin' | 'stdout' | 'stderr'>,
  tolerateDamagedConfig = false,
  output: OutputRules = {},
): Promise<Settings> {
  const { environment, directories, stdin, stdout, stderr } = context
  requireAbsolute(directories)
  const { config, problem } = tolerateDamagedConfig
    ? await readUsableConfig(context)
    : { config: await readConfig(context), problem: undefined }
  const profile = choose('profile', PROFILE, options, environment, config.current_profile) ?? {
    value: PROFILE.default,
    source: 'default',
  }
  parseProfileName(profile.value)
  const profileConfig = config.profiles[profile.value] ?? {}
  const chosen = Object.fromEntries(
    SETTING_KEYS.map((key) => [key, choose(key, SETTINGS[key], options, environment, profileConfig[key])]),
  ) as ChosenSettings
  const format = resolveFormat(options, stdout.isTTY, output.usualFormat)
  const noInput = options.input === false || NO_INPUT.parse(environment.settings['no_input'] ?? '')
  return {
    profile,
    config,
    configProblem: problem,
    profileConfig,
    chosen,
    baseUrl: chosen.base_url,
    clientId: chosen.client_id,
    ...format,
    fields: options.fields === true ? undefined : options.fields,
    knownFields: output.fieldsIn?.(format.format) ?? [],
    csvSafe: options.csvSafe === true,
    quiet: options.quiet === true || (isProgramFormat(format) && !stderr.isTTY && 'but_warnings'),
    verbose: options.verbose === true,
    noInput,
    // Few commands need it, and some systems are slow to answer.
    get interactive() {
      const isForProgram = environment.ci || isProgramFormat(format)
      return !noInput && !isForProgram && stdin.isTTY && stderr.isTTY
    },
    colorOption: options.color,
    noPager: options.pager === false,
    httpTimeoutMs: settingValue('http_timeout', { chosen }) * 1000,
    resolvers: settingValue('resolver', { chosen })?.map((text) => parseServerAddress(text, 'resolver')),
    authoritativePort: settingValue('authoritative_port', { chosen }),
    argv,
  }
}

/** The value that holds for one setting, as it is typed: of the option, the variable, the profile, or the default. */
function choose(
  key: string,
  setting: Setting<unknown>,
  options: object,
  environment: Pick<Context['environment'], 'settings'>,
  stored: unknown,
): Sourced<string> | undefined {
  const option = key.replace(/_(.)/g, (_, letter: string) => letter.toUpperCase())
  const candidates: readonly (readonly [Sourced<string>['source'], unknown])[] = [
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

/** Names the option, the variable, or the setting of the profile that a value is from. */
export function settingSource(key: SettingKey, { chosen }: Pick<Settings, 'chosen'>): string {
  const name = settingName(key)
  const { variable }: Setting<unknown> = SETTINGS[key]
  const source = chosen[key]?.source
  return source === 'flag' ? `--${name}` : source === 'environment' ? (variable ?? name) : name
}

/** Whether the output is JSON, so that a program reads it. */
export function isProgramFormat({ format }: Pick<Settings, 'format'>): boolean {
  return format === 'json' || format === 'jsonl'
}

function resolveFormat(
  options: GlobalOptions,
  onTerminal: boolean,
  usual = onTerminal ? 'table' : 'tsv',
): { format: string; formatGiven: boolean } {
  if (options.json && options.format !== undefined && options.format !== 'json') {
    throw usageError(`--json and --format ${options.format} can't be used together`)
  }
  const given = options.json ? 'json' : options.format
  if (given === undefined) return { format: usual, formatGiven: false }
  return { format: given, formatGiven: true }
}

/** @throws CliError `base_url_missing` or `base_url_unusable`, exit 3. */
export function requireBaseUrl({ baseUrl }: Pick<Settings, 'baseUrl'>): URL {
  if (baseUrl !== undefined) return parseBaseUrl(baseUrl.value)
  throw new CliError('base_url_missing', Exit.notConfigured, 'the address of the service is not configured', {
    hint: 'sign in, which saves it: mailclaim login --base-url URL --client-id ID; or give --base-url or set MAILCLAIM_BASE_URL; to try it without an account: mailclaim sandbox',
  })
}

/** @throws CliError `client_id_missing`, exit 3. */
export function requireClientId({ clientId }: Pick<Settings, 'clientId'>): string {
  if (clientId !== undefined && clientId.value !== '') return clientId.value
  throw new CliError('client_id_missing', Exit.notConfigured, 'the OAuth client id is not configured', {
    hint: 'give --client-id, set MAILCLAIM_CLIENT_ID, or run: mailclaim config set client-id …',
  })
}
