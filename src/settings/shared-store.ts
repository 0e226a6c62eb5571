import type { Settings } from './settings.ts'

/** Whether the session of the profile is in etcd, so that it isn't looked for on this machine. */
export function isShared({ chosen }: Pick<Settings, 'chosen'>): boolean {
  return chosen.store?.value === 'etcd'
}
