import { readFileSync } from 'node:fs'
import { basename } from 'node:path'
import { describe, expect, it } from 'vitest'
import { readNewest } from '../../src/credentials/secret-copies.ts'
import { currentCredential } from '../../src/session/authorizer.ts'
import { type OAuthRecord, readRecord } from '../../src/session/record.ts'
import { renew } from '../../src/session/refresh.ts'
import { secretStorage } from '../../src/session/secret-storage.ts'
import { createSandboxSession, filesOf, withEffects } from './sandbox-session.ts'

describe('a session', () => {
  it('a session is stored in files that only their owner can read, with no secret in its record', async () => {
    const { signIn, paths, context, settings } = await createSandboxSession()
    await signIn()

    expect(Object.values(filesOf(paths.directory))).toEqual(['600', '600', '600', '600'])
    const token = await currentCredential(context, settings)
    expect(token.kind).toBe('access_token')
  })

  it('a session is used as it is while the access token is valid for a minute', async () => {
    const { signIn, context, settings, counts } = await createSandboxSession()
    await signIn()
    const first = await currentCredential(context, settings)
    context.clock.advance(839_000)
    expect((await currentCredential(context, settings)).value).toBe(first.value)
    expect((await counts()).refreshes).toBe(0)
    context.clock.advance(2_000)
    expect((await currentCredential(context, settings)).value).not.toBe(first.value)
    expect(await counts()).toMatchObject({ refreshes: 1, reuse_detections: 0, grants_revoked: 0 })
  })

  it('a refresh waits for its answer as long as --http-timeout says, because others wait for the lock', async () => {
    const { signIn, context, settings } = await createSandboxSession()
    await signIn()
    const { http } = context
    const limits: number[] = []
    const send: typeof http.send = (request) => {
      limits.push(request.timeoutMs)
      return http.send(request)
    }
    const watched = withEffects(context, { http: { ...http, send } })
    await renew(watched, { ...settings, httpTimeoutMs: 600_000 }, { reason: 'asked' })
    await renew(watched, { ...settings, httpTimeoutMs: 1_000 }, { reason: 'asked' })
    expect(limits).toEqual([600_000, 30_000])
  })

  it('a session survives many refreshes, one generation at a time, which leave its record as the login wrote it', async () => {
    const { signIn, context, settings, counts, paths } = await createSandboxSession()
    await signIn()
    const before = readFileSync(paths.session, 'utf8')
    for (let round = 0; round < 5; round++) await renew(context, settings, { reason: 'asked' })
    expect(await counts()).toMatchObject({ refreshes: 5, reuse_detections: 0 })
    const record = await readRecord(paths)
    const secret = await readNewest(context, secretStorage(paths, record as OAuthRecord))
    expect(secret).toMatchObject({ generation: 6, inChosenStore: true })
    expect(Object.keys(filesOf(paths.directory))).toEqual([
      'access-token.json',
      'lock',
      basename(secret.location.name),
      'session.json',
    ])
    expect(readFileSync(paths.session, 'utf8')).toBe(before)
  })
})
