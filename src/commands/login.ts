import { isDeepStrictEqual } from 'node:util'
import type { Context } from '../context.ts'
import { type CliError, usageError } from '../errors.ts'
import { type LoginReporter, login, type ReceivedCode } from '../oauth/login.ts'
import { redirectTarget } from '../oauth/redirect-uri.ts'
import { scopeDifference } from '../oauth/scopes.ts'
import { exchangeCode } from '../oauth/token-endpoint.ts'
import { requireApiKey, requireLocalStore, tryApiKey } from '../session/api-key.ts'
import { replaceSession, storeApiKey } from '../session/replace.ts'
import { issuerOf, parseBaseUrl } from '../settings/addresses.ts'
import { updateConfig } from '../settings/config.ts'
import { type LoginCommandOptions, loginCommand } from '../settings/login-command.ts'
import { parsePort, parseSeconds } from '../settings/parse-value.ts'
import {
  isProgramFormat,
  requireBaseUrl,
  requireClientId,
  type Settings,
  settingValue,
} from '../settings/settings.ts'
import { storeToRemember } from '../settings/shared-store.ts'
import { SETTINGS, type StoreKind } from '../settings/table.ts'
import type { Column } from '../terminal/columns.ts'
import { hint, note, warn } from '../terminal/notices.ts'
import { writeJsonLine, writeOutcome } from '../terminal/output.ts'
import { sanitizeLine } from '../terminal/sanitize.ts'
import { readApiKey } from './api-key-input.ts'
import { defineCommand, ownOutput, SERVICE_EXITS } from './definition.ts'
import { settingOptions } from './program.ts'
import { usableStore } from './usable-store.ts'

interface LoginFlags {
  readonly port?: number
  readonly redirectUri?: string
  readonly browser?: boolean
  readonly timeout?: number
  readonly authorizationEndpoint?: string
  readonly withApiKey?: true
  readonly check?: boolean
}

const DEFAULT_TIMEOUT_SECONDS = 300
/** What `--json` and `--format jsonl` write before the result. */
const LOGIN_EVENTS = {
  authorization: 'the address (url) that a person has to open and approve; the command waits for that',
} as const

const COLUMNS: readonly Column[] = [
  { field: 'profile' },
  { field: 'kind' },
  { field: 'base_url' },
  { field: 'scope' },
  { field: 'store' },
]

export const command = defineCommand<LoginFlags>({
  description: `Signs you in with the browser (OAuth 2.0 authorization code with PKCE) and stores the session. The refresh
token goes to the system's keychain, or with --store file to a file that only you can read. The address is always printed
as well; if the browser runs on another machine, paste the address of its last page.

With --json or --format jsonl, a program drives it: the address comes first, as one line of JSON, no browser is opened, and the
result follows. With --no-input it doesn't start, because somebody has to approve: sign in with an API key instead.

An API key is tried with the service before it is stored; if the service refuses it, nothing changes.`,
  options: [
    ...settingOptions('login'),
    {
      flags: '--port <port>',
      description: 'port to listen on for the redirect',
      default: 'a free one',
      parse: (text) => parsePort(text, '--port'),
    },
    { flags: '--redirect-uri <uri>', description: 'redirect URI, as registered' },
    { flags: '--no-browser', description: 'only print the address' },
    {
      flags: '--timeout <seconds>',
      description: 'how long to wait for the browser',
      default: String(DEFAULT_TIMEOUT_SECONDS),
      parse: (text) => parseSeconds(text, '--timeout'),
    },
    {
      flags: '--authorization-endpoint <url>',
      description: 'the consent page, if the service does not publish it',
    },
    {
      flags: '--with-api-key',
      description: 'read an API key from stdin, or ask for it, instead',
      conflicts: [
        '--scope',
        '--resource',
        '--port',
        '--redirect-uri',
        '--no-browser',
        '--timeout',
        '--authorization-endpoint',
      ],
    },
    {
      flags: '--no-check',
      description: 'store the API key without trying it with the service',
      needs: '--with-api-key',
    },
  ],
  events: LOGIN_EVENTS,
  examples: {
    'mailclaim login': 'sign in with the browser',
    'mailclaim login --no-browser': 'over SSH: open the address elsewhere, then paste that of the last page',
    'mailclaim login --store file': 'on a machine without a keychain',
    'mailclaim login --store etcd --store-url https://a:2379,https://b:2379,https://c:2379':
      'for a fleet of machines that share one sign-in (docs/fleet.md)',
    'mailclaim login --issuer https://auth.example.com': 'if another host signs people in',
    'mailclaim login --with-api-key < key.txt': 'store an API key instead of a session',
  },
  output: ownOutput(COLUMNS),
  exits: SERVICE_EXITS,
  async run({ options }, context, given) {
    if (given.noInput && !options.withApiKey) throw needsPerson(given)
    const settings = await askForMissing(given, options.withApiKey === true, context)
    const chosenStore = settingValue('store', settings)
    const issuer = issuerOfLogin(settings)
    if (options.withApiKey) return storeKey(chosenStore, issuer, options.check !== false, context, settings)
    const scopes = settingValue('scope', settings) ?? []
    const resource = settingValue('resource', settings)
    const target = redirectTarget(options.redirectUri, options.port)
    // What could fail after the browser's part is tried before it.
    requireBaseUrl(settings)
    requireClientId(settings)
    const store = await usableStore(chosenStore, 'refresh_token', context, settings)
    const again = loginOptions(store, issuer, settings)

    const session = await login(
      {
        scopes,
        resource,
        target,
        openBrowser: opensBrowser(options, settings) && !context.environment.ssh,
        readInput: canPaste(options, context, settings),
        timeoutMs: (options.timeout ?? DEFAULT_TIMEOUT_SECONDS) * 1000,
        issuer,
        authorizationEndpoint: options.authorizationEndpoint,
        again: { ...again, typed: settings.argv },
      },
      // A hint of the exchange may add --with-api-key, which most options conflict with.
      (code) => storeSession(code, scopes, resource, store, loginCommand(again), context, settings),
      reporter(context, settings),
      context,
      settings,
    )
    await remember(issuer, settings, context)
    await announce(session, context, settings)
    await compareScopes(scopes, session.record.scope, context, settings)
  },
})

/**
 * The authorization server, if it is not the service under its base URL. The issuer of a profile belongs to the base URL
 * of that profile, and must not be used for another service.
 */
function issuerOfLogin(settings: Settings): string | undefined {
  const base = settings.baseUrl && issuerOf(parseBaseUrl(settings.baseUrl.value))
  const { base_url: remembered } = settings.profileConfig
  const sameService =
    settings.baseUrl?.source === 'profile' || remembered === undefined || remembered === base
  if (settings.chosen.issuer?.source === 'profile' && !sameService) return undefined
  const issuer = settingValue('issuer', settings)
  return issuer === base ? undefined : issuer
}

/** The options that have to be typed again, because the profile remembers them only after a successful login. */
function loginOptions(
  store: StoreKind,
  issuer: string | undefined,
  { profile, profileConfig, baseUrl, clientId }: Settings,
): LoginCommandOptions {
  return {
    profile: profile.value,
    store: store === profileConfig.store ? undefined : store,
    baseUrl: baseUrl?.source === 'flag' ? baseUrl.value : undefined,
    clientId: clientId?.source === 'flag' ? clientId.value : undefined,
    issuer: issuer === profileConfig.issuer ? undefined : issuer,
  }
}

/** Reports scopes that differ from those requested: otherwise a command would be refused, much later. */
async function compareScopes(
  requested: readonly string[],
  granted: string | null,
  context: Context,
  settings: Settings,
): Promise<void> {
  if (requested.length === 0 || granted === null) return
  const { missing, extra } = scopeDifference(requested, granted)
  if (missing.length > 0) await warn(`requested but not granted: ${missing.join(' ')}`, context, settings)
  if (extra.length > 0) await note(`Granted without being requested: ${extra.join(' ')}`, context, settings)
}

/** A program that asks for JSON decides itself where the address is opened. */
function opensBrowser(options: LoginFlags, settings: Settings): boolean {
  return options.browser !== false && !isProgramFormat(settings)
}

/** Whether the redirect can be pasted: on a terminal that allows questions, or in a pipe where no browser is opened. */
function canPaste(options: LoginFlags, context: Context, settings: Settings): boolean {
  return settings.interactive || (!opensBrowser(options, settings) && !context.stdin.isTTY)
}

function needsPerson(settings: Settings): CliError {
  const again = loginCommand(loginOptions(settingValue('store', settings), undefined, settings))
  return usageError(
    'a sign-in with the browser needs a person, which --no-input or MAILCLAIM_NO_INPUT rules out',
    `pipe in an API key: ${again} --with-api-key < key.txt, or set MAILCLAIM_API_KEY; if a person can approve, allow input`,
  )
}

/** Asks a person for what is not configured; a script gets an error later. */
async function askForMissing(settings: Settings, withApiKey: boolean, context: Context): Promise<Settings> {
  if (!settings.interactive) return settings
  let { baseUrl, clientId } = settings
  if (baseUrl === undefined) {
    await note(
      'Nothing is configured yet. To try it without an account, run mailclaim sandbox in another terminal.',
      context,
      settings,
    )
    const value = await context.prompts.input({
      message: 'Base URL of the service:',
      validate: (text) => validate(() => parseBaseUrl(text)),
    })
    baseUrl = { value, source: 'flag' }
  }
  if (clientId === undefined && !withApiKey) {
    const value = await context.prompts.input({
      message: 'OAuth client id:',
      validate: (text) => validate(() => SETTINGS.client_id.parse(text, 'client-id')),
    })
    clientId = { value, source: 'flag' }
  }
  return { ...settings, baseUrl, clientId }
}

function validate(check: () => unknown): true | string {
  try {
    check()
    return true
  } catch (error) {
    return error instanceof Error ? error.message : String(error)
  }
}

/** Exchanges the code and stores the tokens; this replaces the old session. */
async function storeSession(
  code: ReceivedCode,
  scopes: readonly string[],
  resource: string | undefined,
  store: StoreKind,
  again: string,
  context: Context,
  settings: Settings,
): Promise<StoredOAuthSession> {
  const requestedScope = scopes.length === 0 ? undefined : scopes.join(' ')
  const tokens = await exchangeCode(context, {
    base: code.base,
    clientId: code.clientId,
    settings,
    callback: code.parameters,
    redirectUri: code.redirectUri,
    codeVerifier: code.codeVerifier,
    requestedScope,
    login: again,
  })
  return replaceSession(context, settings, {
    base: code.base,
    clientId: code.clientId,
    scope: requestedScope,
    resource,
    tokens,
    store,
  })
}

type StoredOAuthSession = Awaited<ReturnType<typeof replaceSession>>
type StoredSession = StoredOAuthSession | Awaited<ReturnType<typeof storeApiKey>>

async function storeKey(
  chosenStore: StoreKind,
  issuer: string | undefined,
  isTried: boolean,
  context: Context,
  settings: Settings,
): Promise<void> {
  const base = isTried || settings.baseUrl !== undefined ? requireBaseUrl(settings) : undefined
  const store = await usableStore(requireLocalStore(chosenStore), 'api_key', context, settings)
  const value = await readApiKey(context, settings)
  requireApiKey(value)
  if (isTried) await tryApiKey(context, settings, value)
  const session = await storeApiKey(context, settings, { value, base, store })
  await remember(issuer, settings, context)
  await announce(session, context, settings)
}

/** Saves where the profile signed in, so that the next command needs no options. */
async function remember(issuer: string | undefined, settings: Settings, context: Context): Promise<void> {
  const profile = settings.profile.value
  const config = settings.config.profiles[profile]
  const fields = {
    ...(settings.baseUrl === undefined ? {} : { base_url: issuerOf(parseBaseUrl(settings.baseUrl.value)) }),
    ...(settings.clientId === undefined ? {} : { client_id: settings.clientId.value }),
    ...storeToRemember(settings),
  }
  const known = isDeepStrictEqual({ ...config, ...fields }, config)
  if (known && config?.issuer === issuer) return
  await updateConfig(context, (changed) => {
    const { issuer: _replaced, ...others } = changed.profiles[profile] ?? {}
    changed.profiles[profile] = { ...others, ...fields, ...(issuer === undefined ? {} : { issuer }) }
  })
}

async function announce(
  { record, kept }: StoredSession,
  context: Context,
  settings: Settings,
): Promise<void> {
  for (const { location, why } of kept)
    await warn(`a secret of the previous session is still in ${location.name}: ${why}`, context, settings)
  const where = {
    keychain: "the system's keychain",
    file: 'a file that only you can read',
    etcd: 'etcd, encrypted, for every machine with the key',
  }[record.store]
  const what = record.kind === 'oauth' ? 'Signed in' : 'API key stored'
  await note(
    `${what}${record.issuer === null ? '' : ` at ${record.issuer}`} as profile ${record.profile}; the secret is in ${where}.`,
    context,
    settings,
  )
  if (context.environment.apiKey !== undefined) {
    await warn(
      'MAILCLAIM_API_KEY is set and overrides it: unset it to use what was just stored',
      context,
      settings,
    )
  }
  // The address came as a line of JSON, so the result is one too, on a terminal as elsewhere.
  const format = record.kind === 'oauth' && settings.format === 'json' ? 'jsonl' : settings.format
  await writeOutcome(
    context,
    { ...settings, format },
    {
      profile: record.profile,
      kind: record.kind,
      base_url: record.issuer,
      scope: record.kind === 'oauth' ? record.scope : null,
      store: record.store,
    },
    COLUMNS,
  )
}

/** Everything here is needed to continue, so --quiet doesn't silence it. */
function reporter(context: Context, settings: Settings): LoginReporter {
  const always = { ...settings, quiet: false }
  const say = (text: string) => note(text, context, always)
  return {
    async ready(url, browser, readsInput) {
      if (isProgramFormat(settings)) {
        const at = new Date(context.clock.now()).toISOString()
        // Whole: --fields selects from the result.
        const event = { event: 'authorization', at, message: 'open this address', url }
        await writeJsonLine(context, { fields: undefined }, event)
      }
      await say(
        browser === 'opening'
          ? 'Opening the browser. If nothing opens, go to:'
          : 'Open this address in a browser:',
      )
      await say(`\n  ${sanitizeLine(url)}\n`)
      if (readsInput)
        await say('If the browser runs on another machine, paste the address of its last page here.')
      await say('Waiting for your approval …')
    },
    async browserFailed() {
      await say('No browser could be opened. Open the address above yourself.')
    },
    async ignored(why, next) {
      await warn(`an answer was ignored: ${why}`, context, always)
      if (next !== undefined) await hint(next, context, always)
    },
  }
}
