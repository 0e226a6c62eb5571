import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { resolveConfigFileLink, updateConfig } from '../../src/settings/config.ts'
import { SETTING_KEYS, settingName } from '../../src/settings/table.ts'
import { createFakeContext, type FakeContext } from '../fake-context.ts'
import { run } from '../run.ts'

async function type(line: string | readonly string[], context: FakeContext) {
  const before = { stdout: context.stdout.text.length, stderr: context.stderr.text.length }
  const code = await run(typeof line === 'string' ? line.split(' ') : line, context)
  return {
    code,
    stdout: context.stdout.text.slice(before.stdout),
    stderr: context.stderr.text.slice(before.stderr),
  }
}

function write(context: FakeContext, value: unknown): void {
  mkdirSync(context.directories.config, { recursive: true, mode: 0o700 })
  const text = typeof value === 'string' ? value : JSON.stringify(value)
  writeFileSync(resolveConfigFileLink(context), text, { mode: 0o600 })
}

const read = (context: FakeContext) => JSON.parse(readFileSync(resolveConfigFileLink(context), 'utf8'))

test('config get prints a number in the configuration file as text, and config set replaces the number', async () => {
  const context = createFakeContext()
  write(context, { version: 1, profiles: { default: { base_url: 5 } } })
  expect(await type('config get base-url --format value', context)).toMatchObject({ code: 0, stdout: '5\n' })
  expect(await type('config set base-url https://api.example.com', context)).toMatchObject({ code: 0 })
  expect(read(context).profiles).toEqual({ default: { base_url: 'https://api.example.com' } })
})

test('config get prints a setting of the profile, and exits 5 if the profile does not set it', async () => {
  const context = createFakeContext()
  expect(await type('config set base-url https://api.example.com/', context)).toEqual({
    code: 0,
    stdout: 'profile\tname\tvalue\ndefault\tbase-url\thttps://api.example.com\n',
    stderr: 'default: base-url is now https://api.example.com\n',
  })
  expect(await type('config get base_url --json', context)).toEqual({
    code: 0,
    stdout: '{"name":"base-url","value":"https://api.example.com"}\n',
    stderr: '',
  })
  expect(await type('config get base-url --profile work', context)).toEqual({
    code: 5,
    stdout: '',
    stderr: 'error: the profile work does not set base-url\nhint: mailclaim config set base-url …\n',
  })
})

test('config set warns if an environment variable overrides the setting', async () => {
  const context = createFakeContext({ environment: { settings: { base_url: 'https://b.example.com' } } })
  expect((await type('config set base-url https://api.example.com --json', context)).stderr).toBe(
    'warning: MAILCLAIM_BASE_URL is set, and overrides this\n',
  )
})

test.each([
  ['base-url', 'http://api.example.com', 'is not encrypted'],
  ['base-url', 'https://me:pw@api.example.com', '"https://…@api.example.com" contains a user name'],
  ['base-url', 'https://api.example.com?key=pw', '"https://api.example.com?…" contains a query'],
  ['resolver', ',', 'is an empty list'],
  ['api-key', 'x', '"api-key" is not a setting'],
  ['scope', ' ', 'the value is empty'],
])('config set %s %s exits 2, and writes no configuration file', async (name, value, message) => {
  const context = createFakeContext()
  const { code, stderr } = await type(['config', 'set', name, value], context)
  expect(code).toBe(2)
  expect(stderr).toContain(message)
  expect(stderr).not.toContain('pw')
  expect(() => read(context)).toThrow('ENOENT')
})

test('config unset removes a setting from the configuration file, with its profile if that has no other setting', async () => {
  const context = createFakeContext()
  await type('config set store file --profile work', context)
  expect((await type('config unset store --profile work', context)).stderr).toBe(
    'work: store is no longer set\n',
  )
  expect(read(context).profiles).toEqual({})
  expect((await type('config unset store', context)).stderr).toBe('default: store is not set\n')
})

test.each(['config set base-url https://other.example.com', 'config unset base-url'])(
  'mailclaim %s removes the setting issuer, which belongs to the previous base URL',
  async (line) => {
    const context = createFakeContext()
    await type('config set base-url https://api.example.com', context)
    await type('config set issuer https://auth.example.com', context)
    await type('config set base-url https://api.example.com', context)
    expect(await type('config get issuer', context)).toMatchObject({ code: 0 })
    await type(line, context)
    expect(await type('config get issuer', context)).toMatchObject({ code: 5 })
  },
)

test('config list shows each setting that has a value, with its source, and the paths of the configuration file and the state directory', async () => {
  const context = createFakeContext({ environment: { settings: { store: 'file' }, apiKey: 'secret-key' } })
  await type('config set client-id one', context)
  await type('config set store keychain', context)
  const { stdout } = await type('config list --resolver 192.0.2.1 --resolver 192.0.2.2 --json', context)
  const { data, paths } = JSON.parse(stdout)
  const found = Object.fromEntries(
    data.map(({ name, value, source }: Record<string, string>) => [name, [value, source]]),
  )
  expect(found).toMatchObject({
    'client-id': ['one', 'profile'],
    store: ['file', 'environment'],
    resolver: ['192.0.2.1 192.0.2.2', 'flag'],
    'http-timeout': ['30', 'default'],
  })
  expect(found).not.toHaveProperty('base-url')
  expect(Object.keys(found)).toEqual(SETTING_KEYS.map(settingName).filter((name) => name in found))
  expect(paths).toEqual({ config: resolveConfigFileLink(context), state: context.directories.state })
  expect(stdout).not.toContain('secret-key')
  expect((await type('config list --format table', context)).stderr).toContain(resolveConfigFileLink(context))
})

test.each(['https://me:pw@api.example.com/x?key=pw#pw', 'me:pw@api.example.com'])(
  'config list masks secrets in the base URL %s',
  async (base_url) => {
    const context = createFakeContext({ environment: { settings: { base_url } } })
    for (const format of ['table', 'json', 'tsv'])
      expect((await type(`config list --format ${format}`, context)).stdout).not.toContain('pw')
  },
)

test('config set and config unset keep unknown keys of the configuration file', async () => {
  const context = createFakeContext()
  const profile = { color: 'blue', store: 'file', resolver: '192.0.2.1' }
  write(context, { version: 1, theme: 'dark', profiles: { default: profile } })
  await type('config set client-id one', context)
  await type('config unset store', context)
  expect(await type('config get resolver', context)).toMatchObject({ stdout: '192.0.2.1\n' })
  expect(read(context)).toEqual({
    version: 1,
    theme: 'dark',
    profiles: { default: { color: 'blue', client_id: 'one', resolver: '192.0.2.1' } },
  })
})

test('an invalid resolver in the configuration file makes `claims check` fail, but not `config get` of another setting or `config unset`', async () => {
  const context = createFakeContext()
  write(context, { version: 1, profiles: { default: { resolver: 'soon', store: 'file' } } })
  expect(await type('config get store', context)).toMatchObject({ code: 0, stdout: 'file\n' })
  const checked = await type('claims check --name example.com --value a=b', context)
  expect(checked).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('resolver: "soon" is not an IP'),
  })
  expect(await type('config unset resolver', context)).toMatchObject({ code: 0 })
})

test.each([
  ['{"version":1', 'it is damaged'],
  ['', 'it is empty'],
  ['[]', 'the file is not an object'],
  ['{"version":2,"profiles":{}}', 'it was written by a later version of mailclaim'],
  ['{"version":1,"profiles":{"default":7}}', 'profiles.default is not an object'],
])(
  'the unusable configuration file %j makes `config set`, `config get`, `logout` and `claims list` fail, but not `config list`, `commands`, `completion` and `--help`',
  async (text, message) => {
    const context = createFakeContext()
    write(context, text)
    for (const line of ['config set store file', 'config get store', 'logout', 'claims list']) {
      const { code, stderr } = await type(line, context)
      expect(code).toBe(1)
      expect(stderr).toContain(message)
      expect(stderr).toContain(resolveConfigFileLink(context))
    }
    expect(await type('config list', context)).toMatchObject({
      code: 0,
      stderr: expect.stringContaining(message),
    })
    for (const line of ['completion bash', 'commands --json', '--help', 'claims list --help'])
      expect(await type(line, context)).toMatchObject({ code: 0, stderr: '' })
    expect(readFileSync(resolveConfigFileLink(context), 'utf8')).toBe(text)
  },
)

test('concurrent changes of the configuration file are all kept', async () => {
  const fake = createFakeContext()
  // Stop the fake clock: the sleeps of all writers together would pass the deadline of the lock.
  const context = { ...fake, clock: { ...fake.clock, monotonic: () => 0 } }
  // The kernel lock belongs to the open file description, so writers in one process exclude each other too.
  await Promise.all(
    Array.from({ length: 25 }, (_, at) =>
      updateConfig(context, (config) => {
        config.profiles[`p${at}`] = { client_id: String(at) }
      }),
    ),
  )
  expect(Object.keys(read(fake).profiles)).toHaveLength(25)
})
