import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { run } from '../../src/cli.ts'
import { DnsTransportError } from '../../src/context.ts'
import { configPath, updateConfig } from '../../src/settings/config.ts'
import { createFakeContext, type FakeContext } from '../fake-context.ts'

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
  writeFileSync(configPath(context), typeof value === 'string' ? value : JSON.stringify(value), {
    mode: 0o600,
  })
}

const read = (context: FakeContext) => JSON.parse(readFileSync(configPath(context), 'utf8'))

describe('config set and get', () => {
  test('config get prints a setting that was set, and nothing else', async () => {
    const context = createFakeContext()
    expect(await type('config set base-url https://api.example.com/', context)).toEqual({
      code: 0,
      stdout: 'profile\tname\tvalue\ndefault\tbase-url\thttps://api.example.com\n',
      stderr: 'default: base-url is now https://api.example.com\n',
    })
    expect(await type('config get base-url', context)).toEqual({
      code: 0,
      stdout: 'https://api.example.com\n',
      stderr: '',
    })
    expect(await type('config get base_url --json', context)).toMatchObject({
      stdout: '{"name":"base-url","value":"https://api.example.com"}\n',
    })
  })

  test('config set warns if a variable overrides what it stores', async () => {
    const context = createFakeContext({
      environment: { settings: { base_url: 'https://staging.example.com', pager: 'less' } },
    })
    expect(await type('config set base-url https://api.example.com', context)).toMatchObject({
      code: 0,
      stderr:
        'default: base-url is now https://api.example.com\nwarning: MAILCLAIM_BASE_URL is set, and overrides this\n',
    })
    expect(await type('config set pager cat --json', context)).toMatchObject({
      stderr: 'warning: MAILCLAIM_PAGER is set, and overrides this\n',
    })
    expect(await type('config set client-id one', context)).toMatchObject({
      stderr: 'default: client-id is now one\n',
    })
  })

  test('each profile has its own settings', async () => {
    const context = createFakeContext()
    await type('config set client-id one --profile work', context)
    expect(await type('config get client-id --profile work', context)).toMatchObject({ stdout: 'one\n' })
    expect(await type('config get client-id', context)).toMatchObject({
      code: 5,
      stdout: '',
      stderr: 'error: the profile default does not set client-id\nhint: mailclaim config set client-id …\n',
    })
  })

  test('a list can be given with spaces or commas', async () => {
    const context = createFakeContext()
    await type(['config', 'set', 'resolver', '192.0.2.1, [2001:db8::1]:5353'], context)
    expect(read(context).profiles.default.resolver).toEqual(['192.0.2.1', '[2001:db8::1]:5353'])
    expect(await type('config get resolver', context)).toMatchObject({
      stdout: '192.0.2.1 [2001:db8::1]:5353\n',
    })
  })

  test.each([
    ['base-url', 'api.example.com', 'is not a URL'],
    ['base-url', 'http://api.example.com', 'is not encrypted'],
    ['store', 'cloud', 'is not one of keychain, file'],
    ['http-timeout', '0', 'is not a number of seconds'],
    ['authoritative-port', '70000', 'is not a port'],
    ['resolver', 'dns.example', 'is not an IP address'],
    ['resolver', ',', 'names no resolver'],
    ['api-key', 'x', '"api-key" is not a setting'],
    ['scope', ' ', 'the value is empty'],
  ])('%s = %s is refused, and nothing is written', async (name, value, message) => {
    const context = createFakeContext()
    const { code, stderr } = await type(['config', 'set', name, value], context)
    expect(code).toBe(2)
    expect(stderr).toContain(message)
    expect(() => read(context)).toThrow('ENOENT')
  })

  test('config unset removes a setting, and succeeds if it is not set', async () => {
    const context = createFakeContext()
    await type('config set store file', context)
    expect(await type('config unset store', context)).toMatchObject({
      code: 0,
      stderr: 'default: store is no longer set\n',
    })
    expect(await type('config unset store', context)).toMatchObject({
      code: 0,
      stderr: 'default: store is not set\n',
    })
    expect(await type('config get store', context)).toMatchObject({ code: 5 })
  })
})

describe('the issuer of a profile', () => {
  test('the issuer is stored in its canonical form, and refused if it is not an address', async () => {
    const context = createFakeContext()
    await type('config set issuer https://auth.example.com/', context)
    expect(await type('config get issuer', context)).toMatchObject({ stdout: 'https://auth.example.com\n' })
    for (const wrong of ['http://auth.example.com', 'auth.example.com', 'https://auth.example.com/?tenant=1'])
      expect(await type(`config set issuer ${wrong}`, context)).toMatchObject({ code: 2 })
  })

  test.each(['config set base-url https://other.example.com', 'config unset base-url'])(
    'the issuer is removed with its base URL: %s',
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
})

describe('config list', () => {
  test('config list shows the active value of every setting and where it comes from', async () => {
    const context = createFakeContext({ environment: { settings: { store: 'file' } } })
    await type('config set client-id one', context)
    await type('config set store keychain', context)
    const flags =
      '--base-url https://api.example.com --resolver 192.0.2.1 --resolver [2001:db8::1]:53 --authoritative-port 5353 --http-timeout 5'
    const { stdout } = await type(`config list ${flags} --json`, context)
    const found = JSON.parse(stdout).data.map((item: Record<string, unknown>) => [
      item['name'],
      item['value'],
      item['source'],
    ])
    expect(found).toEqual([
      ['base-url', 'https://api.example.com', 'flag'],
      ['client-id', 'one', 'profile'],
      ['issuer', null, 'default'],
      ['scope', null, 'default'],
      ['resource', null, null],
      ['store', 'file', 'environment'],
      ['store-url', null, null],
      ['store-prefix', '/mailclaim', 'default'],
      ['store-ca', null, 'default'],
      ['store-cert', null, null],
      ['store-key-file', null, null],
      ['on-interrupted', 'stop', 'default'],
      ['resolver', '192.0.2.1 [2001:db8::1]:53', 'flag'],
      ['authoritative-port', '5353', 'flag'],
      ['http-timeout', '5', 'flag'],
      ['pager', null, 'default'],
    ])
  })

  test('config list never shows an API key', async () => {
    const context = createFakeContext({ environment: { apiKey: 'secret-key' } })
    for (const format of ['table', 'json', 'tsv']) {
      expect((await type(`config list --format ${format}`, context)).stdout).not.toContain('secret-key')
    }
  })
})

describe('config path', () => {
  test('config path prints the file, which need not exist, and with --json the state directory', async () => {
    const context = createFakeContext()
    const path = join(context.directories.config, 'config.json')
    expect(await type('config path', context)).toEqual({ code: 0, stdout: `${path}\n`, stderr: '' })
    expect(JSON.parse((await type('config path --json', context)).stdout)).toEqual({
      config: path,
      state: context.directories.state,
    })
  })
})

describe('the file', () => {
  test('a change keeps what this version does not know', async () => {
    const context = createFakeContext()
    const later = { version: 1, theme: 'dark', profiles: { default: { color: 'blue', store: 'file' } } }
    write(context, later)
    await type('config set client-id one', context)
    await type('config unset store', context)
    expect(read(context)).toEqual({
      version: 1,
      theme: 'dark',
      profiles: { default: { color: 'blue', client_id: 'one' } },
    })
  })

  test('a bad value in the file stops every command except those that can correct it', async () => {
    const context = createFakeContext()
    write(context, { version: 1, profiles: { default: { http_timeout: 'soon', store: 'file' } } })
    const listed = await type('config list', context)
    expect(listed.code).toBe(1)
    expect(listed.stderr).toContain('profiles.default.http_timeout has no usable value')
    expect(listed.stderr).toContain('hint: remove the value: mailclaim config unset http-timeout\n')
    expect(await type('config path', context)).toMatchObject({ code: 0 })
    expect(await type('config set client-id one', context)).toMatchObject({ code: 0 })
    expect(read(context).profiles.default.http_timeout).toBe('soon')
    expect(await type('config unset http-timeout', context)).toMatchObject({ code: 0 })
    expect(await type('config get store', context)).toMatchObject({ code: 0, stdout: 'file\n' })
  })

  test.each([
    ['{"version":1', 'it is damaged'],
    ['', 'it is empty'],
    ['[]', 'the file is not an object'],
    ['{"version":2,"profiles":{}}', 'it was written by a later version of mailclaim'],
    ['{"version":1,"profiles":{"default":7}}', 'profiles.default is not an object'],
  ])('a file with the content %s is left as it is', async (text, message) => {
    const context = createFakeContext()
    write(context, text)
    for (const line of ['config list', 'config set store file', 'config unset store']) {
      const { code, stderr } = await type(line, context)
      expect(code).toBe(1)
      expect(stderr).toContain(message)
      expect(stderr).toContain(configPath(context))
    }
    expect(readFileSync(configPath(context), 'utf8')).toBe(text)
  })

  test.each([
    [{ current_profile: 'NO' }, 'auth switch default'],
    [{ profiles: { work: { store: 'cloud' } } }, 'config unset store --profile work'],
    [{ profiles: { default: { scope: 'emails:"send' } } }, 'config unset scope'],
  ])('the hint for the bad value in %j is a command that removes it', async (content, fix) => {
    const context = createFakeContext()
    write(context, { version: 1, profiles: {}, ...content })
    expect(await type('config list', context)).toMatchObject({
      code: 1,
      stderr: expect.stringContaining(`hint: remove the value: mailclaim ${fix}\n`),
    })
    expect(await type(fix, context)).toMatchObject({ code: 0 })
    expect(await type('config list', context)).toMatchObject({ code: 0 })
  })

  test('the hint for a file that is not even JSON names no command that needs it to be', async () => {
    const context = createFakeContext()
    write(context, '{bad')
    const { stderr } = await type('config set store file', context)
    expect(stderr).toMatch(/hint: it was left as it is; fix it, or move it away: /)
    expect(stderr).not.toContain('mailclaim config')
  })

  test.each([
    '{bad',
    '',
    '{"version":2,"profiles":{}}',
    '{"version":1,"profiles":{"work":{"store":"cloud"}}}',
  ])(
    'logout, completion, sandbox and a check of a given value work with a file that holds %s',
    async (content) => {
      const silent = async () => {
        throw new DnsTransportError('timeout', 'no answer')
      }
      const context = createFakeContext({
        dns: { udp: silent, tcp: silent, systemResolvers: async () => [] },
      })
      write(context, content)
      for (const line of ['logout', 'logout --all']) {
        const { code, stderr } = await type(line, context)
        expect(code).toBe(0)
        expect(stderr).toMatch(/^warning: the file \S+config\.json cannot be used: .*; going on without it$/m)
        expect(stderr).toMatch(/was not signed in|No profile is signed in/)
      }
      expect(await type('completion bash', context)).toMatchObject({ code: 0, stderr: '' })
      const checked = await type('claims check --name example.com --value a=b', context)
      expect(checked.code).toBe(7)
      expect(checked.stderr).toContain('going on without it')
      expect(await type('claims check example.com', context)).toMatchObject({ code: 1 })
      const sandbox = run(['sandbox', '--json'], context)
      await expect.poll(() => context.stdout.text).toContain('"base_url"')
      context.interrupt('SIGTERM')
      expect(await sandbox).toBe(143)
    },
  )

  test('concurrent writers lose no change', async () => {
    const fake = createFakeContext()
    // All sleepers together would move the fake clock beyond the deadline.
    const context = { ...fake, clock: { ...fake.clock, monotonic: () => 0 } }
    // The lock belongs to the open file, so this holds within a process as between two.
    await Promise.all(
      Array.from({ length: 25 }, (_, at) =>
        updateConfig(context, (config) => {
          config.profiles[`p${at}`] = { client_id: String(at) }
        }),
      ),
    )
    expect(Object.keys(read(fake).profiles)).toHaveLength(25)
  })
})
