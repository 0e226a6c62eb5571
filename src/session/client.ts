import { createServiceClient, type ServiceClient } from '../service/client.ts'
import type { Credential } from '../service/types.ts'
import type { Io } from '../terminal/io.ts'
import { findCredentialWithoutRenewal, getFreshCredential, renewAccessToken } from './credential.ts'
import { expiredAccessTokenError } from './messages.ts'

/**
 * Creates a client of the service that sends the credential in force: the API key in the environment, else the current profile's
 * credential. Concurrent requests share one renewal.
 *
 * @param renews false to use only an API key or a valid access token; without either, requests fail with exit 4
 * @throws CliError exit 3 without a usable base URL
 */
export function openClient(io: Io, { renews = true }: { readonly renews?: boolean } = {}): ServiceClient {
  let key: Credential | undefined
  let asked: Promise<Credential> | undefined
  const renewals = new Map<string, Promise<Credential | undefined>>()
  return createServiceClient(io, {
    async credential() {
      if (key !== undefined) return key
      asked ??= (renews ? getFreshCredential(io) : requireUsable(io)).finally(() => {
        asked = undefined
      })
      const credential = await asked
      if (credential.kind === 'api_key') key = credential
      return credential
    },
    async replaceRefused({ kind, value }) {
      if (kind === 'api_key' || !renews) return undefined
      const renewal =
        renewals.get(value) ?? renewAccessToken(io, { outdated: value }).finally(() => renewals.delete(value))
      renewals.set(value, renewal)
      return renewal
    },
  })
}

async function requireUsable(io: Io): Promise<Credential> {
  const found = await findCredentialWithoutRenewal(io)
  if (found.kind === 'outdated') throw expiredAccessTokenError(io.settings.profile.value)
  return found
}
