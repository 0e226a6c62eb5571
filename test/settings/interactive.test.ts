import { describe, expect, it } from 'vitest'
import { run } from '../../src/cli.ts'
import type { Context } from '../../src/context.ts'
import { type GlobalOptions, resolveSettings } from '../../src/settings/settings.ts'
import { createFakeContext } from '../fake-context.ts'

const terminal = { columns: 80 }

async function mayAsk(options: GlobalOptions, environment: Partial<Context['environment']> = {}) {
  const context = createFakeContext({ terminal, environment })
  return (await resolveSettings(options, [], context)).interactive
}

describe('whether a question may be asked', () => {
  it('a person on a terminal is asked', async () => {
    expect(await mayAsk({})).toBe(true)
    expect(await mayAsk({ format: 'csv' })).toBe(true)
    expect((await resolveSettings({}, [], createFakeContext())).interactive).toBe(false)
  })

  it.each<[string, GlobalOptions, Partial<Context['environment']>]>([
    ['--json', { json: true }, {}],
    ['--format json', { format: 'json' }, {}],
    ['--format jsonl', { format: 'jsonl' }, {}],
    ['--no-input', { input: false }, {}],
    ['MAILCLAIM_NO_INPUT=1', {}, { settings: { no_input: '1' } }],
    ['MAILCLAIM_NO_INPUT=true', {}, { settings: { no_input: 'true' } }],
    ['CI=true', {}, { ci: true }],
  ])('nothing is asked with %s, even on a terminal', async (_what, options, environment) => {
    expect(await mayAsk(options, environment)).toBe(false)
  })

  it.each(['0', 'false', 'no', 'off'])('MAILCLAIM_NO_INPUT=%s allows questions', async (no_input) => {
    expect(await mayAsk({}, { settings: { no_input } })).toBe(true)
  })
})

describe('what is missing when nothing may be asked', () => {
  const rules: [string, string[], Partial<Context['environment']>][] = [
    ['--json', ['--json'], {}],
    ['--format jsonl', ['--format', 'jsonl'], {}],
    ['--no-input', ['--no-input'], {}],
    ['MAILCLAIM_NO_INPUT=1', [], { settings: { no_input: '1' } }],
    ['CI=true', [], { ci: true }],
  ]
  const commands = ['claim', 'claims create', 'claims get', 'claims check', 'claims verify', 'claims watch']
  it.each(rules.flatMap((rule) => commands.map((command) => [command, ...rule] as const)))(
    '%s without its argument is exit 2 with %s, and the hint shows what to give',
    async (command, _rule, words, { settings = {}, ...environment }) => {
      const context = createFakeContext({
        terminal,
        environment: {
          settings: { base_url: 'http://127.0.0.1:1', ...settings },
          apiKey: 'key-1',
          ...environment,
        },
      })
      expect(await run([...command.split(' '), ...words], context)).toBe(2)
      const said = context.stderr.text.replace(/\s+/g, ' ')
      expect(said).toMatch(/domain/)
      expect(said).toMatch(/hint"?: ?"?\S/)
    },
  )

  it('the hint for a missing domain repeats the command that was typed', async () => {
    const context = createFakeContext()
    expect(await run(['claim', '--timeout', '600'], context)).toBe(2)
    expect(context.stderr.text).toContain('mailclaim claim --timeout 600 example.com')
  })
})
