import type { Context } from '../context.ts'
import { CliError } from '../errors.ts'
import { parseBaseUrl } from '../settings/addresses.ts'
import { type Settings, settingValue } from '../settings/settings.ts'
import { SETTINGS } from '../settings/table.ts'
import { note } from '../terminal/notices.ts'

/** Asks a person for what is not configured; a script gets an error later. */
export async function askForMissing(
  settings: Settings,
  withApiKey: boolean,
  context: Context,
): Promise<Settings> {
  if (!settings.interactive) return settings
  let { baseUrl, clientId } = settings
  // Whoever answers questions must not learn afterward that what was given can't be used.
  settingValue('base_url', settings)
  if (!withApiKey) settingValue('client_id', settings)
  if (baseUrl === undefined) {
    await note(
      'Nothing is configured yet. To try it without an account, run this in another terminal: mailclaim sandbox',
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
    if (error instanceof CliError && error.hint !== undefined) return `${error.message}; ${error.hint}`
    return error instanceof Error ? error.message : String(error)
  }
}
