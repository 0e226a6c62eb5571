import { CliError, Exit } from '../errors.ts'
import { issuerOf, parseBaseUrl } from '../settings/addresses.ts'
import { loginCommand } from '../settings/login-command.ts'
import type { Settings } from '../settings/settings.ts'
import { SETTINGS, settingName } from '../settings/table.ts'
import { shellQuote } from '../shell-quote.ts'
import { withProfile } from './messages.ts'

/**
 * A session is sent only to the service and the client that it was made for, whatever options and variables say.
 *
 * @throws CliError `session_of_another_service` or `session_of_another_client`, exit 4.
 */
export function requireSameService(
  bound: { readonly issuer: string | null; readonly clientId?: string },
  settings: Pick<Settings, 'baseUrl' | 'clientId' | 'profile'>,
): void {
  const { baseUrl, clientId } = settings
  if (baseUrl !== undefined && bound.issuer !== null) {
    const asked = issuerOf(parseBaseUrl(baseUrl.value))
    if (asked !== bound.issuer) throw madeForAnother('base_url', bound.issuer, asked, settings)
  }
  if (clientId !== undefined && bound.clientId !== undefined && clientId.value !== bound.clientId)
    throw madeForAnother('client_id', bound.clientId, clientId.value, settings)
}

/** The settings name another service or client than the session's. After a login, the profile remembers the session's own. */
function madeForAnother(
  key: 'base_url' | 'client_id',
  own: string,
  asked: string,
  { profile, baseUrl, clientId }: Pick<Settings, 'profile' | 'baseUrl' | 'clientId'>,
): CliError {
  const what = key === 'base_url' ? 'service' : 'client'
  const given = (setting: typeof baseUrl) => (setting?.source === 'flag' ? setting.value : undefined)
  const login = loginCommand({ profile: profile.value, baseUrl: given(baseUrl), clientId: given(clientId) })
  const name = settingName(key)
  const source = (key === 'base_url' ? baseUrl : clientId)?.source
  const wayBack =
    source === 'flag'
      ? `leave out --${name}`
      : source === 'environment'
        ? `unset ${SETTINGS[key].variable}`
        : withProfile(`mailclaim config set ${name} ${shellQuote(own, process.platform)}`, profile.value)
  return new CliError(
    `session_of_another_${what}`,
    Exit.notSignedIn,
    `the session of profile ${profile.value} belongs to the ${what} ${own}, not to ${asked}; it is not sent there`,
    {
      hint: `to sign in to that ${what} instead: ${login} (with --profile NAME, this session stays)\nto use this session: ${wayBack}`,
    },
  )
}
