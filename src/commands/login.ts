import type { Readable } from 'node:stream'
import type { Context } from '../context.ts'
import { Exit, usageError } from '../errors.ts'
import { type LoginReporter, login, type ReceivedCode } from '../oauth/login.ts'
import { redirectTarget } from '../oauth/redirect-uri.ts'
import { scopeDifference, splitScopes } from '../oauth/scopes.ts'
import { exchangeCode } from '../oauth/token-endpoint.ts'
import { proveStore } from '../session/prove-store.ts'
import { replaceSession, storeApiKey } from '../session/replace.ts'
import { issuerOf, parseBaseUrl, parseIssuer, parsePort } from '../settings/addresses.ts'
import { CONFIG_KEYS, parseTimeout, updateConfig } from '../settings/config.ts'
import { type LoginCommandOptions, loginCommand } from '../settings/login-command.ts'
import {
  chosenStore,
  requireBaseUrl,
  requireClientId,
  type Settings,
  type StoreKind,
} from '../settings/settings.ts'
import { note, warn } from '../terminal/notices.ts'
import { writeObject } from '../terminal/output.ts'
import { sanitizeLine } from '../terminal/sanitize.ts'
import { defineCommand } from './definition.ts'

interface LoginFlags {
  readonly scope?: readonly string[]
  readonly resource?: string
  readonly port?: number
  readonly redirectUri?: string
  readonly browser?: boolean
  readonly timeout?: number
  readonly store?: 'keychain' | 'file'
  readonly issuer?: string
  readonly authorizationEndpoint?: string
  readonly withApiKey?: true
}

const DEFAULT_TIMEOUT_SECONDS = 300
/** Bytes; more than any key has. */
const LONGEST_KEY = 64 * 1024

export const command = defineCommand<LoginFlags>({
  description: `Signs you in with the browser (OAuth 2.0 authorization code with PKCE) and keeps the session.
The refresh token goes to the system's keychain, or with --store file to a file that only you can read. The address
is always printed as well; where the browser runs on another machine, paste the address that it ends at.`,
  options: [
    { flags: '--scope <scope>', says: 'ask for this scope; repeatable', repeatable: true },
    { flags: '--resource <uri>', says: 'ask for access to this resource (RFC 8707)' },
    {
      flags: '--port <port>',
      says: 'listen on this port instead of a free one',
      parse: (text) => parsePort(text, '--port'),
    },
    { flags: '--redirect-uri <uri>', says: 'the redirect URI as it is registered' },
    { flags: '--no-browser', says: 'only print the address' },
    {
      flags: '--timeout <seconds>',
      says: `how long to wait for the browser (${DEFAULT_TIMEOUT_SECONDS})`,
      parse: (text) => parseTimeout(text, '--timeout'),
    },
    {
      flags: '--store <store>',
      says: 'where the secret is kept: keychain or file',
      choices: ['keychain', 'file'],
    },
    {
      flags: '--issuer <url>',
      says: 'the authorization server, where its name is not the base URL; remembered',
      parse: parseIssuer,
    },
    {
      flags: '--authorization-endpoint <url>',
      says: 'the consent page, where the service does not publish it',
    },
    { flags: '--with-api-key', says: 'read an API key from stdin, or ask for it, instead' },
  ],
  examples: [
    { command: 'mailclaim login', says: 'sign in with the browser' },
    {
      command: 'mailclaim login --no-browser',
      says: 'over SSH: open the address elsewhere, paste where it ends',
    },
    { command: 'mailclaim login --store file', says: 'on a machine without a keychain' },
    {
      command: 'mailclaim login --issuer https://auth.example.com',
      says: 'where another host signs people in',
    },
    { command: 'mailclaim login --with-api-key < key.txt', says: 'keep an API key instead of a session' },
  ],
  exits: [Exit.notConfigured, Exit.notSignedIn, Exit.refused, Exit.unavailable],
  async run({ options }, context, given) {
    const settings = await askForMissing(given, options.withApiKey === true, context)
    const store = chosenStore(context, settings, options.store)
    const issuer = issuerOfLogin(options, settings)
    if (options.withApiKey) return keepApiKey(store, issuer, context, settings)
    const scopes = splitScopes(options.scope ?? settings.profileConfig.scope ?? [])
    const resource = options.resource ?? settings.profileConfig.resource
    if (options.resource !== undefined) CONFIG_KEYS.resource.parse(options.resource)
    const target = redirectTarget(options.redirectUri, options.port)
    // What would fail after the browser's part is tried before it.
    requireBaseUrl(settings)
    requireClientId(settings)
    await proveStore(context, settings, store)
    const again = howToSignInAgain(store, issuer, settings)

    const session = await login(
      {
        scopes,
        resource,
        target,
        openBrowser: options.browser !== false && !context.environment.ssh,
        readInput: readsInput(options, context, settings),
        timeoutMs: (options.timeout ?? DEFAULT_TIMEOUT_SECONDS) * 1000,
        issuer,
        authorizationEndpoint: options.authorizationEndpoint,
        again,
      },
      (code) => keepSession(code, scopes, resource, store, loginCommand(again), context, settings),
      reporter(context),
      context,
      settings,
    )
    await remember(issuer, settings, context)
    await announce(session, context, settings)
    await compareScopes(scopes, session.record.scope, context, settings)
  },
})

/**
 * The authorization server where it is not the service under its base URL: as given, else as the profile has it. That of
 * a profile belongs to the base URL of the profile, and says nothing about another service.
 */
function issuerOfLogin(options: LoginFlags, settings: Settings): string | undefined {
  const base = settings.baseUrl && issuerOf(parseBaseUrl(settings.baseUrl.value))
  const { base_url: remembered, issuer } = settings.profileConfig
  const sameService =
    settings.baseUrl?.source === 'profile' || remembered === undefined || remembered === base
  const found = options.issuer ?? (sameService ? issuer : undefined)
  return found === base ? undefined : found
}

/** What the profile does not remember before a login has succeeded has to be typed again. */
function howToSignInAgain(
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

/** Whoever gets other scopes than asked for would learn of it from a refused command, much later. */
async function compareScopes(
  asked: readonly string[],
  granted: string | null,
  context: Context,
  settings: Settings,
): Promise<void> {
  if (asked.length === 0 || granted === null) return
  const { missing, extra } = scopeDifference(asked, granted)
  if (missing.length > 0) await warn(`asked for but not granted: ${missing.join(' ')}`, context, settings)
  if (extra.length > 0) await note(`Granted without being asked for: ${extra.join(' ')}`, context, settings)
}

/** A terminal where questions are allowed, or a pipe where the browser's part is done by hand. */
function readsInput(options: LoginFlags, context: Context, settings: Settings): boolean {
  return (
    settings.interactive ||
    (options.browser === false && !context.stdin.isTTY && !settings.argv.includes('--no-input'))
  )
}

/** Asks a person for what is not configured; a script gets the error of whoever needs it. */
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
      validate: (text) => complaint(() => parseBaseUrl(text)),
    })
    baseUrl = { value, source: 'flag' }
  }
  if (clientId === undefined && !withApiKey) {
    const value = await context.prompts.input({
      message: 'OAuth client id:',
      validate: (text) => complaint(() => CONFIG_KEYS.client_id.parse(text)),
    })
    clientId = { value, source: 'flag' }
  }
  return { ...settings, baseUrl, clientId }
}

function complaint(check: () => unknown): true | string {
  try {
    check()
    return true
  } catch (error) {
    return error instanceof Error ? error.message : String(error)
  }
}

/** Exchanges the code and stores what comes back; from here on the old session is replaced. */
async function keepSession(
  code: ReceivedCode,
  scopes: readonly string[],
  resource: string | undefined,
  store: StoreKind,
  again: string,
  context: Context,
  settings: Settings,
): Promise<KeptOAuthSession> {
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

type KeptOAuthSession = Awaited<ReturnType<typeof replaceSession>>
type KeptSession = KeptOAuthSession | Awaited<ReturnType<typeof storeApiKey>>

async function keepApiKey(
  store: StoreKind,
  issuer: string | undefined,
  context: Context,
  settings: Settings,
): Promise<void> {
  const base = settings.baseUrl === undefined ? undefined : requireBaseUrl(settings)
  await proveStore(context, settings, store, 'api_key')
  const value = context.stdin.isTTY
    ? await askForKey(context, settings)
    : (await readKey(context.stdin.stream)).replace(/\r?\n$/, '')
  const session = await storeApiKey(context, settings, { value, base, store })
  await remember(issuer, settings, context)
  await announce(session, context, settings)
}

/** Reads what is piped in. @throws CliError exit 2 where it goes on beyond any key: the wrong file was piped in. */
async function readKey(stream: Readable): Promise<string> {
  const pieces: Buffer[] = []
  let length = 0
  for await (const piece of stream as AsyncIterable<Buffer | string>) {
    const bytes = Buffer.from(piece)
    length += bytes.length
    if (length > LONGEST_KEY) {
      throw usageError(`what was piped in is no API key: it is longer than ${LONGEST_KEY / 1024} KiB`)
    }
    pieces.push(bytes)
  }
  return Buffer.concat(pieces).toString('utf8')
}

async function askForKey(context: Context, settings: Settings): Promise<string> {
  if (!settings.interactive)
    throw usageError(
      'there is nobody to ask for the API key',
      'pipe it in: mailclaim login --with-api-key < key.txt',
    )
  return context.prompts.password({ message: 'API key:' })
}

/** The profile remembers where it signed in, so that the next command needs no flags. */
async function remember(issuer: string | undefined, settings: Settings, context: Context): Promise<void> {
  const profile = settings.profile.value
  const config = settings.config.profiles[profile]
  const fields = {
    ...(settings.baseUrl === undefined ? {} : { base_url: issuerOf(parseBaseUrl(settings.baseUrl.value)) }),
    ...(settings.clientId === undefined ? {} : { client_id: settings.clientId.value }),
  }
  const known = config?.base_url === fields.base_url && config?.client_id === fields.client_id
  if (known && config?.issuer === issuer) return
  await updateConfig(context, (changed) => {
    const { issuer: _replaced, ...others } = changed.profiles[profile] ?? {}
    changed.profiles[profile] = { ...others, ...fields, ...(issuer === undefined ? {} : { issuer }) }
  })
}

async function announce({ record, kept }: KeptSession, context: Context, settings: Settings): Promise<void> {
  for (const { location, why } of kept)
    await warn(`a secret of the session before is still in ${location.name}: ${why}`, context, settings)
  const where = record.store === 'keychain' ? "the system's keychain" : 'a file that only you can read'
  const what = record.kind === 'oauth' ? 'Signed in' : 'API key stored'
  await note(
    `${what}${record.issuer === null ? '' : ` at ${record.issuer}`} as profile ${record.profile}; the secret is in ${where}.`,
    context,
    settings,
  )
  if (context.environment.apiKey !== undefined) {
    await warn(
      'MAILCLAIM_API_KEY is set and goes before it: unset it to use what was just stored',
      context,
      settings,
    )
  }
  if (!settings.formatGiven || settings.format === 'table') return
  await writeObject(
    context,
    settings,
    {
      profile: record.profile,
      kind: record.kind,
      base_url: record.issuer,
      scope: record.kind === 'oauth' ? record.scope : null,
      store: record.store,
    },
    [{ field: 'profile' }, { field: 'kind' }, { field: 'base_url' }, { field: 'scope' }, { field: 'store' }],
  )
}

/** What is printed here is needed to go on, so it is printed with --quiet too. */
function reporter(context: Context): LoginReporter {
  const say = (text: string) => context.stderr.write(`${text}\n`)
  return {
    async ready(url, browser, canPaste) {
      await say(
        browser === 'opening'
          ? 'Opening the browser. If nothing opens, go to:'
          : 'Open this address in a browser:',
      )
      await say(`\n  ${sanitizeLine(url)}\n`)
      if (canPaste)
        await say('If the browser runs on another machine, paste the address that it ends at here.')
      await say('Waiting for your approval …')
    },
    async browserFailed() {
      await say('No browser could be opened; please open the address above yourself.')
    },
    async ignored(why, hint) {
      await say(`warning: an answer was ignored: ${sanitizeLine(why)}`)
      if (hint !== undefined) await say(`hint: ${sanitizeLine(hint)}`)
    },
  }
}
