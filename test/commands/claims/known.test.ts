import { expect, test } from 'vitest'
import { claimOf, createWorld, errorOf } from '../../claims/world.ts'
import { jsonResponse } from '../../fake-context.ts'

const HERE = 'in profile work at https://api.example.com'
const THERE = 'in profile default at https://api.example.com'

test('if only another profile knows a claim, the error of claims get and the warning of `claim`, `claims verify` and `claims check` with --all name that profile', async () => {
  const world = createWorld()
  await world.run('claims', 'get', 'd1')
  expect(
    errorOf(await world.run('claims', 'get', 'example.com', '--profile', 'work', '--json')),
  ).toMatchObject({
    code: 'claim_unknown',
    message: `no claim of example.com is known ${HERE}`,
    hint: `there is one ${THERE}`,
  })
  const unknown = errorOf(await world.run('claims', 'get', 'other.example', '--profile', 'work', '--json'))
  expect(unknown.hint).toContain('mailclaim claims list')
  for (const command of ['claim', 'claims verify', 'claims check']) {
    const { code, stderr } = await world.run(...command.split(' '), '--all', '--profile', 'work')
    expect({ code, stderr }, command).toEqual({
      code: 0,
      stderr: `warning: no open claim is known ${HERE}; there are some ${THERE}\n`,
    })
  }
})

test('claims forget removes a claim from this machine, without a request to the service', async () => {
  const world = createWorld({ respond: () => claimOf({ name: 'exmaple.com' }) })
  await world.run('claims', 'get', 'd1')
  const asked = world.asked.length
  const { code, stdout, stderr } = await world.run('claims', 'forget', 'exmaple.com')
  expect({ code, stdout }).toEqual({ code: 0, stdout: 'name\tdomain_id\nexmaple.com\td1\n' })
  expect(stderr).toMatch(/^The claim d1 of .* placeholder domain stays/)
  expect((await world.run('claims', 'list')).stdout).not.toContain('exmaple.com')
  for (const claim of ['exmaple.com', 'd5f1a5a0-7c39-4a8e-9c1a-2f6b1f6f0c11'])
    expect(errorOf(await world.run('claims', 'forget', claim, '--json'))).toMatchObject({ exit: 5 })
  expect(world.asked).toHaveLength(asked)
})

test('claims forget of a domain with two claims forgets the newer one, and prints the id of the earlier one', async () => {
  const created_at = (hour: number) => `2026-11-22 ${hour}:00:00.0+00`
  const world = createWorld({
    respond: (request) =>
      request.includes('d2')
        ? claimOf({ domain_id: 'd2', created_at: created_at(11) })
        : claimOf({ created_at: created_at(10) }),
  })
  for (const id of ['d1', 'd2']) await world.run('claims', 'get', id)
  const { stderr } = await world.run('claims', 'forget', 'example.com')
  expect(stderr).toMatch(/^The claim d2 .* An earlier claim of it is still listed: d1\.\n$/)
})

test('with several domains, mailclaim claim and mailclaim claims create name the domain in a warning about an unused option or an open claim', async () => {
  const world = createWorld({
    respond: (request, body) =>
      request === 'POST /domains/claim'
        ? jsonResponse(201, claimOf({ domain_id: 'd2', ...JSON.parse(body ?? '') }))
        : claimOf(),
  })
  await world.run('claims', 'get', 'd1')
  const words = ['example.com', 'other.example', '--region', 'eu-west-1']
  expect((await world.run('claims', 'create', ...words)).stderr).toContain(
    'warning: example.com: no effect on a claim that already exists: --region\n',
  )
  expect((await world.run('claim', ...words, '--timeout', '1')).stderr).toContain(
    'warning: example.com: an open claim of example.com may end in favor of this one\n',
  )
})

test('claims verify exits 8 if the record is missing, and says that the service was not asked to verify', async () => {
  const world = createWorld({ txt: () => [] })
  const ended = await world.run('claims', 'verify', 'd1', '--wait', '--json')
  expect(errorOf(ended)).toMatchObject({
    exit: 8,
    message: expect.stringMatching(/; the service wasn't asked/),
  })
  expect(world.asked).toEqual(['GET /domains/d1/claim'])
})
