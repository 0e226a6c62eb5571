import { describe, expect, test } from 'vitest'
import type { Context } from '../../src/context.ts'
import { type GivenOptions, getSetting, resolveSettings } from '../../src/settings/settings.ts'
import {
  SETTING_KEYS,
  SETTINGS,
  type SettingDefinition,
  type SettingKey,
  settingName,
} from '../../src/settings/table.ts'
import { createFakeContext, type FakeContextOptions, jsonResponse } from '../fake-context.ts'
import { run } from '../run.ts'

/** Each setting's example of a valid value other than the default, and of an invalid one; null if any text is valid. */
const EXAMPLES: Readonly<Record<SettingKey, readonly [valid: string, invalid: string | null]>> = {
  base_url: ['https://api.example.com', 'ftp://api.example.com'],
  client_id: ['client-7', 'client-ü'],
  issuer: ['https://auth.example.com', 'auth.example.com'],
  authorization_endpoint: ['https://auth.example.com/authorize', 'auth.example.com'],
  scope: ['emails:send domains:read', 'emails:"send'],
  resource: ['https://mail.example.com', 'mail'],
  redirect_uri: ['http://127.0.0.1:4000/callback', null],
  store: ['file', 'cloud'],
  store_url: ['https://a.example.com:2379 https://b.example.com:2379', 'http://a.example.com:2379'],
  store_cert: ['/etc/mailclaim/client.pem', null],
  store_cert_key: ['/etc/mailclaim/client.key', null],
  store_key_file: ['/etc/mailclaim/key', null],
  resolver: ['192.0.2.1 [2001:db8::1]:5353', 'dns.example'],
  authoritative_port: ['5353', '0'],
  http_timeout: ['5', 'soon'],
}

const inVariable = (key: SettingKey, value: string): FakeContextOptions => ({
  environment: { settings: { [key]: value } },
})

describe.each(Object.entries(EXAMPLES) as [SettingKey, readonly [string, string | null]][])(
  'the setting %s',
  (key, [valid, invalid]) => {
    const name = settingName(key)
    const setting: SettingDefinition<unknown> = SETTINGS[key]
    const options = (value: string): GivenOptions => ({
      [key.replace(/_(.)/g, (_, letter: string) => letter.toUpperCase())]: setting.repeatable
        ? value.split(' ')
        : value,
    })
    const chosen = async (given: GivenOptions, context: Context) =>
      (await resolveSettings(given, [], context)).chosen[key]

    test(`the setting ${key} is stored, printed, listed and removed by mailclaim config`, async () => {
      const context = createFakeContext()
      expect(await run(['config', 'set', name, valid], context)).toBe(0)
      expect(await run(['config', 'get', name], context)).toBe(0)
      expect(context.stdout.text.split('\n').at(-2)).toBe(valid)
      await run(['config', 'list'], context)
      expect(context.stdout.text).toContain(`\n${name}\t${valid}\tprofile\n`)
      expect(await run(['config', 'unset', name], context)).toBe(0)
      expect(await run(['config', 'get', name], context)).toBe(5)
    })

    test(`the setting ${key} is taken from the option, else the variable, else the profile, else the default`, async () => {
      const context = createFakeContext()
      expect(await chosen({}, context)).toEqual(
        setting.default && { value: setting.default, source: 'default' },
      )
      await run(['config', 'set', name, valid], context)
      expect(await chosen({}, context)).toEqual({ value: valid, source: 'profile' })
      const variable = {
        ...context,
        ...{ environment: { ...context.environment, settings: { [key]: 'v' } } },
      }
      if (setting.variable !== undefined) {
        expect(setting.variable).toBe(`MAILCLAIM_${key.toUpperCase()}`)
        expect(await chosen({}, variable)).toEqual({ value: 'v', source: 'environment' })
      }
      if (setting.flags !== undefined) {
        expect(setting.flags).toMatch(new RegExp(`^--${name} <\\w+>$`))
        expect(await chosen(options(valid), variable)).toEqual({ value: valid, source: 'flag' })
      }
    })

    if (invalid === null) return
    test(`an invalid value of the setting ${key} is rejected by config set and by getSetting`, async () => {
      const context = createFakeContext()
      expect(await run(['config', 'set', name, invalid], context)).toBe(2)
      expect(context.stderr.text).toMatch(new RegExp(`^error: .*(${name}|${JSON.stringify(invalid)})`))
      const settings = await resolveSettings({}, [], createFakeContext(inVariable(key, invalid)))
      // An invalid value is an error only in commands that use the setting.
      expect(() => getSetting(key, settings)).toThrow(setting.variable ?? name)
    })
  },
)

test('the default of each setting is a valid value', () => {
  for (const key of SETTING_KEYS) {
    const setting: SettingDefinition<unknown> = SETTINGS[key]
    if (setting.default !== undefined) expect(() => setting.parse(setting.default ?? '', key)).not.toThrow()
  }
})

test('an invalid resolver setting does not fail login --with-api-key, which does not query DNS', async () => {
  const settings = { base_url: 'http://127.0.0.1:1', resolver: 'dns.example' }
  const context = createFakeContext({ environment: { settings }, respond: () => jsonResponse(200, {}) })
  context.stdin.stream.end('key_0123456789')
  expect(await run(['login', '--with-api-key', '--store', 'file'], context), context.stderr.text).toBe(0)
})

describe('interactive prompts', () => {
  const mayAsk = async (options: GivenOptions, environment: Partial<Context['environment']> = {}) =>
    (await resolveSettings(options, [], createFakeContext({ terminal: { columns: 80 }, environment })))
      .interactive

  test('prompts are allowed on a terminal, even with --format tsv, and forbidden without one', async () => {
    expect(await mayAsk({})).toBe(true)
    expect(await mayAsk({ format: 'tsv' })).toBe(true)
    expect((await resolveSettings({}, [], createFakeContext())).interactive).toBe(false)
  })

  test.each<[string, GivenOptions, Partial<Context['environment']>, boolean]>([
    ['--json forbids', { json: true }, {}, false],
    ['--format jsonl forbids', { format: 'jsonl' }, {}, false],
    ['--no-input forbids', { input: false }, {}, false],
    ['MAILCLAIM_NO_INPUT=1 forbids', {}, { settings: { no_input: '1' } }, false],
    ['MAILCLAIM_NO_INPUT=0 allows', {}, { settings: { no_input: '0' } }, true],
    ['CI=true forbids', {}, { ci: true }, false],
  ])('%s prompts on a terminal', async (_what, options, environment, asks) => {
    expect(await mayAsk(options, environment)).toBe(asks)
  })
})
