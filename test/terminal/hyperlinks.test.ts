import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { addressesIn, supportsHyperlinks, withLinks } from '../../src/terminal/hyperlinks.ts'
import { createFakeOutput } from '../fake-context.ts'

const LINK = /\x1b\]8;id=mailclaim;([^\x1b]*)\x1b\\([^\x1b]*)\x1b\]8;;\x1b\\/g
const supporting = { hyperlinks: true, ci: false }

async function written(
  text: string,
  addresses: readonly string[],
  environment = supporting,
  terminal = true,
) {
  const output = createFakeOutput(terminal ? { columns: 80 } : undefined)
  await withLinks(output, addresses, environment).write(text)
  return output.text
}

describe('hyperlinks', () => {
  test.each([
    { TERM_PROGRAM: 'iTerm.app' },
    { TERM_PROGRAM: 'vscode', TERM: 'xterm-256color' },
    { TERM: 'xterm-kitty' },
    { VTE_VERSION: '7600' },
    { WT_SESSION: 'c0ffee' },
    { FORCE_HYPERLINK: '1' },
    { FORCE_HYPERLINK: '1', TMUX: '/tmp/tmux' },
  ])('are known to work with %o', (variables) => {
    expect(supportsHyperlinks(variables)).toBe(true)
  })

  test.each([
    {},
    { TERM: 'xterm-256color' },
    { TERM_PROGRAM: 'Apple_Terminal' },
    { VTE_VERSION: '5000' },
    { VTE_VERSION: '7600', TMUX: '/tmp/tmux' },
    { WT_SESSION: 'c0ffee', TERM: 'screen-256color' },
    { TERM: 'xterm-kitty', FORCE_HYPERLINK: '0' },
    { TERM: 'dumb', FORCE_HYPERLINK: '1' },
  ])('are not known to work with %o', (variables) => {
    expect(supportsHyperlinks(variables)).toBe(false)
  })

  test('are what the program wrote itself, and nothing else', async () => {
    const page = 'https://dns.example/a?b=c#d'
    const text = await written(`add it at (${page}); not at https://other.example/`, [page])
    expect([...text.matchAll(LINK)].map(([, target, shown]) => [target, shown])).toEqual([[page, page]])
    expect(text.replace(LINK, '$2')).toBe(`add it at (${page}); not at https://other.example/`)
  })

  test('hold together where an address is wrapped', async () => {
    const text = await written('go to https://dns.exa\n  mple/zone now', ['https://dns.example/zone'])
    expect([...text.matchAll(LINK)].map(([, target, shown]) => [target, shown])).toEqual([
      ['https://dns.example/zone', 'https://dns.exa'],
      ['https://dns.example/zone', 'mple/zone'],
    ])
  })

  test('are not written into a file or a pipe, nor for CI, nor where they may not work', async () => {
    const [page] = addressesIn('DNS host: https://dns.example/')
    const text = `${page}\n`
    expect(await written(text, [text.trim()], supporting, false)).toBe(text)
    expect(await written(text, [text.trim()], { hyperlinks: true, ci: true })).toBe(text)
    expect(await written(text, [text.trim()], { hyperlinks: false, ci: false })).toBe(text)
  })

  test('have a web address as their target, whatever the addresses are, and the text stays', async () => {
    const pieces = fc.constantFrom(
      'https://',
      'http://',
      'a.example',
      '/',
      '\x1b\\',
      '\x07',
      '\n',
      ' ',
      'javascript:',
      ';',
      '\u009c',
      'ü',
      '%',
    )
    const address = fc.array(pieces, { maxLength: 6 }).map((all) => all.join(''))
    await fc.assert(
      fc.asyncProperty(fc.array(address, { maxLength: 4 }), async (addresses) => {
        const plain = addresses.filter((one) => !one.includes('\x1b')).join(' ')
        const text = await written(plain, addresses)
        for (const [, target] of text.matchAll(LINK)) expect(target).toMatch(/^https?:\/\/[!-~]+$/)
        expect(text.replace(LINK, '$2')).toBe(plain)
      }),
    )
  })
})
