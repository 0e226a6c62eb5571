import { isDeepStrictEqual } from 'node:util'
import { hasNoKeychain } from '../credentials/keychain.ts'
import { CliError, usageError } from '../errors.ts'
import { type LoginOptions, type LoginReporter, login } from '../oauth/login.ts'
import { parseRedirectUri } from '../oauth/redirect.ts'
import { type CodeExchange, exchangeCode } from '../oauth/token-endpoint.ts'
import { createServiceClient } from '../service/client.ts'
import { tryCredential } from '../service/lists.ts'
import { mistakeInKey } from '../session/credential.ts'
import type { Session } from '../session/session-file.ts'
import { type PreparedSignIn, prepareSignIn } from '../session/sign-in.ts'
import { issuerOf } from '../settings/addresses.ts'
import { updateConfig, withSetting } from '../settings/config.ts'
import {
  type ChosenSettings,
  isProgramFormat,
  requireBaseUrl,
  requireClientId,
  type Settings,
  settingValue,
} from '../settings/settings.ts'
import {
  type ProfileConfig,
  SETTING_KEYS,
  SETTINGS,
  STORES,
  type StoreKind,
  settingName,
  settingText,
} from '../settings/table.ts'
import type { Column } from '../terminal/columns.ts'
import { createIo, type Io } from '../terminal/io.ts'

/** How to sign in, besides what the settings say. */
interface SignIn {
  readonly withApiKey: boolean
  /** Whether to open the browser, rather than only print the address. */
  readonly opensBrowser: boolean
  /** How long to wait for the browser. */
  readonly timeoutMs: number
}

/** What OpenID Connect asks for with a scope: an ID token and a refresh token, not access. */
const NOT_OF_ACCESS: readonly string[] = ['openid', 'offline_access']
/** Bytes; longer than any key: a file that was piped in by mistake. */
const LONGEST_KEY = 2000

/**
 * Signs in, with the browser or an API key, and remembers where. The session of the profile is replaced.
 *
 * @throws CliError exit 2 for a bad option or without a person, exit 3 for what is not configured, or as `prepareSignIn`, `login`
 *   and `exchangeCode`.
 */
export async function signIn(how: SignIn, given: Io, columns: readonly Column[]): Promise<void> {
  const { withApiKey } = how
  // A program that asks for JSON decides itself where the address is opened.
  const opens = how.opensBrowser && !isProgramFormat(given.settings)
  const { environment, stdin, stderr } = given
  const isUnattended = environment.ci || !(stdin.isTTY || stderr.isTTY)
  if (!withApiKey && (given.settings.noInput || (opens && isUnattended))) {
    throw usageError(
      'a sign-in with the browser needs a person, whom --no-input, CI or a missing terminal rules out',
      'set MAILCLAIM_API_KEY to a key or the token of a keeper (docs/fleet.md), or run: mailclaim login --with-api-key < key.txt',
    )
  }
  const io = createIo(given, ofItsService(await askForMissing(given, withApiKey)))
  // What could fail after the person's part is tried before it.
  requireBaseUrl(io.settings)
  if (!withApiKey) requireClientId(io.settings)
  const prepared = await prepare(io, withApiKey ? 'api_key' : 'session')
  try {
    const { result, closed } = withApiKey
      ? { result: await signInWithApiKey(prepared, io), closed: undefined }
      : await signInWithBrowser(opens, how.timeoutMs, prepared, io)
    await remember(result.store, io)
    await announce(result, io, columns)
    await closed
  } finally {
    prepared.discard()
  }
}

const QUESTIONS = { base_url: 'Base URL of the service:', client_id: 'OAuth client id:' } as const

/** Asks a person for what is not configured; a script gets an error later. */
async function askForMissing(io: Io, withApiKey: boolean): Promise<Settings> {
  const { settings, prompts } = io
  if (!settings.interactive) return settings
  const needed = withApiKey ? (['base_url'] as const) : (['base_url', 'client_id'] as const)
  // Whoever answers questions must not learn afterward that what was given can't be used.
  const missing = needed.filter((key) => settingValue(key, settings) === undefined)
  if (missing.includes('base_url'))
    await io.say('To try it without an account, run this in another terminal: mailclaim sandbox')
  const chosen = { ...settings.chosen }
  for (const key of missing) {
    // A host without a scheme, as browsers take it.
    const complete = (text: string) =>
      key === 'base_url' && /^[\w-]+(\.[\w-]+)+(\/|$)/.test(text) ? `https://${text}` : text
    const value = await prompts.input({
      message: QUESTIONS[key],
      validate: (text) => validate(() => SETTINGS[key].parse(complete(text), settingName(key))),
    })
    chosen[key] = { value: complete(value), source: 'flag' }
  }
  return { ...settings, chosen }
}

function validate(check: () => unknown): true | string {
  try {
    check()
    return true
  } catch (error) {
    if (error instanceof CliError && error.hint !== undefined) return `${error.message}; ${error.hint}`
    return error instanceof Error ? error.message : String(error)
  }
}

/** Proves the store. Where there is no keychain and nobody has chosen one, a person may choose a file instead. */
async function prepare(io: Io, kind: Session['kind']): Promise<PreparedSignIn> {
  const { settings, prompts } = io
  const store = settingValue('store', settings)
  if (store === 'etcd') {
    if (kind === 'api_key') throw usageError("an API key isn't kept in etcd", 'add --store file')
    const { prepareSharedSignIn } = await import('../session/shared/sign-in.ts')
    return prepareSharedSignIn(io)
  }
  try {
    return await prepareSignIn(io, store, kind)
  } catch (error) {
    const isChosen = settings.chosen.store?.source !== 'default'
    if (!settings.interactive || isChosen || !hasNoKeychain(error)) throw error
    await io.warn((error as CliError).message)
    const message = 'Keep the secret in a file that only you can read instead?'
    if (!(await prompts.confirm({ message, default: false }))) throw error
    return prepareSignIn(io, 'file', kind)
  }
}

/** Lets a person approve in the browser, and stores the session. */
async function signInWithBrowser(opens: boolean, timeoutMs: number, prepared: PreparedSignIn, io: Io) {
  const { settings, environment } = io
  const scopes = settingValue('scope', settings) ?? []
  const resource = settingValue('resource', settings)
  const exchange = async (code: CodeExchange) => {
    prepared.reserve()
    const { access, refreshToken } = await exchangeCode(io, code)
    return prepared.complete({
      kind: 'session',
      service: issuerOf(code.base),
      client: code.clientId,
      scope: access.scope,
      resource: resource ?? null,
      secret: refreshToken,
      access,
    })
  }
  const chosen: LoginOptions = {
    scopes,
    resource,
    target: parseRedirectUri(settingValue('redirect_uri', settings)),
    // Remote editors set BROWSER to a helper that opens the browser of the other machine.
    openBrowser: opens && (!environment.ssh || environment.browser !== undefined),
    // On a terminal that allows questions, or in a pipe where no browser is opened.
    readInput: settings.interactive || (!opens && !io.stdin.isTTY),
    timeoutMs,
    issuer: settingValue('issuer', settings),
    authorizationEndpoint: settingValue('authorization_endpoint', settings),
  }
  return login(chosen, exchange, reporter(chosen, io), io)
}

/** Everything here is needed to continue, so --quiet doesn't silence it. A program gets the address as an event instead. */
function reporter({ openBrowser, readInput }: LoginOptions, io: Io): LoginReporter {
  const { settings, stderr } = io
  const isForProgram = isProgramFormat(settings)
  const always = createIo(io, { ...settings, quiet: isForProgram && !stderr.isTTY, silent: false })
  return {
    async ready(url) {
      if (isForProgram) await always.writeEvent('authorization', { url })
      await always.say(
        openBrowser ? 'Opening the browser. If nothing opens, go to:' : 'Open this address in a browser:',
      )
      await always.say('', `  ${url}`, '')
      if (readInput)
        await always.say('If the browser runs on another machine, paste the address of its last page here.')
      await always.say('Waiting for your approval …')
    },
    browserFailed: () => always.say('No browser could be opened. Open the address above yourself.'),
    ignored: (why) => always.warn(`ignored: ${why}`),
  }
}

/** Reads an API key, tries it with the service, and stores it. */
async function signInWithApiKey(prepared: PreparedSignIn, io: Io): Promise<Session> {
  const value = await readApiKey(io)
  const mistake = value.length > LONGEST_KEY ? 'it is too long' : mistakeInKey(value)
  if (mistake !== undefined) throw usageError(`that is not an API key: ${mistake}`)
  const credential = { kind: 'api_key', value, description: 'the API key' } as const
  const authorizer = { credential: async () => credential, replaceRefused: async () => undefined }
  try {
    await tryCredential(createServiceClient(io, authorizer))
  } catch (error) {
    // A service that knows the key but forbids the request has accepted it.
    if (!(error instanceof CliError) || error.status !== 403) throw error
    await io.warn(`the service knows the API key, but: ${error.message}`)
  }
  return prepared.complete({
    kind: 'api_key',
    service: issuerOf(requireBaseUrl(io.settings)),
    client: null,
    scope: null,
    resource: null,
    secret: value,
  })
}

/** Reads an API key from standard input, or asks for it on a terminal. @throws CliError exit 2. */
async function readApiKey({ stdin, prompts, settings }: Io): Promise<string> {
  if (stdin.isTTY) {
    if (settings.interactive) return (await prompts.password({ message: 'API key:' })).trim()
    throw usageError('the API key is missing', 'pipe it in: mailclaim login --with-api-key < key.txt')
  }
  let text = ''
  for await (const piece of stdin.stream) {
    text += String(piece)
    if (text.length > LONGEST_KEY) break
  }
  const key = text.trim()
  if (key === '') throw usageError('there is no API key on standard input: it is empty')
  return key
}

/** The settings without those of the profile that belong to another base URL. */
function ofItsService(settings: Settings): Settings {
  const base = settingValue('base_url', settings)
  if (base === undefined) return settings
  const kept = withSetting(settings.profileConfig, 'base_url', base)
  const chosen = Object.entries(settings.chosen).filter(
    ([key, found]) => found?.source !== 'profile' || Object.hasOwn(kept, key),
  )
  return { ...settings, chosen: Object.fromEntries(chosen) as ChosenSettings }
}

/** Saves where the profile signed in and what it chose, so that the next command needs no options. */
async function remember(store: StoreKind, io: Io): Promise<void> {
  const { settings } = io
  const { chosen, profileConfig } = settings
  const keys = SETTING_KEYS.filter(
    (key) => /^(base_url|client_id|issuer)$/.test(key) || (store === 'etcd' && /^store_/.test(key)),
  )
  const used: ProfileConfig = {
    ...Object.fromEntries(
      keys.flatMap((key) => (chosen[key] ? [[key, settingText(settingValue(key, settings))]] : [])),
    ),
    ...(store !== (profileConfig.store ?? SETTINGS.store.default) && { store }),
  }
  const updated = (profile: ProfileConfig | undefined): ProfileConfig => ({
    ...withSetting(profile, 'base_url', used.base_url),
    ...used,
  })
  if (isDeepStrictEqual(updated(profileConfig), profileConfig)) return
  try {
    await updateConfig(io, ({ profiles }) => {
      const { value: name } = settings.profile
      profiles[name] = updated(profiles[name])
    })
  } catch (error) {
    // The sign-in is stored and works without it.
    if (!(error instanceof CliError)) throw error
    await io.warn(`what this login was given could not be saved for later commands: ${error.message}`)
  }
}

/** Says what was stored and where, and prints the result. */
async function announce(session: Session, io: Io, columns: readonly Column[]): Promise<void> {
  const { kind, profile, service, scope, store } = session
  const { settings } = io
  const what = kind === 'session' ? 'Signed in' : 'API key stored'
  await io.say(`${what} at ${service} as profile ${profile}; the secret is in ${STORES[store]}.`)
  if (io.environment.apiKey !== undefined)
    await io.warn('MAILCLAIM_API_KEY is set and overrides it: unset it to use what was just stored')
  const requested = settingValue('scope', settings) ?? []
  if (kind === 'session' && requested.length > 0 && scope !== null) {
    // Otherwise a command would be refused, much later.
    // Some services put commas between scopes; in others a comma is a part of one.
    const granted = [...scope.split(/\s+/), ...scope.split(/[\s,]+/)]
    const missing = requested.filter((asked) => !granted.includes(asked) && !NOT_OF_ACCESS.includes(asked))
    if (missing.length > 0) await io.warn(`requested but not granted: ${missing.join(' ')}`)
  }
  // The address came as a line of JSON, so the result is one too, on a terminal as elsewhere.
  const format = kind === 'session' && settings.format === 'json' ? 'jsonl' : settings.format
  const outcome = {
    profile,
    kind: kind === 'session' ? 'oauth' : 'api_key',
    base_url: service,
    scope,
    store,
  }
  await createIo(io, { ...settings, format }).writeOutcome(outcome, columns)
}
