import { parseSeconds } from '../settings/parse-value.ts'
import { plainColumns } from '../terminal/columns.ts'
import { defineCommand } from './definition.ts'

const COLUMNS = plainColumns('profile', 'kind', 'base_url', 'scope', 'store')

/** Default seconds to wait for the user's approval on the consent page. */
const DEFAULT_TIMEOUT_SECONDS = 300

export const command = defineCommand({
  description: 'Signs you in with the browser (OAuth 2.0 with PKCE) and stores the session.',
  options: [
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
  ],
  events: {
    authorization: 'the address (url) that a person has to open and approve; the command waits for that',
  },
  examples: {
    'mailclaim login --no-browser': 'over SSH: open the address elsewhere, then paste that of the last page',
    'mailclaim login --store file': 'on a machine without a keychain',
    'mailclaim login --with-api-key < key.txt': 'store an API key instead of a session',
  },
  output: { columns: COLUMNS },
  errors: ['login', 'config_busy'],
  account: 'configured',
  async run({ options }, io) {
    const { withApiKey = false, browser = true, timeout = DEFAULT_TIMEOUT_SECONDS } = options
    const { signInByBrowserOrKey } = await import('./login-run.ts')
    await signInByBrowserOrKey({ withApiKey, opensBrowser: browser, timeoutMs: timeout * 1000 }, io, COLUMNS)
  },
})
