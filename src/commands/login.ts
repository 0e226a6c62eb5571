import { text as readAll } from 'node:stream/consumers'
import type { Context } from '../context.ts'
import { CliError, Exit, usageError } from '../errors.ts'
import { type LoginReporter, login, type ReceivedCode } from '../oauth/login.ts'
import { redirectTarget } from '../oauth/redirect-uri.ts'
import { exchangeCode } from '../oauth/token-endpoint.ts'
import { userAgent } from '../service/client.ts'
import { parsePort } from '../settings/addresses.ts'
import { CONFIG_KEYS, parseTimeout, updateConfig } from '../settings/config.ts'
import { requireBaseUrl, requireClientId, type Settings } from '../settings/settings.ts'
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

export const command = defineCommand<LoginFlags>({
  description: `Signs you in with the browser (OAuth 2.0 authorization code with PKCE) and keeps the session.
The refresh token goes to the system's keychain, or with --store file to a file that only you can read. The address
is always printed as well; where the browser runs on another machine, paste the address that it ends at.`,
  options: [
    { flags: '--scope <scope>', says: 'ask for this scope; repeatable', repeatable: true },
    { flags: '--resource <uri>', says: 'ask for access to this resource (RFC 8707)' },
    { flags: '--port <port>', says: 'listen on this port instead of a free one', parse: (text) => parsePort(text, '--port') },
    { flags: '--redirect-uri <uri>', says: 'the redirect URI as it is registered' },
    { flags: '--no-browser', says: 'only print the address' },
    { flags: '--timeout <seconds>', says: `how long to wait for the browser (${DEFAULT_TIMEOUT_SECONDS})`, parse: (text) => parseTimeout(text, '--timeout') },
    { flags: '--store <store>', says: 'where the secret is kept: keychain or file', choices: ['keychain', 'file'] },
    { flags: '--authorization-endpoint <url>', says: 'the consent page, where the service does not publish it' },
    { flags: '--with-api-key', says: 'read an API key from stdin, or ask for it, instead' },
  ],
  examples: [
    { command: 'mailclaim login', says: 'sign in with the browser' },
    { command: 'mailclaim login --no-browser', says: 'over SSH: open the address elsewhere, paste where it ends' },
    { command: 'mailclaim login --store file', says: 'on a machine without a keychain' },
    { command: 'mailclaim login --with-api-key < key.txt', says: 'keep an API key instead of a session' },
  ],
  exits: [Exit.notConfigured, Exit.notSignedIn, Exit.refused, Exit.unavailable],
  async run({ options }, context, given) {
    const settings = await askForMissing(given, options.withApiKey === true, context)
    const store = storeOf(options.store, context, settings)
    if (options.withApiKey) return keepApiKey(store, context, settings)
    const scopes = (options.scope ?? settings.profileConfig.scope ?? []).flatMap((scope) => scope.split(/\s+/)).filter((scope) => scope !== '')
    const resource = options.resource ?? settings.profileConfig.resource
    if (options.resource !== undefined) CONFIG_KEYS.resource.parse(options.resource)
    // What would fail after the browser's part is tried before it.
    requireBaseUrl(settings)
    requireClientId(settings)
    await requireStore(store, context, settings)

    const openBrowser = options.browser !== false && !context.environment.ssh
    const session = await login(
      {
        scopes,
        resource,
        target: redirectTarget(options.redirectUri, options.port),
        openBrowser,
        readInput: settings.interactive || (options.browser === false && given.inputAllowed && !context.stdin.isTTY),
        timeoutMs: (options.timeout ?? DEFAULT_TIMEOUT_SECONDS) * 1000,
        authorizationEndpoint: options.authorizationEndpoint,
        userAgent: userAgent(context),
      },
      (code) => storeSession(code, scopes, resource, store, context, settings),
      reporter(context, settings),
      context,
      settings,
    )
    await remember(store, context, settings)
    await announce(session, context, settings)
  },
})
