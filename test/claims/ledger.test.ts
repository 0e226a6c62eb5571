import { mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, expect, test } from 'vitest'
import {
  claimsNamed,
  claimWithId,
  everyClaim,
  forget,
  knownDomains,
  openDomains,
  remember,
} from '../../src/claims/ledger.ts'
import { createIo } from '../../src/terminal/io.ts'
import { createFakeContext, fakeSettings } from '../fake-context.ts'
import { claimOf } from './world.ts'

async function ledger(baseUrl = 'https://api.example.com') {
  const context = createFakeContext()
  const at = async (url: string) => createIo(context, await fakeSettings(context, { baseUrl: url }))
  const directory = join(context.directories.state, 'claims', 'default')
  return { context, io: await at(baseUrl), at, directory, files: () => readdirSync(directory).sort() }
}

describe('the ledger', () => {
  test('keeps each claim in a file that its domain names, and replaces it as a whole', async () => {
    const { io, files } = await ledger()
    await remember(claimOf({ name: 'Bücher.example.' }), io)
    await remember(claimOf({ name: 'Bücher.example.', status: 'completed' }), io)
    await remember(claimOf({ domain_id: 'd2' }), io)
    expect(files()).toEqual([
      expect.stringMatching(/^example\.com~[0-9a-f]{32}\.json$/),
      expect.stringMatching(/^xn--bcher-kva\.example~[0-9a-f]{32}\.json$/),
    ])
    expect((await claimsNamed('xn--bcher-kva.example', io)).map(({ claim }) => claim.status)).toEqual([
      'completed',
    ])
  })

  test('finds a name too long for a file, and a claim without one, by its id', async () => {
    const { io, files } = await ledger()
    const long = `${'a.'.repeat(110)}example.com`
    await remember(claimOf({ name: long }), io)
    await remember(claimOf({ name: null, domain_id: 'd2' }), io)
    expect(files().every((name) => /^[0-9a-f]{32}~[0-9a-f]{32}\.json$/.test(name))).toBe(true)
    expect(await claimsNamed(long, io)).toHaveLength(1)
    expect(await claimWithId('d2', io)).toMatchObject({ claim: { domain_id: 'd2' } })
  })

  test('means the newest claim of a name, whichever was looked at last', async () => {
    const { io } = await ledger()
    await remember(claimOf({ domain_id: 'new', created_at: '2026-11-22 11:00:00+00', status: 'expired' }), io)
    await remember(claimOf({ domain_id: 'old', created_at: '2026-11-20 11:00:00+00' }), io)
    expect((await claimsNamed('example.com', io)).map(({ claim }) => claim.domain_id)).toEqual(['new', 'old'])
    expect(await openDomains(io)).toEqual([])
  })

  test('keeps the claims of two services apart', async () => {
    const { io, at } = await ledger()
    const other = await at('https://other.example.net')
    await remember(claimOf(), io)
    await remember(claimOf({ status: 'completed' }), other)
    expect((await everyClaim(io)).map(({ claim }) => claim.status)).toEqual(['pending'])
    expect(await claimWithId('d1', other)).toMatchObject({ claim: { status: 'completed' } })
    const chosen = { ...io.settings.chosen, base_url: undefined }
    expect(await everyClaim({ ...io, settings: { ...io.settings, chosen } })).toHaveLength(2)
  })

  test('forgets a claim, and completes the names that it has', async () => {
    const { io } = await ledger()
    await remember(claimOf(), io)
    await remember(claimOf({ name: 'example.org', domain_id: 'd2', status: 'completed' }), io)
    expect(await knownDomains('EXA', 5, io)).toEqual([
      ['example.com', 'pending'],
      ['example.org', 'completed'],
    ])
    const [entry] = await claimsNamed('example.com', io)
    if (entry !== undefined) await forget(entry, io)
    expect(await knownDomains('exa', 5, io)).toEqual([['example.org', 'completed']])
  })

  test('leaves a damaged file where it is, and goes on', async () => {
    const { io, directory, files } = await ledger()
    await remember(claimOf(), io)
    writeFileSync(join(directory, files()[0] ?? ''), '{"format":1,"issuer":"x"')
    await remember(claimOf({ domain_id: 'd2' }), io)
    const damaged: string[] = []
    const found = await claimsNamed('example.com', io, async ({ code }) => void damaged.push(code))
    expect({ found: found.length, damaged }).toEqual({ found: 1, damaged: ['cannot_read'] })
    expect(files()).toHaveLength(2)
  })

  test('warns, and goes on, where nothing can be written', async () => {
    const { io, context } = await ledger()
    mkdirSync(dirname(context.directories.state), { recursive: true })
    writeFileSync(context.directories.state, 'a file where the directory belongs')
    await remember(claimOf(), io)
    expect(context.stderr.text).toContain("couldn't save the claim")
  })
})
