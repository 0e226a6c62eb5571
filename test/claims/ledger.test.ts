import { mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { expect, test } from 'vitest'
import {
  collectDomainCompletions,
  collectOpenClaimDomains,
  findClaimByDomainId,
  findClaimsByDomain,
  forgetClaim,
  readAllClaims,
  trySaveClaim,
} from '../../src/claims/ledger.ts'
import { createIo } from '../../src/terminal/io.ts'
import { createFakeContext, fakeSettings } from '../fake-context.ts'
import { claimOf } from './world.ts'

async function ledger(baseUrl = 'https://api.example.com') {
  const context = createFakeContext()
  const at = async (url: string) => createIo(context, await fakeSettings(context, { baseUrl: url }))
  const directory = join(context.directories.state, 'claims', 'default')
  const files = () =>
    readdirSync(join(directory, 'names'), { recursive: true, encoding: 'utf8' })
      .filter((path) => path.endsWith('.json'))
      .map((path) => path.replaceAll('\\', '/'))
      .sort()
  return { context, io: await at(baseUrl), at, directory, files }
}

test('the ledger stores each claim in a file in the directory of the domain, and saving the claim again replaces that file', async () => {
  const { io, files } = await ledger()
  await trySaveClaim(claimOf({ name: 'Bücher.example.' }), io)
  await trySaveClaim(claimOf({ name: 'Bücher.example.', status: 'completed' }), io)
  await trySaveClaim(claimOf({ domain_id: 'd2' }), io)
  expect(files()).toEqual([
    expect.stringMatching(/^ex\/example\.com\/[0-9a-f]{32}\.json$/),
    expect.stringMatching(/^xn\/xn--bcher-kva\.example\/[0-9a-f]{32}\.json$/),
  ])
  const found = await findClaimsByDomain('xn--bcher-kva.example', io)
  expect(found.map(({ claim }) => claim.status)).toEqual(['completed'])
})

test.each([
  ['a name of 231 characters', `${'a.'.repeat(110)}example.com`],
  ['a name with a label of one letter', 'a.example.com'],
  ['a path instead of a domain name', '../../../x'],
  ['no name, which counts as an empty one', null],
])('the ledger finds a claim by domain_id and by name if the claim has %s', async (_, name) => {
  const { io, files } = await ledger()
  await trySaveClaim(claimOf(), io)
  await trySaveClaim(claimOf({ name, domain_id: 'd2' }), io)
  expect(files()).toHaveLength(2)
  expect(await findClaimByDomainId('d2', io)).toMatchObject({ claim: { name, domain_id: 'd2' } })
  expect(await findClaimsByDomain(name ?? '', io)).toHaveLength(1)
  expect(await collectOpenClaimDomains(io)).toHaveLength(2)
})

test('the ledger finds a claim without opening the files of other claims', async () => {
  const { io, files, directory } = await ledger()
  for (let at = 0; at < 20; at++)
    await trySaveClaim(claimOf({ name: `d${at}.example.com`, domain_id: `d${at}` }), io)
  // The files of all other claims are damaged, so opening one of them would be reported.
  for (const path of files().filter((file) => !file.includes('/d7.')))
    writeFileSync(join(directory, 'names', path), 'no claim')
  const damaged: string[] = []
  const note = async ({ message }: { message: string }) => void damaged.push(message)
  expect(await findClaimsByDomain('d7.example.com', io, note)).toHaveLength(1)
  expect(await findClaimByDomainId('d7', io, note)).toBeDefined()
  expect(await findClaimByDomainId('example.com', io, note)).toBeUndefined()
  expect(damaged).toEqual([])
})

test('the ledger lists the claims of a domain by creation time, newest first, whichever was saved last', async () => {
  const { io } = await ledger()
  const expired = { created_at: '2026-11-22 11:00:00+00', status: 'expired' }
  await trySaveClaim(claimOf({ domain_id: 'new', ...expired }), io)
  await trySaveClaim(claimOf({ domain_id: 'old', created_at: '2026-11-20 11:00:00+00' }), io)
  const found = await findClaimsByDomain('example.com', io)
  expect(found.map(({ claim }) => claim.domain_id)).toEqual(['new', 'old'])
  expect(await collectOpenClaimDomains(io)).toEqual([])
})

test('the ledger keeps the claims of two services apart', async () => {
  const { io, at } = await ledger()
  const other = await at('https://other.example.net')
  await trySaveClaim(claimOf(), io)
  await trySaveClaim(claimOf({ status: 'completed' }), other)
  expect((await readAllClaims(io)).map(({ claim }) => claim.status)).toEqual(['pending'])
  expect(await findClaimByDomainId('d1', other)).toMatchObject({ claim: { status: 'completed' } })
  const chosen = { ...io.settings.chosen, base_url: undefined }
  expect(await readAllClaims({ ...io, settings: { ...io.settings, chosen } })).toHaveLength(2)
})

test('the candidates for shell completion are the domains in the ledger that start with the typed text, each with the status of its claim', async () => {
  const { io } = await ledger()
  await trySaveClaim(claimOf(), io)
  await trySaveClaim(claimOf({ name: 'example.org', domain_id: 'd2', status: 'completed' }), io)
  expect(await collectDomainCompletions('EXA', 5, io)).toEqual([
    ['example.com', 'pending'],
    ['example.org', 'completed'],
  ])
  const [entry] = await findClaimsByDomain('example.com', io)
  if (entry !== undefined) await forgetClaim(entry, io)
  expect(await collectDomainCompletions('exa', 5, io)).toEqual([['example.org', 'completed']])
  expect(await collectDomainCompletions('ex', 5, io)).toHaveLength(1)
})

test('reading the claims of a domain in the ledger reports a damaged file, keeps it, and returns the other claims', async () => {
  const { io, directory, files } = await ledger()
  await trySaveClaim(claimOf(), io)
  writeFileSync(join(directory, 'names', files()[0] ?? ''), '{"format":1,"issuer":"x"')
  await trySaveClaim(claimOf({ domain_id: 'd2' }), io)
  const damaged: string[] = []
  const found = await findClaimsByDomain('example.com', io, async ({ code }) => void damaged.push(code))
  expect({ found: found.length, damaged }).toEqual({ found: 1, damaged: ['cannot_read'] })
  expect(files()).toHaveLength(2)
})

test('a claim can be saved in the ledger while another claim of its domain is being removed', async () => {
  const { io, context } = await ledger()
  for (let round = 0; round < 60; round++) {
    await trySaveClaim(claimOf(), io)
    const [entry] = await findClaimsByDomain('example.com', io)
    const saving = trySaveClaim(claimOf({ domain_id: 'd2' }), io)
    for (let turns = 0; turns < round % 20; turns++) await new Promise(setImmediate)
    if (entry !== undefined) await forgetClaim(entry, io)
    await saving
    expect((await findClaimsByDomain('example.com', io)).map(({ claim }) => claim.domain_id)).toEqual(['d2'])
    const saved = await findClaimByDomainId('d2', io)
    if (saved !== undefined) await forgetClaim(saved, io)
  }
  expect(context.stderr.text).toBe('')
})

test('a claim that cannot be saved in the ledger causes only a warning', async () => {
  const { io, context } = await ledger()
  mkdirSync(dirname(context.directories.state), { recursive: true })
  writeFileSync(context.directories.state, 'a file where the directory belongs')
  await trySaveClaim(claimOf(), io)
  expect(context.stderr.text).toContain("couldn't save the claim")
})
