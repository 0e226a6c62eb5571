import type { Context } from '../context.ts'
import { createServiceClient, type ServiceClient } from '../service/client.ts'
import { createAuthorizer } from '../session/authorizer.ts'
import type { Settings } from '../settings/settings.ts'

/** The service, with the credential of the profile in force. @throws CliError exit 3 without a usable base URL. */
export function connect(context: Context, settings: Settings): ServiceClient {
  return createServiceClient({ context, settings, authorizer: createAuthorizer(context, settings) })
}
