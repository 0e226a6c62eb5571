import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { CliError } from '../../src/errors.ts'
import { commandWords } from '../../src/settings/command-words.ts'
import { posixQuote } from '../../src/shell-quote.ts'

const words = (text: string, platform: NodeJS.Platform = 'linux') => commandWords(text, '--publish', platform)

describe('a command', () => {
  test.each([
    ['./publish.sh', ['./publish.sh']],
    ['  ./publish.sh \t --view  external\n', ['./publish.sh', '--view', 'external']],
    [`./publish.sh 'two words' "and two" ''`, ['./publish.sh', 'two words', 'and two', '']],
    [`pre'fix 'and"suffix "`, ['prefix andsuffix ']],
    [`a\\ b "c\\"d\\\\e\\f" 'g\\'`, ['a b', 'c"d\\e\\f', 'g\\']],
    [`sh -c 'echo $A | cat > b; c &' "~/$D \`e\`"`, ['sh', '-c', 'echo $A | cat > b; c &', '~/$D `e`']],
    ['hook a~b --to=~/x', ['hook', 'a~b', '--to=~/x']],
    ['hook \\$HOME \\~', ['hook', '$HOME', '~']],
  ])('%j has the words %j', (text, expected) => {
    expect(words(text)).toEqual(expected)
  })

  test('on Windows has backslashes in its paths', () => {
    expect(words('C:\\Tools\\publish.exe "C:\\My Zones\\"', 'win32')).toEqual([
      'C:\\Tools\\publish.exe',
      'C:\\My Zones\\',
    ])
  })

  test.each([
    ['', 'the command is empty'],
    [' \t', 'the command is empty'],
    ["''", 'the command is empty'],
    [`./publish.sh 'open`, "a quotation mark (') isn't closed"],
    [`./publish.sh "open`, 'a quotation mark (") isn\'t closed'],
    ...['|', ';', '&', '<', '>', '$', '`', '~'].map((sign) => [
      `./publish.sh ${sign}x`,
      JSON.stringify(sign),
    ]),
  ])('%j is refused', (text, reason) => {
    const refuse = () => words(text ?? '')
    expect(refuse).toThrow(CliError)
    expect(refuse).toThrow(`--publish: `)
    expect(refuse).toThrow(reason)
  })

  test('has the words that a shell would see, however they are quoted', () => {
    const word = fc.string({ unit: 'grapheme', minLength: 1 })
    fc.assert(
      fc.property(fc.array(word, { minLength: 1 }), (given) => {
        expect(words(given.map(posixQuote).join(' '))).toEqual(given)
      }),
    )
  })
})
