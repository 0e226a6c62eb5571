import { expect, test } from 'vitest'
import { COMMANDS, GLOBAL_FLAGS } from '../contract.ts'
import { createWorld } from './built-program.ts'

test.each(Object.entries(COMMANDS))(
  'the help of mailclaim %s has its options, examples and exit codes',
  async (command, options) => {
    const world = createWorld()
    const { code, stdout, stderr } = await world.run([...command.split(' '), '--help'])
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    const global = await world.run(['help', 'options'])
    const offered = new Set(`${stdout}${global.stdout}`.match(/--[a-z-]+/g))
    expect(
      `${options} ${GLOBAL_FLAGS}`.split(' ').filter((option) => option !== '' && !offered.has(option)),
    ).toEqual([])
    expect(stdout).toMatch(new RegExp(`^Usage: mailclaim ${command}`))
    expect(stdout).toMatch(/^Examples:$/m)
    expect(stdout).toMatch(/^Exit codes\b.*:$/m)
    for (const line of stdout.split('\n')) expect(line.length, line).toBeLessThanOrEqual(80)
  },
)

test('a command that fails reports it in the chosen format', async () => {
  const world = createWorld()
  const plain = await world.run(['imports', 'list'])
  expect(plain).toMatchObject({ code: 3, stdout: '' })
  for (const words of [['--json'], ['--format', 'json'], ['--format=jsonl']]) {
    const { code, stdout, stderr } = await world.run(['imports', 'list', ...words])
    expect({ code, stdout }).toEqual({ code: 3, stdout: '' })
    expect(JSON.parse(stderr)).toEqual({
      error: { code: 'base_url_missing', message: expect.any(String), hint: expect.any(String), exit: 3 },
    })
  }
})
