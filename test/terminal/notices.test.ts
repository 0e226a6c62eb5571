import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { run } from '../../src/cli.ts'
import { hint, note, warn, writeLabeled } from '../../src/terminal/notices.ts'
import { createFakeContext, fakeSettings } from '../fake-context.ts'

const at = (columns: number) => createFakeContext({ terminal: { columns }, environment: { noColor: true } })

describe('what the program says on stderr', () => {
  it('on a terminal the label has a color, and the text has none', async () => {
    const context = createFakeContext({ terminal: { columns: 80 }, environment: { term: 'xterm' } })
    const settings = await fakeSettings(context)
    await writeLabeled('error', 'it failed', context, undefined)
    await warn('it may fail', context, settings)
    await hint('try again', context, settings)
    expect(context.stderr.text.split('\n')).toEqual([
      '\x1b[1m\x1b[31merror:\x1b[39m\x1b[22m it failed',
      '\x1b[1m\x1b[33mwarning:\x1b[39m\x1b[22m it may fail',
      '\x1b[36mhint:\x1b[39m try again',
      '',
    ])
  })

  it.each([
    ['elsewhere', {}, []],
    ['with NO_COLOR', { terminal: { columns: 80 }, environment: { noColor: true } }, []],
    ['with --no-color', { terminal: { columns: 80 } }, ['--no-color']],
  ])('%s nothing has a color', async (_where, options, words) => {
    const context = createFakeContext(options)
    await run(['claims', 'get', 'unknown.example', ...words], context)
    expect(context.stderr.text).toMatch(/^error: /)
    expect(context.stderr.text).not.toContain('\x1b')
  })

  it('a hint is wrapped at words on a terminal, and a command that fits stays in one line', async () => {
    const context = at(40)
    const settings = await fakeSettings(context)
    await hint('give --base-url, or run: mailclaim config set base-url, and then go on', context, settings)
    expect(context.stderr.text).toBe(
      'hint: give --base-url, or run:\n  mailclaim config set base-url\n  and then go on\n',
    )
  })

  it('a command that does not fit beside the words gets a line of its own, without their punctuation', async () => {
    const context = at(60)
    await run(['grants', 'list', '--profile', 'ci'], context)
    expect(context.stderr.text).toBe(
      [
        'error: the address of the service is not configured',
        'hint: sign in, which saves it:',
        '  mailclaim login --profile ci --base-url URL --client-id ID',
        '  or give --base-url or set MAILCLAIM_BASE_URL; to try it',
        '  without an account: mailclaim sandbox',
        '',
      ].join('\n'),
    )
  })

  it('words in parentheses after a command are not part of it', async () => {
    const context = at(40)
    await hint(
      'to go on, run: mailclaim config set base-url (or do without)',
      context,
      await fakeSettings(context),
    )
    expect(context.stderr.text).toBe(
      'hint: to go on, run:\n  mailclaim config set base-url\n  (or do without)\n',
    )
  })

  it('a note is wrapped at words on a terminal, and what is indented, to be copied, is not', async () => {
    const context = at(40)
    const settings = await fakeSettings(context)
    const address = `  https://mail.example/${'x'.repeat(40)}`
    await note(`If the browser runs on another machine, go to:\n\n${address}\n`, context, settings)
    expect(context.stderr.text).toBe(`If the browser runs on another machine,\n  go to:\n\n${address}\n\n`)
  })

  it.each([
    [
      'a command',
      'add the record, then run: ',
      'mailclaim claims check --profile ci --fields id,name example.com',
      '; it waits',
    ],
    [
      'a quoted command',
      'there are more: ',
      "mailclaim imports list --fields 'id, name; status' --after i-100",
      '',
    ],
    ['a quote', 'run ', "mailclaim imports list --after 'it'\\''s; one' --limit 100", '; it lists'],
    ['an address', 'open ', 'https://auth.example/authorize?client_id=client-1&state=0123456789', ' there'],
  ])(
    '%s that is wider than the terminal stays in one line, to be copied',
    async (_what, before, whole, after) => {
      const context = at(40)
      const settings = await fakeSettings(context)
      await hint(`${before}${whole}${after}`, context, settings)
      await note(`${before}${whole}${after}`, context, settings)
      const lines = context.stderr.text.split('\n').filter((line) => line.startsWith(`  ${whole}`))
      expect(lines).toHaveLength(2)
    },
  )

  it('a note is wrapped at words on a terminal', async () => {
    const context = at(20)
    await note('one two three four five six', context, await fakeSettings(context))
    expect(context.stderr.text).toBe('one two three four\n  five six\n')
  })

  it('a hint is one line where nobody reads it on a terminal', async () => {
    const context = createFakeContext()
    await hint('word '.repeat(60).trim(), context, await fakeSettings(context))
    expect(context.stderr.text.split('\n')).toHaveLength(2)
  })

  it('no text gets wider than the terminal, loses a word, or begins a line of its own', async () => {
    const word = fc.constantFrom('error:', 'hint:', 'mailclaim', 'claims;', 'a', '日本語', 'x'.repeat(28))
    await fc.assert(
      fc.asyncProperty(fc.array(word, { minLength: 1, maxLength: 30 }), async (words) => {
        const context = at(30)
        await writeLabeled('error', words.join(' '), context, false)
        const [first = '', ...others] = context.stderr.text.trimEnd().split('\n')
        expect(first).toMatch(/^error:/)
        for (const line of others) expect(line).toMatch(/^ {2}\S/)
        const text = context.stderr.text.replaceAll('\n  ', ' ')
        expect(text.replaceAll(';', '')).toBe(`error: ${words.join(' ')}\n`.replaceAll(';', ''))
      }),
    )
  })

  it('a word that is wider than the terminal is broken', async () => {
    const context = at(20)
    await writeLabeled('error', 'x'.repeat(40), context, false)
    expect(context.stderr.text.split('\n').map((line) => line.length)).toEqual([6, 20, 20, 6, 0])
  })

  it('--quiet silences all but errors', async () => {
    const context = createFakeContext()
    const settings = await fakeSettings(context, { quiet: true })
    await note('a note', context, settings)
    await warn('a warning', context, settings)
    await hint('a hint', context, settings)
    expect(context.stderr.text).toBe('')
  })
})
