import { isDeepStrictEqual } from 'node:util'
import { isNoKeychainError } from '../credentials/keychain.ts'
import { CliError, usageError } from '../errors.ts'
import { type LoginOptions, type LoginReporter, loginInBrowser } from '../oauth/login.ts'
import { parseRedirectUri } from '../oauth/redirect.ts'
import { type CodeExchangeRequest, exchangeCode } from '../oauth/token-endpoint.ts'
import { createServiceClient } from '../service/client.ts'
import { verifyCredential } from '../service/lists.ts'
import { findApiKeyMistake } from '../session/credential.ts'
import type { Session } from '../session/session-file.ts'
import { prepareLocalSignIn, type SignInSteps } from '../session/sign-in.ts'
import { normalizeUrl } from '../settings/addresses.ts'
import { copyProfileWithChangedSetting, updateConfig } from '../settings/config.ts'
import {
  getBaseUrl,
  getClientId,
  getSetting,
  isJsonOrJsonl,
  type Settings,
  type UnparsedSettings,
} from '../settings/settings.ts'
import {
  formatSetting,
  type ProfileConfig,
  SETTING_KEYS,
  SETTINGS,
  STORE_DESCRIPTIONS,
  type StoreKind,
  settingName,
} from '../settings/table.ts'
import type { Column } from '../terminal/columns.ts'
import { createIo, type Io } from '../terminal/io.ts'

interface SignInOptions {
  readonly withApiKey: boolean
  /** Whether the browser may be opened; otherwise, the authorization URL is only printed. */
  readonly opensBrowser: boolean
  /** Milliseconds to wait for the user's approval in the browser. */
  readonly timeoutMs: number
}

/**
 * Scopes of OpenID Connect that give no access to the API. A service may leave them out of the granted scopes, so their absence
 * causes no warning.
 */
const OIDC_SCOPES: readonly string[] = ['openid', 'offline_access']
/** Maximum length of an API key in characters. Longer input is probably not a key. */
const MAX_KEY_LENGTH = 2000

/**
 * Signs in with the browser or an API key, replaces the profile's credential, and saves the settings of the sign-in in the profile.
 *
 * @throws CliError exit 2 for a browser sign-in that no user could approve, as in CI; exit 3 for a missing setting; as
 *   `prepareStore`, `loginInBrowser`, `exchangeCode` and `signInWithApiKey`
 */
export async function signInByBrowserOrKey(options: SignInOptions, outerIo: Io, columns: readonly Column[]) {
  const { withApiKey, timeoutMs } = options
  // With JSON output, open no browser: the process that reads the output gets the authorization URL, and shows it to its user.
  const opensBrowser = options.opensBrowser && !isJsonOrJsonl(outerIo.settings)
  const { environment, stdin, stderr } = outerIo
  const isUnattended = environment.ci || !(stdin.isTTY || stderr.isTTY)
  if (!withApiKey && (outerIo.settings.noInput || (opensBrowser && isUnattended))) {
    throw usageError(
      'a sign-in with the browser needs a terminal and a person (not --no-input or CI)',
      'set MAILCLAIM_API_KEY to a key or the token of a keeper (docs/fleet.md), or run: mailclaim login --with-api-key < key.txt',
    )
  }
  const io = createIo(outerIo, dropOtherServiceSettings(await promptForMissing(outerIo, withApiKey)))
  // Check settings and credential store before the user approves in the browser: an error afterward would waste the approval.
  getBaseUrl(io.settings)
  if (!withApiKey) getClientId(io.settings)
  const prepared = await prepareStore(io, withApiKey ? 'api_key' : 'session')
  try {
    const { result, closed } = withApiKey
      ? { result: await signInWithApiKey(prepared, io), closed: undefined }
      : await signInWithBrowser(opensBrowser, timeoutMs, prepared, io)
    await saveSettings(result.store, io)
    await reportResult(result, io, columns)
    await closed
  } finally {
    prepared.discard()
  }
}

const QUESTIONS = { base_url: 'Base URL of the service:', client_id: 'OAuth client id:' } as const

/**
 * Prompts for the missing base URL and, for a sign-in with the browser, client id. If prompts aren't allowed, returns the settings
 * unchanged.
 */
async function promptForMissing(io: Io, withApiKey: boolean): Promise<Settings> {
  const { settings, prompts } = io
  if (!settings.interactive) return settings
  const needed = withApiKey ? (['base_url'] as const) : (['base_url', 'client_id'] as const)
  const missing = needed.filter((key) => getSetting(key, settings) === undefined)
  if (missing.includes('base_url'))
    await io.say('To try it without an account, run this in another terminal: mailclaim sandbox')
  const chosen = { ...settings.chosen }
  for (const key of missing) {
    // Adds `https://` to a base URL that was typed as a host name, such as `api.example.com`, as browsers do.
    const addScheme = (text: string) =>
      key === 'base_url' && /^[\w-]+(\.[\w-]+)+(:\d+)?(\/|$)/.test(text) ? `https://${text}` : text
    const value = await prompts.input({
      message: QUESTIONS[key],
      validate: (text) => validationResult(() => SETTINGS[key].parse(addScheme(text), settingName(key))),
    })
    chosen[key] = { value: addScheme(value), source: 'flag' }
  }
  return { ...settings, chosen }
}

/**
 * Returns a validation result for the prompt library: true if `check` doesn't throw, else a text with the error's message and
 * hint.
 */
function validationResult(check: () => unknown): true | string {
  try {
    check()
    return true
  } catch (error) {
    if (error instanceof CliError && error.hint !== undefined) return `${error.message}; ${error.hint}`
    return error instanceof Error ? error.message : String(error)
  }
}

/**
 * Tests the credential store before the sign-in. If there is no keychain, `store` isn't set, and prompts are allowed, asks the user
 * whether a file may be used instead.
 *
 * @throws CliError as `prepareLocalSignIn` and `prepareEtcdSignIn`; exit 2 for an API key with the store `etcd`
 */
async function prepareStore(io: Io, kind: Session['kind']): Promise<SignInSteps> {
  const { settings, prompts } = io
  const store = getSetting('store', settings)
  if (store === 'etcd') {
    if (kind === 'api_key') throw usageError("an API key isn't kept in etcd", 'add --store file')
    const { prepareEtcdSignIn } = await import('../session/shared/sign-in.ts')
    return prepareEtcdSignIn(io)
  }
  try {
    return await prepareLocalSignIn(io, store, kind)
  } catch (error) {
    const isStoreSet = settings.chosen.store?.source !== 'default'
    if (!settings.interactive || isStoreSet || !isNoKeychainError(error)) throw error
    await io.warn((error as CliError).message)
    const message = 'Keep the secret in a file that only you can read instead?'
    if (!(await prompts.confirm({ message, default: false }))) throw error
    return prepareLocalSignIn(io, 'file', kind)
  }
}

/**
 * Signs in with the browser (authorization code grant, RFC 6749 section 4.1), and stores the session. @param timeoutMs how long to
 * wait for the user's approval
 */
async function signInWithBrowser(opensBrowser: boolean, timeoutMs: number, prepared: SignInSteps, io: Io) {
  const { settings, environment } = io
  const scopes = getSetting('scope', settings) ?? []
  const resource = getSetting('resource', settings)
  const exchange = async (code: CodeExchangeRequest) => {
    prepared.reserve()
    const { access, refreshToken } = await exchangeCode(io, code)
    return prepared.complete({
      kind: 'session',
      service: normalizeUrl(code.base),
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
    target: parseRedirectUri(getSetting('redirect_uri', settings)),
    // Over SSH, open a browser only if BROWSER is set: remote editors set it to a helper that opens the browser on the user's
    // machine.
    openBrowser: opensBrowser && (!environment.ssh || environment.browser !== undefined),
    // Accept a pasted redirect URL on stdin: from a terminal with prompts allowed, or from a pipe with `--no-browser` or JSON output.
    readInput: settings.interactive || (!opensBrowser && !io.stdin.isTTY),
    timeoutMs,
    issuer: getSetting('issuer', settings),
    authorizationEndpoint: getSetting('authorization_endpoint', settings),
  }
  return loginInBrowser(chosen, exchange, createReporter(chosen, io), io)
}

/**
 * Creates the reporter that tells the user on stderr how to approve the sign-in, even with `--quiet`. With JSON output, the
 * reporter writes the URL as an event to stdout, and only warnings to stderr, unless stderr is a terminal.
 */
function createReporter({ openBrowser, readInput }: LoginOptions, io: Io): LoginReporter {
  const { settings, stderr } = io
  const isForProgram = isJsonOrJsonl(settings)
  const output = createIo(io, { ...settings, quiet: isForProgram && !stderr.isTTY, silent: false })
  return {
    async ready(url) {
      if (isForProgram) await output.writeEvent('authorization', { url })
      await output.say(
        openBrowser ? 'Opening the browser. If nothing opens, go to:' : 'Open this address in a browser:',
      )
      await output.say('', `  ${url}`, '')
      if (readInput)
        await output.say('If the browser runs on another machine, paste the address of its last page here.')
      await output.say('Waiting for your approval …')
    },
    browserFailed: () => output.say('No browser could be opened. Open the address above yourself.'),
    ignored: (why) => output.warn(`ignored: ${why}`),
  }
}

/**
 * Reads an API key, tries it with a request, and stores it.
 *
 * @throws CliError exit 2 for a missing or malformed key; as `verifyCredential`, but status 403 causes only a warning; as
 *   `SignInSteps.complete`
 */
async function signInWithApiKey(prepared: SignInSteps, io: Io): Promise<Session> {
  const value = await readApiKey(io)
  const mistake = value.length > MAX_KEY_LENGTH ? 'it is too long' : findApiKeyMistake(value)
  if (mistake !== undefined) throw usageError(`that is not an API key: ${mistake}`)
  const credential = { kind: 'api_key', value, description: 'the API key' } as const
  const authorizer = { credential: async () => credential, replaceRefused: async () => undefined }
  try {
    await verifyCredential(createServiceClient(io, authorizer))
  } catch (error) {
    // Accept a 403 with a warning: the service knows the key, but doesn't let it list grants, which is the test request.
    if (!(error instanceof CliError) || error.status !== 403) throw error
    await io.warn(`the service knows the API key, but: ${error.message}`)
  }
  return prepared.complete({
    kind: 'api_key',
    service: normalizeUrl(getBaseUrl(io.settings)),
    client: null,
    scope: null,
    resource: null,
    secret: value,
  })
}

/**
 * Reads an API key from standard input, or on a terminal from a hidden prompt.
 *
 * @throws CliError exit 2 if piped input is empty, or if standard input is a terminal but prompts aren't allowed
 */
async function readApiKey({ stdin, prompts, settings }: Io): Promise<string> {
  if (stdin.isTTY) {
    if (settings.interactive) return (await prompts.password({ message: 'API key:' })).trim()
    throw usageError('the API key is missing', 'pipe it in: mailclaim login --with-api-key < key.txt')
  }
  let text = ''
  for await (const piece of stdin.stream) {
    text += String(piece)
    if (text.length > MAX_KEY_LENGTH) break
  }
  const key = text.trim()
  if (key === '') throw usageError('there is no API key on standard input: it is empty')
  return key
}

/**
 * Returns the settings without the profile's issuer and authorization endpoint if the profile has them for another base URL: a
 * sign-in at a new service must not go to the authorization server of the old one.
 */
function dropOtherServiceSettings(settings: Settings): Settings {
  const base = getSetting('base_url', settings)
  if (base === undefined) return settings
  const kept = copyProfileWithChangedSetting(settings.profileConfig, 'base_url', base)
  const chosen = Object.entries(settings.chosen).filter(
    ([key, found]) => found?.source !== 'profile' || Object.hasOwn(kept, key),
  )
  return { ...settings, chosen: Object.fromEntries(chosen) as UnparsedSettings }
}

/**
 * Saves base URL, client id, issuer and store in the profile, and for etcd all `store_…` settings, so that later commands need no
 * options.
 */
async function saveSettings(store: StoreKind, io: Io): Promise<void> {
  const { settings } = io
  const { chosen, profileConfig } = settings
  const keys = SETTING_KEYS.filter(
    (key) => /^(base_url|client_id|issuer)$/.test(key) || (store === 'etcd' && /^store_/.test(key)),
  )
  const usedSettings: ProfileConfig = {}
  for (const key of keys) if (chosen[key]) usedSettings[key] = formatSetting(getSetting(key, settings))
  if (store !== (profileConfig.store ?? SETTINGS.store.default)) usedSettings.store = store
  const updateProfile = (profile: ProfileConfig | undefined): ProfileConfig => ({
    ...copyProfileWithChangedSetting(profile, 'base_url', usedSettings.base_url),
    ...usedSettings,
  })
  if (isDeepStrictEqual(updateProfile(profileConfig), profileConfig)) return
  try {
    await updateConfig(io, ({ profiles }) => {
      profiles[settings.profile.value] = updateProfile(profiles[settings.profile.value])
    })
  } catch (error) {
    if (!(error instanceof CliError)) throw error
    // Only warn: the credential is already stored, and later commands can use it with the same options or variables.
    await io.warn(`what this login was given could not be saved for later commands: ${error.message}`)
  }
}

/**
 * Tells the user on stderr where the secret is stored, with warnings if MAILCLAIM_API_KEY overrides it or a requested scope
 * wasn't granted; prints the result with `Io.writeOutcome`.
 */
async function reportResult(session: Session, io: Io, columns: readonly Column[]): Promise<void> {
  const { kind, profile, service, scope, store } = session
  const { settings } = io
  const what = kind === 'session' ? `Signed in at ${service} as` : `API key for ${service} stored in`
  await io.say(`${what} profile ${profile}; the secret is in ${STORE_DESCRIPTIONS[store]}.`)
  if (io.environment.apiKey !== undefined)
    await io.warn('MAILCLAIM_API_KEY is set and overrides it: unset it to use what was just stored')
  const requested = getSetting('scope', settings) ?? []
  if (kind === 'session' && requested.length > 0 && scope !== null) {
    // Accept spaces and commas as separators: some services separate scopes with commas, but a comma can also be part of a scope
    // (RFC 6749 section 3.3).
    const granted = [...scope.split(/\s+/), ...scope.split(/[\s,]+/)]
    const missing = requested.filter((asked) => !granted.includes(asked) && !OIDC_SCOPES.includes(asked))
    if (missing.length > 0) await io.warn(`requested but not granted: ${missing.join(' ')}`)
  }
  // With `--json`, print the result of a browser sign-in on one line, like the event before it with the URL to open, so that a
  // script can read lines.
  const format = kind === 'session' && settings.format === 'json' ? 'jsonl' : settings.format
  const shownKind = kind === 'session' ? 'oauth' : 'api_key'
  const outcome = { profile, kind: shownKind, base_url: service, scope, store }
  await createIo(io, { ...settings, format }).writeOutcome(outcome, columns)
}
