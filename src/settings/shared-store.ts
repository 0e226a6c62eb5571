import type { Settings } from './settings.ts'
import { type ProfileConfig, SETTINGS, type SettingKey } from './table.ts'

/** Whether the session of the profile is in etcd, so that it isn't looked for on this machine. */
export function isShared({ chosen }: Pick<Settings, 'chosen'>): boolean {
  return chosen.store?.value === 'etcd'
}

const KEYS = ['store_url', 'store_prefix', 'store_ca', 'store_cert', 'store_key_file'] as const

/** What a profile has to remember of a login, so that its next command finds the session. */
export function storeToRemember({
  chosen,
  profileConfig,
}: Pick<Settings, 'chosen' | 'profileConfig'>): ProfileConfig {
  if (chosen.store?.value !== 'etcd') {
    const store = chosen.store?.value === 'file' ? 'file' : 'keychain'
    return profileConfig.store === 'etcd' ? { store } : {}
  }
  const given = (key: SettingKey) => {
    const found = chosen[key]
    return found === undefined || found.source === 'default'
      ? []
      : [[key, SETTINGS[key].parse(found.value, key)]]
  }
  return { store: 'etcd', ...Object.fromEntries(KEYS.flatMap(given)) }
}
