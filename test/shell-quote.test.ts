import { execFileSync } from 'node:child_process'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { shellQuote } from '../src/shell-quote.ts'
import { needs, type Requirement, which } from './requirements.ts'

const words = fc.array(
  fc
    .array(
      fc.oneof(
        fc.string({ unit: 'grapheme', maxLength: 8 }),
        fc.constantFrom('\n', ...'=ls ~ ~root \' " \\ $HOME $(id) `id` !! {a,b} *'.split(' ')),
      ),
      { maxLength: 6 },
    )
    // Remove NUL, which no argument can contain.
    .map((pieces) => pieces.join('').replaceAll('\0', '')),
  { minLength: 1, maxLength: 5 },
)

describe.each<Requirement>(['bash', 'dash', 'zsh', 'fish'])('%s', (shell) => {
  test.runIf(needs(shell))(`a quoted argument reaches a program unchanged through ${shell}`, () => {
    fc.assert(
      fc.property(words, (list) => {
        const quoted = list.map((word) => shellQuote(word, 'linux')).join(' ')
        const output = execFileSync(which(shell) ?? '', ['-c', `printf '%s\\0' ${quoted}`], {
          encoding: 'utf8',
          env: { LANG: 'C.UTF-8', HOME: '/' },
        })
        expect(output.split('\0').slice(0, -1)).toEqual(list)
      }),
      { numRuns: 60 },
    )
  })
})

test('shellQuote adds no quotation marks to an argument without special characters', () => {
  for (const word of ['--limit=5', 'prefix=token', '/home/a/b.json', 'app.example.com.', '@']) {
    expect(shellQuote(word, 'linux')).toBe(word)
  }
  expect(shellQuote('C:\\Users\\a', 'win32')).toBe('C:\\Users\\a')
})

test('an argument quoted for PowerShell cannot end the quoted string or start an expression', () => {
  expect(shellQuote('a b', 'win32')).toBe('"a b"')
  expect(shellQuote('"; calc; "', 'win32')).toBe('"""; calc; """')
  expect(shellQuote('\u201d; calc; \u201c', 'win32')).toBe('"`\u201d; calc; `\u201c"')
  expect(shellQuote('$(calc) `n', 'win32')).toBe('"`$(calc) ``n"')
  expect(shellQuote('@splat', 'win32')).toBe('"@splat"')
})
