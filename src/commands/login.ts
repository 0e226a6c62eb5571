import type { Readable } from 'node:stream'
import type { Context } from '../context.ts'
import { Exit, usageError } from '../errors.ts'
import { type LoginReporter, login, type ReceivedCode } from '../oauth/login.ts'
import { redirectTarget } from '../oauth/redirect-uri.ts'
import { splitScopes } from '../oauth/scopes.ts'
import { exchangeCode } from '../oauth/token-endpoint.ts'
import { userAgent } from '../service/client.ts'
import type { StoreKind } from '../session/record.ts'
import { chosenStore, proveStore, replaceSession, storeApiKey } from '../session/replace.ts'
import { issuerOf, parseBaseUrl, parsePort } from '../settings/addresses.ts'
import { CONFIG_KEYS, parseTimeout, updateConfig } from '../settings/config.ts'
import { requireBaseUrl, requireClientId, type Settings } from '../settings/settings.ts'
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
    { command: 'mailclaim login --with-api-key < key.txt', says: 'keep an API key instead of a session' },
  ],
  exits: [Exit.notConfigured, Exit.notSignedIn, Exit.refused, Exit.unavailable],
  async run({ options }, context, given) {
    const settings = await askForMissing(given, options.withApiKey === true, context)
    const store = chosenStore(context, settings, options.store)
    if (options.withApiKey) return keepApiKey(store, context, settings)
    const scopes = splitScopes(options.scope ?? settings.profileConfig.scope ?? [])
    const resource = options.resource ?? settings.profileConfig.resource
    if (options.resource !== undefined) CONFIG_KEYS.resource.parse(options.resource)
    const target = redirectTarget(options.redirectUri, options.port)
    // What would fail after the browser's part is tried before it.
    requireBaseUrl(settings)
    requireClientId(settings)
    await proveStore(context, settings, store)

    const session = await login(
      {
        scopes,
        resource,
        target,
        openBrowser: options.browser !== false && !context.environment.ssh,
        readInput: readsInput(options, context, settings),
        timeoutMs: (options.timeout ?? DEFAULT_TIMEOUT_SECONDS) * 1000,
        authorizationEndpoint: options.authorizationEndpoint,
        userAgent: userAgent(context),
      },
      (code) => keepSession(code, scopes, resource, store, context, settings),
      reporter(context),
      context,
      settings,
    )
    await remember(settings, context)
    await announce(session, context, settings)
  },
})

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
  context: Context,
  settings: Settings,
): Promise<KeptSession> {
  const requestedScope = scopes.length === 0 ? undefined : scopes.join(' ')
  const tokens = await exchangeCode(context, {
    base: code.base,
    clientId: code.clientId,
    settings,
    callback: code.parameters,
    redirectUri: code.redirectUri,
    codeVerifier: code.codeVerifier,
    requestedScope,
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

type KeptSession = Awaited<ReturnType<typeof replaceSession>> | Awaited<ReturnType<typeof storeApiKey>>

async function keepApiKey(store: StoreKind, context: Context, settings: Settings): Promise<void> {
  const base = settings.baseUrl === undefined ? undefined : requireBaseUrl(settings)
  await proveStore(context, settings, store, 'api_key')
  const value = context.stdin.isTTY
    ? await askForKey(context, settings)
    : (await readKey(context.stdin.stream)).replace(/\r?\n$/, '')
  const session = await storeApiKey(context, settings, { value, base, store })
  await remember(settings, context)
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
async function remember(settings: Settings, context: Context): Promise<void> {
  const profile = settings.profile.value
  const config = settings.config.profiles[profile]
  const fields = {
    ...(settings.baseUrl === undefined ? {} : { base_url: issuerOf(parseBaseUrl(settings.baseUrl.value)) }),
    ...(settings.clientId === undefined ? {} : { client_id: settings.clientId.value }),
  }
  if (config?.base_url === fields.base_url && config?.client_id === fields.client_id) return
  await updateConfig(context, (changed) => {
    changed.profiles[profile] = { ...changed.profiles[profile], ...fields }
  })
}

async function announce({ record, kept }: KeptSession, context: Context, settings: Settings): Promise<void> {
  for (const { place, why } of kept)
    await warn(`a secret of the session before is still in ${place.name}: ${why}`, context, settings)
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
    async ignored(why) {
      await say(`warning: an answer was ignored: ${sanitizeLine(why)}`)
    },
  }
}
