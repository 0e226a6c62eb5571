import { expect, it } from 'vitest'
import type { CliError } from '../../src/errors.ts'
import { grantPages } from '../../src/service/lists.ts'
import { currentCredential } from '../../src/session/authorizer.ts'
import { connect } from '../../src/session/connect.ts'
import { proveStore } from '../../src/session/prove-store.ts'
import { createFakeKeychain, jsonResponse } from '../fake-context.ts'
import { createSandboxSession, withEffects } from './sandbox-session.ts'

it('the hint after a second 401 names the profile', async () => {
  const world = await createSandboxSession()
  await world.signIn('file')
  const { http } = world.context
  const context = withEffects(world.context, {
    http: {
      ...http,
      send: async (request) =>
        request.url.pathname === '/oauth/token' ? http.send(request) : jsonResponse(401, {}),
    },
  })
  const failure = await grantPages(connect(context, world.settings))({ limit: 1 }).catch((error) => error)
  expect((failure as CliError).hint).toBe('sign in again: mailclaim login')
})

it('the hint after the end of a session names only the profile and the store', async () => {
  const world = await createSandboxSession()
  await world.signIn('file')
  world.expire()
  await world.fault({
    kind: 'status',
    status: 400,
    headers: { 'content-type': 'application/json' },
    body: { error: 'invalid_grant' },
  })
  const failure = await currentCredential(world.context, world.settings).catch((error) => error)
  expect((failure as CliError).hint).toBe('run mailclaim login --store file')
})

it('the hint for a profile that is not signed in names the profile that settings choose', async () => {
  const world = await createSandboxSession()
  const settings = await world.settingsWith({ profile: 'work', store: 'file' })
  const failure = await currentCredential(world.context, settings).catch((error) => error)
  expect((failure as CliError).hint).toBe(
    'run mailclaim login --profile work --store file, or set MAILCLAIM_API_KEY',
  )
})

it.each(['no_bus', 'locked', 'refused'] as const)(
  'the hint for the keychain error %s names the profile',
  async (trouble) => {
    const keychain = createFakeKeychain()
    const world = await createSandboxSession({ keychain })
    const settings = await world.settingsWith({ profile: 'work' })
    keychain.trouble = trouble
    const failure = await proveStore(world.context, settings, 'keychain').catch((error) => error)
    expect((failure as CliError).hint).toContain('mailclaim login --profile work')
  },
)
