import { isDeepStrictEqual } from 'node:util'
import type { Context } from '../context.ts'
import { CliError } from '../errors.ts'
import { issuerOf, parseBaseUrl } from '../settings/addresses.ts'
import { updateConfig } from '../settings/config.ts'
import { parseSeconds } from '../settings/parse-value.ts'
import { type Settings, settingValue } from '../settings/settings.ts'
import { storeToRemember } from '../settings/shared-store.ts'
import type { Column } from '../terminal/columns.ts'
import { note, warn } from '../terminal/notices.ts'
import { writeOutcome } from '../terminal/output.ts'
import { defineCommand, ownOutput, SERVICE_EXITS } from './definition.ts'
import { signInWithApiKey } from './login-api-key.ts'
import {
  type BrowserFlags,
  compareScopes,
  DEFAULT_TIMEOUT_SECONDS,
  needsPerson,
  signInWithBrowser,
} from './login-browser.ts'
import { askForMissing } from './login-questions.ts'
import { settingOptions } from './program.ts'

interface LoginFlags extends BrowserFlags {
  readonly withApiKey?: true
  readonly check?: boolean
}

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
    { flags: '--no-browser', description: 'only print the address' },
    {
      flags: '--timeout <seconds>',
      description: 'how long to wait for the browser',
      default: String(DEFAULT_TIMEOUT_SECONDS),
      parse: (text, name) => parseSeconds(text, name),
    },
    {
      flags: '--with-api-key',
      description: 'read an API key from stdin, or ask for it, instead',
      conflicts: [
        '--scope',
        '--resource',
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
  output: ownOutput(COLUMNS, {}),
  exits: SERVICE_EXITS,
  account: 'configured',
  async run({ options }, io) {
    const [context, given] = [io, io.settings]
    if (given.noInput && !options.withApiKey) throw needsPerson(given)
    const settings = await askForMissing(given, options.withApiKey === true, context)
    const store = settingValue('store', settings)
    const issuer = issuerOfLogin(settings)
    const session = options.withApiKey
      ? await signInWithApiKey(store, options.check !== false, context, settings)
      : await signInWithBrowser(options, store, issuer, context, settings)
    await remember(issuer, settings, context)
    await announce(session, context, settings)
    if (session.record.kind === 'oauth') await compareScopes(session.record.scope, context, settings)
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
  try {
    await updateConfig(context, (changed) => {
      const { issuer: _replaced, ...others } = changed.profiles[profile] ?? {}
      changed.profiles[profile] = { ...others, ...fields, ...(issuer === undefined ? {} : { issuer }) }
    })
  } catch (error) {
    // The sign-in is stored and works without it.
    if (!(error instanceof CliError)) throw error
    await warn(
      `where you signed in could not be saved, so later commands need --base-url or MAILCLAIM_BASE_URL: ${error.message}`,
      context,
      settings,
    )
  }
}

/** Says what was stored and where, and prints the result. */
async function announce(
  { record, kept }: Awaited<ReturnType<typeof signInWithApiKey | typeof signInWithBrowser>>,
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
