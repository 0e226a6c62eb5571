import type { Context } from '../context.ts'
import { CliError, usageError } from '../errors.ts'
import { isBearerToken } from '../service/authorizer.ts'
import { createServiceClient } from '../service/client.ts'
import { tryCredential } from '../service/lists.ts'
import type { Settings } from '../settings/settings.ts'
import type { LocalStoreKind, StoreKind } from '../settings/table.ts'
import { createIo } from '../terminal/io.ts'
import { warn } from '../terminal/notices.ts'

/** An API key that is longer is a file that was piped in by mistake. */
const MAX_API_KEY_LENGTH = 2000

/** @throws CliError `usage`, exit 2, if the text can't be an API key. */
export function requireApiKey(value: string): void {
  if (isBearerToken(value) && value.length <= MAX_API_KEY_LENGTH) return
  throw usageError('that is not an API key: it has to be one line of printable ASCII without spaces')
}

/** @throws CliError `usage`, exit 2, if the store is one that machines share. */
export function requireLocalStore(store: StoreKind): LocalStoreKind {
  if (store !== 'etcd') return store
  throw usageError(
    "an API key isn't kept in etcd: any number of machines can use it as it is",
    'put it into MAILCLAIM_API_KEY, or add --store file',
  )
}

/**
 * Tries an API key with the service, before it is stored. A service that knows the key but forbids the request (403) has
 * accepted it.
 *
 * @throws CliError `credential_refused`, exit 4; exit 3 without a usable base URL; exit 7 if the service can't be asked.
 */
export async function tryApiKey(context: Context, settings: Settings, value: string): Promise<void> {
  const credential = { kind: 'api_key', value, description: 'the API key' } as const
  const authorizer = { credential: async () => credential, refused: async () => undefined }
  try {
    await tryCredential(createServiceClient(createIo(context, settings), authorizer))
  } catch (error) {
    if (!(error instanceof CliError) || context.interrupts.signal.aborted) throw error
    if (error.status === 403) {
      await warn(`the service knows the API key, but: ${error.message}`, context, settings)
      return
    }
    const hint = error.status === 401 ? 'check the API key, and that the base URL is its service' : error.hint
    throw new CliError(error.code, error.exit, `${error.message}; the API key was not stored`, {
      hint: `${hint ?? 'try again'}; to store it without a test, add --no-check`,
      status: error.status,
      cause: error,
    })
  }
}
