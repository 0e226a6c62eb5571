import type { Context } from '../context.ts'
import { createServiceClient, type ServiceClient } from '../service/client.ts'
import type { Settings } from '../settings/settings.ts'
import { createIo } from '../terminal/io.ts'
import { createAuthorizer } from './authorizer.ts'

/** The service, with the credential of the current profile. @throws CliError exit 3 without a usable base URL. */
export function connect(context: Context, settings: Settings): ServiceClient {
  return createServiceClient(createIo(context, settings), createAuthorizer(context, settings))
}
