import { expect, test } from 'vitest'
import { createWorld } from './world.ts'

/** The commands that scripts rely on, with the options that each of them promises. */
const CONTRACT: Readonly<Record<string, string>> = {
  login:
    '--base-url --client-id --scope --resource --port --redirect-uri --no-browser --timeout --profile --store --with-api-key',
  logout: '--all',
  'auth status': '--online',
  'auth token': '',
  'auth refresh': '--scope --retry-interrupted',
  'auth list': '',
  'auth switch': '',
  'grants list': '--state --limit --all --after --before',
  'imports list': '--status --limit --all --after --before',
  'imports get': '',
  'imports watch': '',
  'claims create':
    '--region --custom-return-path --open-tracking --no-open-tracking --click-tracking --no-click-tracking --tracking-subdomain',
  'claims list': '--refresh',
  'claims get': '',
  'claims record': '--provider',
  'claims check': '--name --value --wait',
  'claims verify': '--no-check --force --wait',
  'claims watch': '--interval --timeout --through-blocked',
  claim: '',
  sandbox: '--auto-approve',
  doctor: '',
  'config list': '',
  'config get': '',
  'config set': '',
  'config unset': '',
  'config path': '',
  completion: '',
}

const GLOBAL =
  '--profile --base-url --format --json --fields --quiet --verbose --no-input --no-color --http-timeout --resolver --authoritative-port'

test.each(Object.entries(CONTRACT))(
  '%s is there, with its options, examples and exit codes',
  async (command, options) => {
    const world = createWorld()
    const { code, stdout, stderr } = await world.run([...command.split(' '), '--help'])
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    // Words joined again where the line was broken.
    const offered = new Set(stdout.match(/--[a-z-]+/g))
    // The sandbox takes no settings of the client.
    const promised = command === 'sandbox' ? options : `${options} ${GLOBAL}`
    expect(promised.split(' ').filter((option) => option !== '' && !offered.has(option))).toEqual([])
    expect(stdout).toMatch(new RegExp(`^Usage: mailclaim ${command}`))
    expect(stdout).toMatch(/^Examples:$/m)
    expect(stdout).toMatch(/^Exit codes\b.*:$/m)
    for (const line of stdout.split('\n')) expect(line.length, line).toBeLessThanOrEqual(80)
  },
)

test('a command that fails in every format says so in that format alone', async () => {
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
