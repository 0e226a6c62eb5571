import { expect, test } from 'vitest'
import { claimOf, createWorld, errorOf } from '../../claims/world.ts'

const HERE = 'in profile work at https://api.example.com'
const THERE = 'in profile default at https://api.example.com'

test('what another profile knows of a claim is said where this one knows nothing', async () => {
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

test('claims forget removes a claim from this machine, and asks nothing of the service', async () => {
  const world = createWorld({ respond: () => claimOf({ name: 'exmaple.com' }) })
  await world.run('claims', 'get', 'd1')
  const asked = world.asked.length
  const { code, stdout, stderr } = await world.run('claims', 'forget', 'exmaple.com')
  expect({ code, stdout }).toEqual({ code: 0, stdout: 'name\tdomain_id\nexmaple.com\td1\n' })
  expect(stderr).toMatch(/placeholder domain d1 at the service stays/)
  expect((await world.run('claims', 'list')).stdout).not.toContain('exmaple.com')
  for (const claim of ['exmaple.com', 'd5f1a5a0-7c39-4a8e-9c1a-2f6b1f6f0c11'])
    expect(errorOf(await world.run('claims', 'forget', claim, '--json'))).toMatchObject({ exit: 5 })
  expect(world.asked).toHaveLength(asked)
})

test('claims verify says that the service was not asked while the record is missing', async () => {
  const world = createWorld({ txt: () => [] })
  const ended = await world.run('claims', 'verify', 'd1', '--wait', '--json')
  expect(errorOf(ended)).toMatchObject({
    exit: 8,
    message: expect.stringMatching(/; the service wasn't asked/),
  })
  expect(world.asked).toEqual(['GET /domains/d1/claim'])
})
