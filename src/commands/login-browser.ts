import type { Context } from '../context.ts'
import { type CliError, usageError } from '../errors.ts'
import { type LoginReporter, login, type ReceivedCode } from '../oauth/login.ts'
import { redirectTarget } from '../oauth/redirect.ts'
import { exchangeCode, scopeDifference } from '../oauth/token-endpoint.ts'
import { type NewSession, replaceSession } from '../session/replace.ts'
import type { SharedVault } from '../session/shared/vault.ts'
import { type LoginCommandOptions, loginCommand } from '../settings/login-command.ts'
import {
  isProgramFormat,
  requireBaseUrl,
  requireClientId,
  type Settings,
  settingValue,
} from '../settings/settings.ts'
import type { StoreKind } from '../settings/table.ts'
import { withLinks } from '../terminal/hyperlinks.ts'
import { createIo } from '../terminal/io.ts'
import { hint, note, warn } from '../terminal/notices.ts'
import { writeJsonLine } from '../terminal/output.ts'
import { sanitizeLine } from '../terminal/sanitize.ts'
import { usableStore } from './usable-store.ts'

/** The options of a sign-in with the browser. */
export interface BrowserFlags {
  readonly redirectUri?: string
  readonly browser?: boolean
  readonly timeout?: number
  readonly authorizationEndpoint?: string
}

export const DEFAULT_TIMEOUT_SECONDS = 300

type Session = Awaited<ReturnType<typeof replaceSession>>

/**
 * Lets a person approve in the browser, and stores the session, which replaces the profile's old one.
 *
 * @param chosenStore where the refresh token belongs, if that works here
 * @param issuer the authorization server, if it is not the service itself
 * @throws CliError exit 2 for a bad option, exit 3 for what is not configured, or as `usableStore`, `login`, `exchangeCode`
 *   and `replaceSession`.
 */
export async function signInWithBrowser(
  options: BrowserFlags,
  chosenStore: StoreKind,
  issuer: string | undefined,
  context: Context,
  settings: Settings,
): Promise<Session> {
  const scopes = settingValue('scope', settings) ?? []
  const resource = settingValue('resource', settings)
  const target = redirectTarget(options.redirectUri)
  // What could fail after the browser's part is tried before it.
  requireBaseUrl(settings)
  requireClientId(settings)
  const store =
    chosenStore === 'etcd'
      ? await proveVault(context, settings)
      : await usableStore(chosenStore, 'refresh_token', context, settings)
  const again = loginOptions(typeof store === 'string' ? store : 'etcd', issuer, settings)

  return login(
    {
      scopes,
      resource,
      target,
      openBrowser: opensBrowser(options, settings) && !context.environment.ssh,
      readInput: canPaste(options, context, settings),
      timeoutMs: (options.timeout ?? DEFAULT_TIMEOUT_SECONDS) * 1000,
      issuer,
      authorizationEndpoint: options.authorizationEndpoint,
    },
    // A hint of the exchange may add --with-api-key, which most options conflict with.
    (code) => storeSession(code, scopes, resource, store, loginCommand(again), context, settings),
    reporter(context, settings),
    createIo(context, settings),
  )
}

async function proveVault(context: Context, settings: Settings): Promise<SharedVault> {
  const { proveShared } = await import('../session/shared/replace.ts')
  return proveShared(context, settings)
}

/** Exchanges the code and stores the tokens; this replaces the old session. */
async function storeSession(
  code: ReceivedCode,
  scopes: readonly string[],
  resource: string | undefined,
  store: NewSession['store'],
  again: string,
  context: Context,
  settings: Settings,
): Promise<Session> {
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

/** A program that asks for JSON decides itself where the address is opened. */
function opensBrowser(options: BrowserFlags, settings: Settings): boolean {
  return options.browser !== false && !isProgramFormat(settings)
}

/** Whether the redirect can be pasted: on a terminal that allows questions, or in a pipe where no browser is opened. */
function canPaste(options: BrowserFlags, context: Context, settings: Settings): boolean {
  return settings.interactive || (!opensBrowser(options, settings) && !context.stdin.isTTY)
}

/** Everything here is needed to continue, so --quiet doesn't silence it. A program gets the address as an event instead. */
function reporter(context: Context, settings: Settings): LoginReporter {
  const { stderr, environment } = context
  const always = {
    ...settings,
    quiet: false,
  }
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
      await note(`\n  ${sanitizeLine(url)}\n`, { stderr: withLinks(stderr, [url], environment) }, always)
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

/** Reports scopes that differ from those requested: otherwise a command would be refused, much later. */
export async function compareScopes(
  granted: string | null,
  context: Pick<Context, 'stderr' | 'environment'>,
  settings: Settings,
): Promise<void> {
  const requested = settingValue('scope', settings) ?? []
  if (requested.length === 0 || granted === null) return
  const { missing, extra } = scopeDifference(requested, granted)
  if (missing.length > 0) await warn(`requested but not granted: ${missing.join(' ')}`, context, settings)
  if (extra.length > 0) await note(`Granted without being requested: ${extra.join(' ')}`, context, settings)
}

/** Why a sign-in with the browser doesn't start: nobody may be asked to approve. */
export function needsPerson(settings: Settings): CliError {
  const again = loginCommand(loginOptions(settingValue('store', settings), undefined, settings))
  return usageError(
    'a sign-in with the browser needs a person, which --no-input or MAILCLAIM_NO_INPUT rules out',
    `pipe in an API key: ${again} --with-api-key < key.txt, or set MAILCLAIM_API_KEY; if a person can approve, allow input`,
  )
}
