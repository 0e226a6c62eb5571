import type { Context } from '../context.ts'
import { CliError } from '../errors.ts'
import { proveStore } from '../session/prove-store.ts'
import { loginCommand } from '../settings/login-command.ts'
import type { Settings } from '../settings/settings.ts'
import type { LocalStoreKind } from '../settings/table.ts'
import { note } from '../terminal/notices.ts'

/** The errors of a store that say that this machine has no keychain, however long one waits. */
const NO_KEYCHAIN: readonly string[] = ['keychain_no_module', 'keychain_no_bus', 'keychain_no_service']

/**
 * Tries the store before the browser's part. Where there is no keychain and nobody has chosen one, a person may choose a
 * file instead.
 *
 * @throws CliError as `proveStore` does.
 */
export async function usableStore<S extends LocalStoreKind>(
  store: S,
  secret: 'refresh_token' | 'api_key',
  context: Context,
  settings: Settings,
): Promise<S | 'file'> {
  try {
    await proveStore(context, settings, store, secret)
    return store
  } catch (failure) {
    const error = failure instanceof CliError ? repeatingLine(failure, settings) : failure
    const isOffered =
      settings.interactive &&
      settings.chosen.store?.source === 'default' &&
      error instanceof CliError &&
      NO_KEYCHAIN.includes(error.code)
    if (!isOffered) throw error
    await note(error.message, context, settings)
    const message = 'Keep the secret in a file that only you can read instead?'
    if (!(await context.prompts.confirm({ message, default: false }))) throw error
    await proveStore(context, settings, 'file', secret)
    return 'file'
  }
}

/** The error whose remedy, a login with the secret in a file, has all the options of the one that was typed. */
function repeatingLine(error: CliError, { profile, argv }: Settings): CliError {
  const { code, exit, message, cause } = error
  const login = { profile: profile.value, store: 'file' } as const
  const whole = loginCommand({ ...login, typed: argv })
  const hint = argv.length === 0 ? error.hint : error.hint?.replace(loginCommand(login), () => whole)
  return new CliError(code, exit, message, { ...error, hint, cause })
}
