import { type Authorizer, createServiceClient, type ServiceClient } from '../service/client.ts'
import type { Credential } from '../service/types.ts'
import type { Io } from '../terminal/io.ts'
import { currentCredential, goodCredential, renewedCredential } from './credential.ts'
import { notSignedIn } from './messages.ts'

/**
 * The service, with the credential of the current profile.
 *
 * @param renews false: only a key, or an access token that is good, is used; without one requests end with exit 4.
 * @throws CliError exit 3 without a usable base URL.
 */
export function connect(io: Io, { renews = true }: { readonly renews?: boolean } = {}): ServiceClient {
  return createServiceClient(io, renews ? createAuthorizer(io) : withoutRenewal(io))
}

/**
 * The credential of a command: the API key in the environment, else what `login` stored for the profile. Requests that need it
 * at the same time share one look at it, and one renewal; a key is read once.
 */
function createAuthorizer(io: Io): Authorizer {
  let key: Credential | undefined
  let asked: Promise<Credential> | undefined
  const renewals = new Map<string, Promise<Credential | undefined>>()
  return {
    async credential() {
      if (key !== undefined) return key
      asked ??= currentCredential(io).finally(() => {
        asked = undefined
      })
      const credential = await asked
      if (credential.kind === 'api_key') key = credential
      return credential
    },
    refused(credential) {
      const { kind, value } = credential
      if (kind === 'api_key') return Promise.resolve(undefined)
      const renewal =
        renewals.get(value) ??
        renewedCredential(io, { outdated: value }).finally(() => renewals.delete(value))
      renewals.set(value, renewal)
      return renewal
    },
  }
}

function withoutRenewal(io: Io): Authorizer {
  return {
    async credential() {
      const found = await goodCredential(io)
      if (found.kind === 'outdated') throw notSignedIn(io.settings.profile.value)
      return found
    },
    refused: async () => undefined,
  }
}
