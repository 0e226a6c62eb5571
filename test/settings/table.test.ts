import { spawnSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import { complete } from '../../src/cli/complete.ts'
import { run } from '../../src/cli.ts'
import { configPath } from '../../src/settings/config.ts'
import {
  type GlobalOptions,
  resolveSettings,
  type Settings,
  settingValue,
} from '../../src/settings/settings.ts'
import {
  SETTING_KEYS,
  SETTINGS,
  type Setting,
  type SettingKey,
  settingName,
} from '../../src/settings/table.ts'
import { createFakeContext, type FakeContext, type FakeContextOptions } from '../fake-context.ts'

const PROGRAM = fileURLToPath(new URL('../../bin/mailclaim.js', import.meta.url))

/** A valid value of each setting other than its default, and one that its parser refuses; null if it accepts any text. */
const EXAMPLES: Readonly<Record<SettingKey, readonly [valid: string, invalid: string | null]>> = {
  base_url: ['https://api.example.com', 'ftp://api.example.com'],
  client_id: ['client-7', 'client-ü'],
  issuer: ['https://auth.example.com', 'auth.example.com'],
  scope: ['emails:send domains:read', 'emails:"send'],
  resource: ['https://mail.example.com', 'mail'],
  store: ['file', 'cloud'],
  store_url: ['https://a.example.com:2379 https://b.example.com:2379', 'http://a.example.com:2379'],
  store_prefix: ['/teams/mail', 'teams'],
  store_ca: ['/etc/mailclaim/ca.pem', null],
  store_cert: ['/etc/mailclaim/client.pem', null],
  store_key_file: ['/etc/mailclaim/key', null],
  on_interrupted: ['retry', 'ask'],
  resolver: ['192.0.2.1 [2001:db8::1]:5353', 'dns.example'],
  authoritative_port: ['5353', '0'],
  http_timeout: ['5', 'soon'],
  pager: ['less -S', null],
}

const settings = SETTING_KEYS.map((key) => ({
  key,
  name: settingName(key),
  valid: EXAMPLES[key][0],
  invalid: EXAMPLES[key][1],
  setting: SETTINGS[key] as Setting<unknown>,
}))
const withFlag = settings.filter(({ setting }) => setting.flags !== undefined)
const withVariable = settings.filter(({ setting }) => setting.variable !== undefined)

async function listed(context: FakeContext, words: readonly string[] = []) {
  const before = context.stdout.text.length
  expect(await run(['config', 'list', '--json', ...words], context)).toBe(0)
  const { data } = JSON.parse(context.stdout.text.slice(before)) as { data: Record<string, unknown>[] }
  return Object.fromEntries(data.map(({ name, value, source }) => [name, { value, source }]))
}

/** The words that give the setting on a command line; its option if it is repeatable once for each value. */
function flagWords({ name, valid, setting }: (typeof settings)[number]): string[] {
  const values = setting.repeatable ? valid.split(' ') : [valid]
  return values.flatMap((value) => [`--${name}`, value])
}

function inVariable(key: SettingKey, value: string): FakeContextOptions {
  return { environment: { settings: { [key]: value } } }
}

describe('every setting', () => {
  test.each(settings)(
    '$name has an option and a variable of its own name, if any',
    ({ name, key, setting }) => {
      if (setting.flags !== undefined) expect(setting.flags).toMatch(new RegExp(`^--${name} <\\w+>$`))
      if (setting.variable !== undefined) expect(setting.variable).toBe(`MAILCLAIM_${key.toUpperCase()}`)
    },
  )

  test.each(settings)(
    '$name is stored, printed, listed and removed by mailclaim config',
    async ({ name, valid }) => {
      const context = createFakeContext()
      expect(await run(['config', 'set', name, valid], context)).toBe(0)
      expect(await run(['config', 'get', name], context)).toBe(0)
      expect(context.stdout.text.split('\n').at(-2)).toBe(valid)
      expect((await listed(context))[name]).toEqual({ value: valid, source: 'profile' })
      expect(await run(['config', 'unset', name], context)).toBe(0)
      expect(await run(['config', 'get', name], context)).toBe(5)
    },
  )

  test.each(settings.filter(({ invalid }) => invalid !== null))(
    '$name refuses "$invalid" with exit 2, and names the setting or the value',
    async ({ name, invalid }) => {
      const context = createFakeContext()
      expect(await run(['config', 'set', name, invalid ?? ''], context)).toBe(2)
      expect(context.stderr.text).toMatch(new RegExp(`^error: .*(${name}|${JSON.stringify(invalid)})`))
    },
  )

  test.each(settings)('$name is listed with its default if nothing sets it', async ({ name, setting }) => {
    const expected = {
      value: setting.default ?? null,
      source: setting.default === undefined && setting.unset === undefined ? null : 'default',
    }
    expect((await listed(createFakeContext()))[name]).toEqual(expected)
  })

  test.each(settings.filter(({ setting }) => setting.default !== undefined))(
    '$name accepts its own default',
    ({ name, setting }) => {
      expect(() => setting.parse(setting.default ?? '', name)).not.toThrow()
    },
  )

  test.each(withFlag)('$name is an option, in help and in completion', async (entry) => {
    const { key, name, setting } = entry
    const context = createFakeContext()
    const words = setting.command === undefined ? ['config', 'list'] : [setting.command]
    expect(await run(['help', setting.command ?? 'options'], context)).toBe(0)
    expect(context.stdout.text).toContain(`  ${setting.flags}`)
    const { candidates } = await complete([...words, `--${name}`], context)
    expect(candidates).toContainEqual({ value: `--${name}`, description: setting.description })
    const given = setting.repeatable ? entry.valid.split(' ') : entry.valid
    const option = name.replace(/-(.)/g, (_, letter: string) => letter.toUpperCase())
    const resolved = await resolveSettings({ [option]: given } as GlobalOptions, [], context)
    expect(resolved.chosen[key]).toEqual({ value: entry.valid, source: 'flag' })
  })

  test.each(withFlag.filter(({ setting }) => setting.command === undefined))(
    '$name as an option is listed as coming from the flag',
    async (entry) => {
      const context = createFakeContext(inVariable(entry.key, entry.valid))
      expect((await listed(context, flagWords(entry)))[entry.name]).toEqual({
        value: entry.valid,
        source: 'flag',
      })
    },
  )

  test.each(withVariable)(
    '$name comes from its variable before the profile',
    async ({ key, name, valid }) => {
      const context = createFakeContext(inVariable(key, valid))
      mkdirSync(context.directories.config, { recursive: true, mode: 0o700 })
      const profile = {
        [key]: SETTINGS[key].parse((SETTINGS[key] as Setting<unknown>).default ?? valid, name),
      }
      writeFileSync(configPath(context), JSON.stringify({ version: 1, profiles: { default: profile } }))
      expect((await listed(context))[name]).toEqual({ value: valid, source: 'environment' })
    },
  )

  test.each(withVariable)(
    '$setting.variable is read from the real environment',
    ({ name, valid, setting }) => {
      const { stdout } = spawnSync(process.execPath, [PROGRAM, 'config', 'list'], {
        env: {
          MAILCLAIM_CONFIG_DIR: '/nonexistent/c',
          MAILCLAIM_STATE_DIR: '/nonexistent/s',
          [setting.variable ?? '']: valid,
        },
        encoding: 'utf8',
      })
      expect(stdout.split('\n')).toContain(`${name}\t${valid}\tenvironment`)
    },
  )

  test.each(withVariable)('$setting.variable is in help', async ({ setting }) => {
    const context = createFakeContext()
    await run(['help', 'environment'], context)
    expect(context.stdout.text).toContain(`  ${setting.variable} `)
  })

  test('the completion of config get offers every setting', async () => {
    const { candidates } = await complete(['config', 'get', ''], createFakeContext())
    expect(candidates).toEqual(
      settings.map(({ name, setting }) => ({ value: name, description: setting.description })),
    )
  })
})

describe('a bad value names where it comes from', () => {
  const resolve = (options: GlobalOptions, more: FakeContextOptions = {}) =>
    resolveSettings(options, [], createFakeContext(more))

  test('a bad option names the option', async () => {
    await expect(resolve({ httpTimeout: 'soon' })).rejects.toThrow(/^--http-timeout: "soon"/)
  })

  test('a bad variable names the variable', async () => {
    await expect(resolve({}, inVariable('authoritative_port', '0'))).rejects.toThrow(
      /^MAILCLAIM_AUTHORITATIVE_PORT: "0"/,
    )
  })

  test('a bad variable that a command does not use does not stop it', async () => {
    const settings: Settings = await resolve({}, inVariable('store', 'cloud'))
    expect(() => settingValue('store', settings)).toThrow(/^MAILCLAIM_STORE: "cloud"/)
  })

  test('a bad variable that an option overrides is ignored', async () => {
    const { resolvers } = await resolve({ resolver: ['192.0.2.1'] }, inVariable('resolver', ','))
    expect(resolvers).toEqual([{ address: '192.0.2.1', port: 53 }])
  })
})
