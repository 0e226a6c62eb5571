import { usageError } from '../errors.ts'
import { normalizeUrl, parseBaseUrl, parseServerUrl, parseServerUrls, splitResolvers } from './addresses.ts'
import type { OptionDefinition } from './option.ts'
import { MAX_PORT, parseChoice, parseInteger, parseScopes, parseSeconds } from './parse-value.ts'
import { DEFAULT_PROFILE, validateProfileName } from './profiles.ts'

/**
 * Definition of a setting, from which its option, environment variable, entry in the configuration file, help, completion and
 * documentation are derived.
 */
export interface SettingDefinition<Value>
  extends Pick<OptionDefinition, 'description' | 'repeatable' | 'choices' | 'completion' | 'variable'> {
  /** Flag and value placeholder of the setting's option; absent for a setting without an option. */
  readonly flags?: `--${string}`
  /** Paths of the commands that take the option, such as `login`. Default: every command. */
  readonly commands?: readonly string[]
  /** Unparsed value that applies if no other is set. */
  readonly default?: string
  /** Help text in place of `default`, for a default that isn't a fixed value, such as "the system's" for `resolver`. */
  readonly defaultText?: string
  /**
   * Parses the value of the option, variable or profile; the text of a list is separated by spaces, or, except in `scope`, by
   * commas.
   *
   * @param name name of the option, variable or setting, for the error message
   * @throws CliError exit 3 for an invalid base URL; exit 2 for another invalid value
   */
  parse(text: string, name: string): Value
}

/** Texts for users that describe the places where a login can store its secret, by the value of the setting `store`. */
export const STORE_DESCRIPTIONS = {
  keychain: "the system's keychain",
  file: 'a file that only you can read',
  etcd: 'etcd, encrypted, for every machine with the key',
} as const
const STORE_KINDS = Object.keys(STORE_DESCRIPTIONS) as StoreKind[]
export type StoreKind = keyof typeof STORE_DESCRIPTIONS
export type LocalStoreKind = Exclude<StoreKind, 'etcd'>

/** Settings that a profile can have, by key in the configuration file, in the order of `config list`. */
export const SETTINGS = {
  base_url: {
    flags: '--base-url <url>',
    variable: 'MAILCLAIM_BASE_URL',
    description: 'address of the service',
    parse: (text, name) => normalizeUrl(parseBaseUrl(text, name)),
  },
  client_id: {
    flags: '--client-id <id>',
    variable: 'MAILCLAIM_CLIENT_ID',
    description: 'OAuth client id of this program',
    parse: (text, name) => {
      if (/^[\x20-\x7e]+$/.test(text)) return text
      throw usageError(`${name}: only printable ASCII characters are allowed (RFC 6749 appendix A.1)`)
    },
  },
  issuer: {
    flags: '--issuer <url>',
    commands: ['login'],
    description: 'authorization server, if its issuer is not the base URL (RFC 8414)',
    defaultText: 'the base URL',
    parse: (text, name) => normalizeUrl(parseServerUrl(text, name)),
  },
  scope: {
    flags: '--scope <scope>',
    commands: ['login'],
    repeatable: true,
    description: 'scopes to request at login, separated by spaces',
    defaultText: 'the service decides',
    parse: parseScopes,
  },
  authorization_endpoint: {
    flags: '--authorization-endpoint <url>',
    commands: ['login'],
    description: 'the consent page, if the service does not publish it',
    defaultText: "the service's metadata, else its /oauth/authorize",
    parse: (text, name) => parseServerUrl(text, name).href,
  },
  resource: {
    flags: '--resource <uri>',
    commands: ['login'],
    description: 'resource to request access to at login (RFC 8707)',
    parse: (text, name) => {
      if (URL.canParse(text) && !text.includes('#')) return text
      throw usageError(`${name}: must be an absolute URI without a fragment (RFC 8707 section 2)`)
    },
  },
  redirect_uri: {
    flags: '--redirect-uri <uri>',
    commands: ['login'],
    description: 'loopback address that is registered for this program (RFC 8252 section 7.3)',
    defaultText: 'http://127.0.0.1:PORT/callback',
    parse: (text) => text,
  },
  store: {
    flags: '--store <store>',
    commands: ['login'],
    variable: 'MAILCLAIM_STORE',
    description: 'where a login keeps its secret',
    default: 'keychain',
    choices: STORE_KINDS,
    parse: (text, name) => parseChoice(text, name, STORE_KINDS),
  },
  store_url: {
    flags: '--store-url <urls>',
    commands: ['login'],
    variable: 'MAILCLAIM_STORE_URL',
    description: 'members of etcd, separated by commas, for --store etcd',
    parse: parseServerUrls,
  },
  store_cert: {
    flags: '--store-cert <file>',
    commands: ['login'],
    variable: 'MAILCLAIM_STORE_CERT',
    description: 'client certificate for etcd (PEM file)',
    parse: (text) => text,
  },
  store_cert_key: {
    flags: '--store-cert-key <file>',
    commands: ['login'],
    variable: 'MAILCLAIM_STORE_CERT_KEY',
    description: 'private key of the client certificate (PEM file)',
    defaultText: 'the file of the certificate',
    parse: (text) => text,
  },
  store_key_file: {
    flags: '--store-key-file <file>',
    commands: ['login'],
    variable: 'MAILCLAIM_STORE_KEY_FILE',
    description: 'file with the key that encrypts the session in etcd, unless MAILCLAIM_STORE_KEY has it',
    parse: (text) => text,
  },
  resolver: {
    flags: '--resolver <address>',
    repeatable: true,
    variable: 'MAILCLAIM_RESOLVER',
    description: 'DNS resolvers to query, each as IP, IP:PORT or https://…',
    defaultText: "the system's",
    parse: splitResolvers,
  },
  authoritative_port: {
    flags: '--authoritative-port <port>',
    variable: 'MAILCLAIM_AUTHORITATIVE_PORT',
    description: 'port of authoritative name servers, for private DNS',
    default: '53',
    parse: (text, name) => parseInteger(text, name, 1, MAX_PORT),
  },
  http_timeout: {
    flags: '--http-timeout <seconds>',
    description: 'how long an HTTP response may take, for each try',
    default: '30',
    parse: (text, name) => parseSeconds(text, name),
  },
} as const satisfies Readonly<Record<string, SettingDefinition<unknown>>>

/**
 * Definition of `--profile` and `MAILCLAIM_PROFILE`. Not in `SETTINGS`, because the profile that `auth switch` chose is stored
 * outside of the profiles.
 */
export const PROFILE_OPTION = {
  flags: '--profile <name>',
  variable: 'MAILCLAIM_PROFILE',
  description: 'profile to use',
  default: DEFAULT_PROFILE,
  defaultText: 'the one chosen with auth switch',
  completion: 'profiles',
  parse: validateProfileName,
} as const satisfies SettingDefinition<string>

/**
 * Environment variable that forbids prompts, like `--no-input`. Not in `SETTINGS`, because a profile must not set it: whether
 * somebody can answer depends on the machine or the job.
 */
export const NO_INPUT_VARIABLE = {
  variable: 'MAILCLAIM_NO_INPUT',
  description: '1: never ask a question, as with --no-input',
  parse: (text) => !/^(0|false|no|off)?$/i.test(text),
} as const satisfies SettingDefinition<boolean>

export type SettingKey = keyof typeof SETTINGS
/** Type of a setting's parsed value; includes undefined unless the setting has a default. */
export type SettingValue<Key extends SettingKey> =
  | ReturnType<(typeof SETTINGS)[Key]['parse']>
  | ((typeof SETTINGS)[Key] extends { readonly default: string } ? never : undefined)

/** Unparsed settings of one profile in the configuration file. */
export type ProfileConfig = { [Key in SettingKey]?: string }

export const SETTING_KEYS = Object.keys(SETTINGS) as readonly SettingKey[]

/** `PROFILE_OPTION`, the settings that a profile can have, and `NO_INPUT_VARIABLE`, by key, in the order of help. */
export const ALL_SETTINGS: readonly (readonly [key: string, setting: SettingDefinition<unknown>])[] =
  Object.entries({
    profile: PROFILE_OPTION,
    ...SETTINGS,
    no_input: NO_INPUT_VARIABLE,
  })

/** Returns a setting's name for users: `base-url` for the key `base_url`. */
export function settingName(snakeCaseKey: string): string {
  return snakeCaseKey.replaceAll('_', '-')
}

/**
 * Returns the key of the setting with a typed name, `base-url` or `base_url`.
 *
 * @throws CliError `usage`, exit 2, if there is none
 */
export function parseSettingKey(name: string): SettingKey {
  const key = name.replaceAll('-', '_')
  if (Object.hasOwn(SETTINGS, key)) return key as SettingKey
  throw usageError(
    `${JSON.stringify(name)} is not a setting`,
    /key|token|secret|password/i.test(name)
      ? 'put an API key into MAILCLAIM_API_KEY, or store it: mailclaim login --with-api-key < key.txt'
      : `the settings are ${SETTING_KEYS.map(settingName).join(', ')}`,
  )
}

/** Formats a setting's value as text; joins a list with spaces. */
export function formatSetting(value: unknown): string {
  return Array.isArray(value) ? value.join(' ') : String(value)
}
