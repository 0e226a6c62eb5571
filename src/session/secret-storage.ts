import { type SecretStorage, secretFile } from '../credentials/secret-copies.ts'
import type { LocalStoreKind } from '../settings/table.ts'
import type { SessionPaths } from './paths.ts'

/** Where the secret of a sign-in belongs. A keychain item names the sign-in, because state directories share one keychain. */
export function secretStorage(
  { profile, directory, fallbackDirectories }: SessionPaths,
  {
    id: session,
    issuer,
    store,
  }: { readonly id: string; readonly issuer: string | null; readonly store: LocalStoreKind },
): SecretStorage {
  const name =
    store === 'keychain' ? `${profile} ${issuer ?? 'api-key'} ${session}` : secretFile(directory, session)
  return { profile, session, location: { store, name }, directory, fallbackDirectories }
}
