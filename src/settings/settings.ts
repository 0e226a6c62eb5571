import type { Context } from '../context.ts'
import { CliError, Exit, usageError } from '../errors.ts'
import {
  parseBaseUrl,
  parsePort,
  parseServerAddress,
  type ServerAddress,
  splitServerAddresses,
} from './addresses.ts'
import { type Config, type ProfileConfig, parseTimeout, readConfig, readUsableConfig } from './config.ts'
import { requireAbsolute } from './paths.ts'
import { DEFAULT_PROFILE, parseProfileName } from './profiles.ts'

export const FORMATS = ['table', 'json', 'jsonl', 'csv', 'tsv'] as const
export type Format = (typeof FORMATS)[number]

/** The options that every command takes, as they were given; what was not given is absent. */
export interface GlobalOptions {
  profile?: string
  baseUrl?: string
  clientId?: string
  format?: string
  json?: true
  fields?: string
  csvSafe?: true
  quiet?: true
  verbose?: true
  input?: boolean
  color?: boolean
  httpTimeout?: string
  resolver?: string[]
  authoritativePort?: string
}

/** A setting with where it came from, so that a message can name the place to correct. */
export interface Sourced<T> {
  readonly value: T
  readonly source: 'flag' | 'environment' | 'profile' | 'default'
}

/** What a command goes by: a flag beats the environment, which beats the profile, which beats a default. */
export interface Settings {
  readonly profile: Sourced<string>
  readonly baseUrl: Sourced<string> | undefined
  readonly clientId: Sourced<string> | undefined
  readonly profileConfig: ProfileConfig
  readonly config: Config
  /** Why the configuration could not be read, wholly or in part, where the command puts up with that. */
  readonly configProblem: CliError | undefined
  /** `table` on a terminal and `tsv` elsewhere, unless `--format` or `--json` decides. */
  readonly format: string
  readonly formatGiven: boolean
  /** Dotted paths; undefined: the command's own choice of columns. */
  readonly fields: readonly string[] | undefined
  /** Whether CSV cells that a spreadsheet would run are defused, which changes them. */
  readonly csvSafe: boolean
  readonly quiet: boolean
  readonly verbose: boolean
  /** Whether a question may be asked: stdin and stderr are terminals and `--no-input` was not given. */
  readonly interactive: boolean
  readonly colorOption: boolean | undefined
  readonly httpTimeoutMs: number
  /** Undefined: the system's own. */
  readonly resolvers: readonly ServerAddress[] | undefined
  readonly authoritativePort: number
  /** The words that were typed after the program's name, to repeat them in a hint. */
  readonly argv: readonly string[]
}

const DEFAULT_HTTP_TIMEOUT_SECONDS = 30

/**
 * Resolves the settings of one command.
 *
 * @param formats the formats that the command knows beside the usual ones.
 * @param tolerateDamagedConfig goes on with what can be read of a damaged configuration; `configProblem` tells of it.
 * @throws CliError exit 2 for a bad value, `no_home`, or what `readConfig` throws.
 */
export async function resolveSettings(
  options: GlobalOptions,
  argv: readonly string[],
  formats: readonly string[],
  context: Context,
  tolerateDamagedConfig = false,
): Promise<Settings> {
  const { environment } = context
  requireAbsolute(context.directories)
  const { config, problem } = tolerateDamagedConfig
    ? await readUsableConfig(context)
    : { config: await readConfig(context), problem: undefined }
  const profile = firstOf(
    ['flag', options.profile],
    ['environment', environment.profile],
    ['profile', config.current_profile],
  ) ?? { value: DEFAULT_PROFILE, source: 'default' as const }
  parseProfileName(profile.value)
  const profileConfig = config.profiles[profile.value] ?? {}
  const timeout =
    options.httpTimeout === undefined
      ? profileConfig.http_timeout
      : parseTimeout(options.httpTimeout, '--http-timeout')
  const authoritativePort = firstOf(
    ['flag', options.authoritativePort],
    ['environment', environment.authoritativePort],
    ['profile', profileConfig.authoritative_port?.toString()],
  )
  const resolvers = firstOf<readonly string[]>(
    ['flag', options.resolver],
    [
      'environment',
      // Judged only where it decides.
      options.resolver === undefined && environment.resolver !== undefined
        ? splitServerAddresses(environment.resolver, 'MAILCLAIM_RESOLVER')
        : undefined,
    ],
    ['profile', profileConfig.resolver],
  )
  return {
    profile,
    config,
    configProblem: problem,
    profileConfig,
    baseUrl: firstOf(
      ['flag', options.baseUrl],
      ['environment', environment.baseUrl],
      ['profile', profileConfig.base_url],
    ),
    clientId: firstOf(
      ['flag', options.clientId],
      ['environment', environment.clientId],
      ['profile', profileConfig.client_id],
    ),
    ...resolveFormat(options, formats, context),
    fields: options.fields === undefined ? undefined : parseFields(options.fields),
    csvSafe: options.csvSafe === true,
    quiet: options.quiet === true,
    verbose: options.verbose === true,
    // Asked by few commands, and on some systems not quick to tell.
    get interactive() {
      return options.input !== false && context.stdin.isTTY && context.stderr.isTTY
    },
    colorOption: options.color,
    httpTimeoutMs: (timeout ?? DEFAULT_HTTP_TIMEOUT_SECONDS) * 1000,
    resolvers: resolvers?.value.map((text) =>
      parseServerAddress(
        text,
        resolvers.source === 'flag'
          ? '--resolver'
          : resolvers.source === 'environment'
            ? 'MAILCLAIM_RESOLVER'
            : 'resolver',
      ),
    ),
    authoritativePort:
      authoritativePort === undefined
        ? 53
        : parsePort(
            authoritativePort.value,
            authoritativePort.source === 'environment'
              ? 'MAILCLAIM_AUTHORITATIVE_PORT'
              : '--authoritative-port',
          ),
    argv,
  }
}

function resolveFormat(
  options: GlobalOptions,
  extra: readonly string[],
  context: Context,
): { format: string; formatGiven: boolean } {
  if (options.json && options.format !== undefined && options.format !== 'json') {
    throw usageError(`--json and --format ${options.format} exclude each other`)
  }
  const given = options.json ? 'json' : options.format
  if (given === undefined) return { format: context.stdout.isTTY ? 'table' : 'tsv', formatGiven: false }
  const known: readonly string[] = [...FORMATS, ...extra]
  if (!known.includes(given)) {
    throw usageError(`--format: ${JSON.stringify(given)} is not one of ${known.join(', ')}`)
  }
  return { format: given, formatGiven: true }
}

function parseFields(text: string): string[] {
  const fields = text.split(',').map((field) => field.trim())
  if (fields.some((field) => field === '' || field.split('.').includes(''))) {
    throw usageError(
      `--fields: ${JSON.stringify(text)} is not a list of fields`,
      'separate them with commas, as in --fields id,client.name',
    )
  }
  return fields
}

function firstOf<T>(
  ...candidates: readonly (readonly [Sourced<T>['source'], T | undefined])[]
): Sourced<T> | undefined {
  for (const [source, value] of candidates) {
    if (value !== undefined) return { value, source }
  }
  return undefined
}

/** @throws CliError `base_url_missing` or `base_url_unusable`, exit 3. */
export function requireBaseUrl(settings: Pick<Settings, 'baseUrl'>): URL {
  if (settings.baseUrl === undefined) {
    throw new CliError(
      'base_url_missing',
      Exit.notConfigured,
      'the address of the service is not configured',
      {
        hint: 'give --base-url, set MAILCLAIM_BASE_URL, or run: mailclaim config set base-url https://… (to try it without an account: mailclaim sandbox)',
      },
    )
  }
  return parseBaseUrl(settings.baseUrl.value)
}

/** @throws CliError `client_id_missing`, exit 3. */
export function requireClientId(settings: Pick<Settings, 'clientId'>): string {
  if (settings.clientId === undefined || settings.clientId.value === '') {
    throw new CliError('client_id_missing', Exit.notConfigured, 'the OAuth client id is not configured', {
      hint: 'give --client-id, set MAILCLAIM_CLIENT_ID, or run: mailclaim config set client-id …',
    })
  }
  return settings.clientId.value
}

/** Where a login can keep its secret. */
export type StoreKind = 'keychain' | 'file'

/** Where a login keeps its secret: what was asked for on the command line, in the environment or in the profile. */
export function chosenStore(
  context: Pick<Context, 'environment'>,
  settings: Pick<Settings, 'profileConfig'>,
  option: string | undefined,
): StoreKind {
  const from =
    option !== undefined ? '--store' : context.environment.store !== undefined ? 'MAILCLAIM_STORE' : 'store'
  const text = option ?? context.environment.store ?? settings.profileConfig.store ?? 'keychain'
  if (text === 'keychain' || text === 'file') return text
  throw usageError(`${from}: ${JSON.stringify(text)} is not one of keychain, file`)
}
