import type { Context } from '../../context.ts'
import { CONFIG_KEYS, type ProfileConfig, type SettingKey, settingText } from '../../settings/config.ts'
import type { Settings, Sourced } from '../../settings/settings.ts'
import type { Column } from '../../terminal/columns.ts'
import { createListWriter } from '../../terminal/list-writer.ts'
import { defineCommand } from '../definition.ts'

const COLUMNS: readonly Column[] = [
  { field: 'name', title: 'Setting', kind: 'id' },
  { field: 'value' },
  { field: 'source', title: 'From' },
  { field: 'says', title: 'What it is', only: 'people' },
]

export const command = defineCommand({
  description: `Lists every setting with the value in force for the profile, and where it comes from: a flag, the
environment or the profile. A flag beats the environment, which beats the profile. An API key is no setting and is not
shown.`,
  examples: [
    { command: 'mailclaim config list', says: 'what is in force, and why' },
    { command: 'mailclaim config list --profile staging --json', says: 'of another profile, for a script' },
  ],
  exits: [],
  async run(_input, context, settings) {
    const items = (Object.keys(CONFIG_KEYS) as SettingKey[]).map((key) => {
      const { name, says } = CONFIG_KEYS[key]
      const found = inForce(key, context, settings)
      return { name, value: found?.value ?? null, source: found?.source ?? null, says }
    })
    const writer = createListWriter({ context, settings, columns: COLUMNS, nothing: 'no settings' })
    const envelope = { object: 'list', has_more: false, data: items }
    await writer.page({ items, envelope, finalHasMore: false })
    await writer.end(false)
  },
})

/** The value that commands go by, as text; undefined where it is set nowhere and the program's own default counts. */
function inForce(key: SettingKey, context: Context, settings: Settings): Sourced<string> | undefined {
  if (key === 'base_url') return settings.baseUrl
  if (key === 'client_id') return settings.clientId
  const { environment } = context
  const variables: { readonly [K in keyof ProfileConfig]?: string | undefined } = {
    store: environment.store,
    resolver: environment.resolver,
    authoritative_port: environment.authoritativePort,
  }
  const variable = variables[key]
  if (variable !== undefined) return { value: variable, source: 'environment' }
  const own = settings.profileConfig[key]
  return own === undefined ? undefined : { value: settingText(own), source: 'profile' }
}
